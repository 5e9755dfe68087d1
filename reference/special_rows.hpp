// Rows of attention's tensors that arithmetic in FP32 or TF32 does not treat as numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/attention_problem.hpp"

namespace numcheck::reference {

/// From here on TF32 rounds to infinity; no 16-bit format has such numbers.
inline constexpr double kRoundsToInfinity = 0x1.ffcp127;

/// True for numbers that TF32 rounds to zero, of which infinity makes NaN.
[[nodiscard]] inline bool vanishes_in_tf32(double x) {
  constexpr double kHalfOfLeast = 0x1p-137;
  return x != 0 && x <= kHalfOfLeast && x >= -kHalfOfLeast;
}

/// True for NaN, infinities and numbers that TF32 rounds to infinity.
[[nodiscard]] bool is_special(double x);

/// Which rows have a channel that is special.
[[nodiscard]] std::vector<bool> special_rows(const HeadRows& rows, std::int64_t count, std::int64_t channels);

/// Those of one head.
struct SpecialRows {
  std::vector<bool> queries, keys, values, gradient, output;
  bool others = false;  ///< a bias, log-sum-exp or sink is
  [[nodiscard]] bool any() const;
};

}  // namespace numcheck::reference
