// The loop of largest_finite.hpp, compiled once per instruction set. Plain types only: nothing here may emit a symbol that another
// translation unit shares.
#pragma once

#include <cstddef>

namespace numcheck::core {

namespace baseline {
/// Raises `largest` to the largest finite magnitude; clears `all_finite` if a number is not finite.
void add_magnitudes(const double* values, std::size_t count, double& largest, bool& all_finite) noexcept;
}  // namespace baseline
namespace avx2 {
void add_magnitudes(const double* values, std::size_t count, double& largest, bool& all_finite) noexcept;
}
namespace avx512 {
void add_magnitudes(const double* values, std::size_t count, double& largest, bool& all_finite) noexcept;
}

}  // namespace numcheck::core
