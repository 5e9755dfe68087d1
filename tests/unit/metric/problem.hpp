// A comparison with its data, and the same statistics computed naively: one element after another in long double.
#pragma once

#include <cstdint>
#include <vector>

#include "metric/compare.hpp"

namespace numcheck::metric {

struct Problem {
  op::Port port;
  std::vector<std::byte> got;
  std::vector<double> expected;
  std::vector<double> unrounded;
  std::vector<float> magnitude;
  std::vector<float> deviation;
  op::Sample sample;
  model::ErrorModel model;

  [[nodiscard]] CompareInput input() const;
  /// Stores a value (rounded to nearest) as element `index` of the output.
  void set_got(std::int64_t index, double value);
  void set_bits(std::int64_t index, std::uint64_t bits);
  [[nodiscard]] double got_at(std::int64_t index) const;
};

struct Shape {
  std::int64_t batch = 1;
  std::int64_t rows = 1;
  std::int64_t cols = 1;
  std::int64_t pad = 0;
  std::int64_t offset = 0;  ///< elements
};

/// Outputs that are the expected values with a relative error of about `noise` before they are rounded to the format;
/// padding holds ones. Yardsticks and model are those of a zero-mean sum.
[[nodiscard]] Problem make_problem(core::Dtype dtype, const Shape& shape, double noise, std::uint64_t seed);

/// 5 x 13 outputs without error, so that one element at a time can be changed.
[[nodiscard]] Problem quiet(core::Dtype dtype);

/// The statistics of `problem` from their definitions; opinions, worst elements and special values are left out.
[[nodiscard]] Statistics naive_statistics(const Problem& problem);

}  // namespace numcheck::metric
