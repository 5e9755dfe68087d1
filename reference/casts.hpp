// Casts of whole tensors, on all threads.
#pragma once

#include <span>

namespace numcheck::reference {

/// out = RN32(RN32(x) scale), within +-most; NaN stays.
void scale_into(std::span<const double> x, double scale, double most, std::span<double> out);

/// Of the magnitudes; NaN is dropped, as the devices' maximum does. 0 if there are none.
[[nodiscard]] double amax_of(std::span<const double> x);

/// Of the values, as a kernel that forgets the magnitudes finds it; at least 0.
[[nodiscard]] double largest_value(std::span<const double> x);

}  // namespace numcheck::reference
