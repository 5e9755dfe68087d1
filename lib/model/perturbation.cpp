#include "model/perturbation.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/rng.hpp"

namespace numcheck::model {
namespace {

constexpr std::int64_t kTile = 64;

std::int64_t tile_of(std::int64_t index) {
  return index / kTile;
}

/// Uniform with mean 0 and variance 1, a function of the position alone.
double noise_at(std::int64_t row, std::size_t column) {
  constexpr double kSqrt3 = 1.7320508075688772;
  const core::PhiloxCounter words =
      core::philox4x32({static_cast<std::uint32_t>(column), static_cast<std::uint32_t>(row),
                        static_cast<std::uint32_t>(static_cast<std::uint64_t>(row) >> 32), 0},
                       {0, 0});
  return kSqrt3 * (static_cast<double>(words[0]) * 0x1p-31 - 1);
}

std::size_t largest_of(std::span<const double> values) {
  std::size_t largest = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double size = std::fabs(values[i]);
    if (std::isfinite(size) && !(std::fabs(values[largest]) >= size)) {
      largest = i;
    }
  }
  return largest;
}

}  // namespace

void Perturbation::apply(std::int64_t row, std::span<double> values) const {
  const bool middle = row == rows / 2;
  switch (part) {
    case PerturbedPart::all:
      std::ranges::for_each(values, [this](double& value) { value *= 1 + size; });
      return;
    case PerturbedPart::noise:
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] *= 1 + size * noise_at(row, i);
      }
      return;
    case PerturbedPart::row:
      if (middle) {
        std::ranges::for_each(values, [this](double& value) { value *= 1 + size; });
      }
      return;
    case PerturbedPart::tile:
      if (tile_of(row) == tile_of(rows / 2)) {
        const std::int64_t tile = tile_of(static_cast<std::int64_t>(values.size() / 2));
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] *= tile_of(static_cast<std::int64_t>(i)) == tile ? 1 + size : 1;
        }
      }
      return;
    case PerturbedPart::element:
      if (middle && !values.empty()) {
        values[largest_of(values)] *= 1 + size;
      }
      return;
  }
}

}  // namespace numcheck::model
