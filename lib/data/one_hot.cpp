#include "data/generators.hpp"

namespace numcheck::data {
namespace {

/// The 32 bits in reverse.
std::uint32_t reversed(std::uint32_t bits) {
  std::uint32_t result = 0;
  for (int i = 0; i < 32; ++i, bits >>= 1) {
    result = result << 1 | (bits & 1);
  }
  return result;
}

/// Where sum number `sum`, of `length` elements, has its 1.
std::uint64_t hot_index(std::uint64_t sum, std::uint64_t length) {
  const std::uint64_t half = sum / 2;
  if (sum % 2 == 0 || (length >> 32) != 0) {
    return length - 1 - half % length;
  }
  return length * reversed(static_cast<std::uint32_t>(half)) >> 32;
}

}  // namespace

void generate_one_hot(std::uint64_t first, std::span<double> out, const Geometry& geometry) {
  std::uint64_t row = first / geometry.cols;
  std::uint64_t col = first % geometry.cols;
  for (double& value : out) {
    const std::uint64_t matrix = row / geometry.rows;
    const std::uint64_t index = geometry.reduced_along_rows ? row % geometry.rows : col;
    const std::uint64_t sum = geometry.reduced_along_rows ? matrix * geometry.cols + col : row;
    value = index == hot_index(sum, geometry.reduced_along_rows ? geometry.rows : geometry.cols) ? 1 : 0;
    if (++col == geometry.cols) {
      col = 0;
      ++row;
    }
  }
}

}  // namespace numcheck::data
