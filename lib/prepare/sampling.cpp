#include "prepare/sampling.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "core/rng.hpp"

namespace numcheck::prepare {
namespace {

constexpr std::int64_t kTile = 128;       // CTA tiles of the libraries are multiples or divisors of 128
constexpr std::int64_t kBorderTiles = 8;  // borders looked at in each direction

/// Coordinates where indexing faults show: ends, and both sides of the first and last tile borders.
std::vector<std::int64_t> landmark_coordinates(std::int64_t size) {
  std::vector<std::int64_t> at = {0, 1, size - 2, size - 1};
  const std::int64_t tiles = size / kTile;
  for (std::int64_t tile = 1; tile <= tiles; ++tile) {
    if (tile <= kBorderTiles || tile > tiles - kBorderTiles) {
      at.push_back(tile * kTile - 1);
      at.push_back(tile * kTile);
    }
  }
  std::erase_if(at, [size](std::int64_t x) { return x < 0 || x >= size; });
  std::ranges::sort(at);
  at.erase(std::ranges::unique(at).begin(), at.end());
  return at;
}

}  // namespace

op::Sample choose_sample(const op::Port& output, std::size_t count) {
  op::Sample sample;
  const std::int64_t plane = output.rows * output.cols;
  for (const std::int64_t batch : {std::int64_t{0}, output.batch - 1}) {
    for (const std::int64_t row : landmark_coordinates(output.rows)) {
      for (const std::int64_t col : landmark_coordinates(output.cols)) {
        sample.indices.push_back(batch * plane + row * output.cols + col);
      }
    }
  }
  const auto elements = static_cast<std::uint64_t>(output.elements());
  const core::PhiloxKey key = {static_cast<std::uint32_t>(output.rows), static_cast<std::uint32_t>(output.cols)};
  for (std::uint32_t i = 0; sample.indices.size() < count; ++i) {
    const core::PhiloxCounter words = core::philox4x32({i, 0, 0, 0x5A3D}, key);
    for (std::size_t half = 0; half < 2; ++half) {
      const std::uint64_t word = (std::uint64_t{words[2 * half]} << 32) | words[2 * half + 1];
      sample.indices.push_back(static_cast<std::int64_t>(word % elements));
    }
  }
  std::ranges::sort(sample.indices);
  sample.indices.erase(std::ranges::unique(sample.indices).begin(), sample.indices.end());
  return sample;
}

}  // namespace numcheck::prepare
