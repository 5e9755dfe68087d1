// From the parameters of a softmax to the rules of each of its rows, and masks drawn at random.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "op/softmax_mask.hpp"
#include "reference/softmax_row.hpp"

namespace numcheck::reference {

struct SoftmaxRules {
  op::SoftmaxMask mask = op::SoftmaxMask::none;
  bool replaces_by_number = true;  ///< masked scores become op::kMaskedScore, not -inf
  std::int64_t sq = 0;
  std::int64_t sk = 0;
  double scale = 1;

  /// Row `row` of an sq x sk matrix whose scores are at x; `mask` is null without a mask of its own.
  [[nodiscard]] SoftmaxRow row_of(std::int64_t row, const double* x, const double* mask_row) const;
};

/// op::SoftmaxFwdParams::masked_value "te" is replacement by a number.
[[nodiscard]] SoftmaxRules softmax_rules(const std::string& mask, const std::string& masked_value, std::int64_t sq,
                                         std::int64_t sk, double scale);

/// Turns draws from any distribution into bytes 0 and 1 of one mask [sq, sk]: one element in three is masked; row 0, if
/// not the only one, and about one row in 16 are entirely masked, and one in 16 has only its last column unmasked.
void fill_softmax_mask(std::span<double> draws, std::int64_t sk);

}  // namespace numcheck::reference
