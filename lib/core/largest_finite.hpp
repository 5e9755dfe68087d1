// The largest finite magnitude among numbers, as fast as they can be read.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace numcheck::core {

/// 0 of none.
[[nodiscard]] inline double largest_finite(std::span<const double> values) noexcept {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::size_t kChains = 16;  // as many as a processor runs side by side
  std::array<double, kChains> chains{};
  double* const largest = chains.data();  // without checks of bounds, which would keep compilers from using vectors
  const double* const from = values.data();
  const auto take = [](double x, double& most) {
    const double magnitude = std::fabs(x);
    const double finite = magnitude < kInfinity ? magnitude : 0;
    most = finite > most ? finite : most;
  };
  std::size_t i = 0;
  for (; i + kChains <= values.size(); i += kChains) {
    for (std::size_t l = 0; l < kChains; ++l) {
      take(from[i + l], largest[l]);
    }
  }
  for (; i < values.size(); ++i) {
    take(from[i], largest[0]);
  }
  return *std::max_element(chains.begin(), chains.end());
}

}  // namespace numcheck::core
