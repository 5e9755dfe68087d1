#include "tolerance/relu_errors.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/parallel.hpp"

namespace numcheck::tolerance {

void narrow_to_relu(const model::ErrorModel& model, std::span<const float> z, std::span<float> magnitude,
                    std::span<float> deviation) {
  constexpr std::size_t kChunk = std::size_t{1} << 14;
  constexpr double kUnit = 0x1p-24;       // of z, which is stored in FP32
  constexpr double kShort = 1 - 0x1p-20;  // A' is rounded to FP32, and B must not be negative
  constexpr double kLargest = std::numeric_limits<float>::max();
  const double zero = std::max(-model.bound_absolute / model.bound_magnitude * kShort, -kLargest);
  core::parallel_chunks(z.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const auto a = static_cast<double>(magnitude[i]), sum = static_cast<double>(z[i]);
      const double bound = model.bound_magnitude * a + model.bound_absolute + kUnit * std::fabs(sum);
      if (a < model.overflow_magnitude && std::isfinite(sum) && sum + bound <= 0) {
        magnitude[i] = static_cast<float>(zero);
        deviation[i] = 0;
      }
    }
  });
}

}  // namespace numcheck::tolerance
