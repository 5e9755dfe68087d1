#include "reference/softmax_rules.hpp"

#include <bit>
#include <limits>

#include "core/rng.hpp"

namespace numcheck::reference {
namespace {

/// A word that depends on the draw's bits and position: equal draws yield different words.
std::uint32_t word_of(double draw, std::size_t index) {
  constexpr core::PhiloxKey kKey = {0x6d61736bU, 0x73667478U};
  const auto bits = std::bit_cast<std::uint64_t>(draw);
  const auto place = static_cast<std::uint64_t>(index);
  return core::philox4x32({static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32),
                           static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(place >> 32)},
                          kKey)[0];
}

}  // namespace

SoftmaxRow SoftmaxRules::row_of(std::int64_t row, const double* x, const double* mask_row) const {
  SoftmaxRow rules;
  rules.x = x;
  rules.mask = mask_row;
  rules.columns = static_cast<std::size_t>(op::columns_before_diagonal(mask, row, sq, sk));
  rules.scale = scale;
  rules.masked_score = replaces_by_number ? op::kMaskedScore : -std::numeric_limits<double>::infinity();
  const bool bottom_right = mask == op::SoftmaxMask::causal_bottom_right;
  if (bottom_right && replaces_by_number) {
    rules.hidden = static_cast<double>(op::softmax_lanes(sk)) - static_cast<double>(rules.columns);
  }
  rules.masked_is_zero = mask == op::SoftmaxMask::arbitrary || (bottom_right && !replaces_by_number);
  return rules;
}

SoftmaxRules softmax_rules(const std::string& mask, const std::string& masked_value, std::int64_t sq, std::int64_t sk,
                           double scale) {
  return {op::softmax_mask(mask), masked_value == "te", sq, sk, scale};
}

void fill_softmax_mask(std::span<double> draws, std::int64_t sk) {
  constexpr std::uint32_t kOneInThree = 0x55555555U;
  constexpr std::uint32_t kOneIn16 = 0x10000000U;
  const auto columns = static_cast<std::size_t>(sk);
  const std::size_t rows = draws.size() / columns;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::uint32_t kind = word_of(draws[row * columns], ~row);
    const bool all_masked = (row == 0 && rows > 1) || kind < kOneIn16;
    const bool one_shows = !all_masked && kind < 2 * kOneIn16;
    for (std::size_t j = 0; j < columns; ++j) {
      double& byte = draws[row * columns + j];
      const bool masked = one_shows ? j + 1 < columns : all_masked || word_of(byte, row * columns + j) < kOneInThree;
      byte = masked ? 1 : 0;
    }
  }
}

}  // namespace numcheck::reference
