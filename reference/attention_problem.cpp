#include "reference/attention_problem.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/dtype.hpp"
#include "core/isa.hpp"
#include "data/scaling.hpp"
#include "reference/attention_kernels.hpp"
#include "reference/special_rows.hpp"

namespace numcheck::reference {

namespace {

void add(const double* terms, std::span<double> sums) {
  for (std::size_t n = 0; n < sums.size(); ++n) {
    sums[n] += terms[n];
  }
}

ScoreRange range_of(std::span<double> scores) {
  return attention_kernels().scale(scores.data(), scores.size(), 1);
}

}  // namespace

const AttentionKernels& attention_kernels() noexcept {
  return NUMCHECK_ACTIVE_ISA(attention_kernels)();
}

FiniteRows::FiniteRows(const HeadRows& rows, std::int64_t count, std::int64_t channels) {
  before_.reserve(static_cast<std::size_t>(count) + 1);
  before_.push_back(0);
  for (std::int64_t i = 0; i < count; ++i) {
    const Magnitudes row =
        attention_kernels().magnitudes(rows.data + i * rows.stride, static_cast<std::size_t>(channels));
    before_.push_back(before_.back() + (row.finite && row.largest < kRoundsToInfinity ? 0 : 1));
  }
}

AttentionProblem::AttentionProblem(const op::AttentionParams& p, std::span<const op::Operand> operands)
    : p_(p),
      factor_(p.factor()),
      kind_(p.bias == "pre_scale"    ? Bias::pre_scale
            : p.bias == "post_scale" ? Bias::post_scale
            : p.bias == "alibi"      ? Bias::alibi
                                     : Bias::none),
      dropout_(p, operands),
      q_(op::operand_named(operands, "q")),
      k_(op::operand_named(operands, "k")),
      v_(op::operand_named(operands, "v")),
      bias_(op::find_operand(operands, "bias")),
      offset_(op::find_operand(operands, "softmax_offset")),
      q_lengths_(op::find_operand(operands, "q_lengths")),
      kv_lengths_(op::find_operand(operands, "kv_lengths")),
      weight_scale_(op::find_operand(operands, "s_scale")) {}

HeadRows AttentionProblem::rows(const op::Operand& operand, const op::HeadPlace& at) {
  return {operand.data + at.first, at.stride};
}

HeadRows AttentionProblem::queries(std::int64_t batch, std::int64_t head) const {
  return rows(q_, op::head_place(p_, op::Side::queries, batch, head, p_.d));
}

HeadRows AttentionProblem::keys(std::int64_t batch, std::int64_t head) const {
  const std::int64_t shared = head / (p_.heads / p_.key_heads());
  return rows(k_, op::head_place(p_, op::Side::keys, batch, shared, p_.d));
}

HeadRows AttentionProblem::values(std::int64_t batch, std::int64_t head) const {
  const std::int64_t shared = head / (p_.heads / p_.key_heads());
  return rows(v_, op::head_place(p_, op::Side::keys, batch, shared, p_.value_channels()));
}

Lengths AttentionProblem::lengths(std::int64_t batch) const {
  if (q_lengths_ == nullptr || kv_lengths_ == nullptr) {
    return {p_.sq, p_.sk};
  }
  return {static_cast<std::int64_t>(q_lengths_->data[batch]), static_cast<std::int64_t>(kv_lengths_->data[batch])};
}

std::vector<std::int64_t> AttentionProblem::all_lengths(op::Side side) const {
  std::vector<std::int64_t> all;
  for (std::int64_t batch = 0; batch < p_.batches; ++batch) {
    all.push_back(side == op::Side::queries ? lengths(batch).queries : lengths(batch).keys);
  }
  return all;
}

double AttentionProblem::sink(std::int64_t head) const {
  if (offset_ != nullptr) {
    return offset_->data[head];
  }
  return p_.softmax == "off_by_one" ? 0 : -std::numeric_limits<double>::infinity();
}

const double* AttentionProblem::bias_row(std::int64_t head, std::int64_t i, const op::KeyRange& keys) const {
  return bias_->data + (head * p_.sq + i) * p_.sk + keys.begin;
}

ScoreRange AttentionProblem::score(std::int64_t head, const Lengths& lengths, std::int64_t i, const op::KeyRange& keys,
                                   std::span<double> products) const {
  const ScoreRange range = score_inside(head, i, keys, products);
  return adds_bias_last() ? add_last_bias(head, lengths, i, keys, products) : range;
}

ScoreRange AttentionProblem::score_inside(std::int64_t head, std::int64_t i, const op::KeyRange& keys,
                                          std::span<double> products) const {
  if (kind_ == Bias::pre_scale && bias_ != nullptr) {
    add(bias_row(head, i, keys), products);
  }
  const ScoreRange range = attention_kernels().scale(products.data(), products.size(), factor_);
  if (p_.softcap == 0) {
    return range;
  }
  std::ranges::for_each(products, [this](double& x) { x = p_.softcap * std::tanh(x / p_.softcap); });
  return range_of(products);
}

ScoreRange AttentionProblem::add_last_bias(std::int64_t head, const Lengths& lengths, std::int64_t i,
                                           const op::KeyRange& keys, std::span<double> scores) const {
  if (kind_ == Bias::post_scale && bias_ != nullptr) {
    add(bias_row(head, i, keys), scores);
  } else if (kind_ == Bias::alibi) {
    const double slope = op::alibi_slope(head, p_.heads);
    const std::int64_t own = i + p_.diagonal(lengths.queries, lengths.keys);
    for (std::size_t n = 0; n < scores.size(); ++n) {
      scores[n] -= slope * static_cast<double>(std::abs(own - keys.begin - static_cast<std::int64_t>(n)));
    }
  }
  return range_of(scores);
}

bool AttentionProblem::has_special_scores(std::int64_t head, const Lengths& lengths) const {
  bool special = offset_ != nullptr && is_special(offset_->data[head]);
  for (std::int64_t i = 0; i < lengths.queries && bias_ != nullptr && !special; ++i) {
    const double* row = bias_row(head, i, {0, lengths.keys});
    special = std::any_of(row, row + lengths.keys, is_special);
  }
  return special;
}

void AttentionProblem::slopes(std::int64_t head, std::int64_t i, const op::KeyRange& keys,
                              std::span<const double> products, std::span<double> slopes) const {
  const double* bias = kind_ == Bias::pre_scale && bias_ != nullptr ? bias_row(head, i, keys) : nullptr;
  for (std::size_t n = 0; n < slopes.size(); ++n) {
    const double raw = factor_ * (products[n] + (bias == nullptr ? 0 : bias[n]));
    const double capped = std::tanh(raw / p_.softcap);
    slopes[n] = 1 - capped * capped;
  }
}

std::optional<double> AttentionProblem::least_weight() const {
  constexpr double kLeastNormal = 0x1p-6;  // of E4M3
  return weight_scale_ == nullptr ? std::nullopt : std::optional(kLeastNormal / weight_scale_->data[0]);
}

bool AttentionProblem::scales_fit(double largest_score) const {
  constexpr double kLargestProduct = 448.0 * 448, kLargest = 1e37, kLeastNormal = 0x1p-126;
  constexpr double kNegligible = 0x1p-24;  // a score whose loss changes no weight by more than an ulp
  if (weight_scale_ == nullptr) {
    return true;
  }
  double most = kLargestProduct * static_cast<double>(p_.d), least = 1;
  for (const double factor : {std::fabs(factor_), q_.scale, k_.scale}) {
    most *= std::max(1.0, factor);
    least *= std::min(1.0, factor);
  }
  const double values = kLargestProduct * static_cast<double>(p_.sk) * std::max(1.0, v_.scale);
  const double least_value = std::min(1.0, v_.scale) / weight_scale_->data[0];
  return std::max(most, values) <= kLargest && least_value >= kLeastNormal &&
         (least >= kLeastNormal || largest_score < kNegligible);
}

void derive_lengths(const op::AttentionParams& p, std::string_view port, std::span<double> values) {
  const op::Side side = port == "q_lengths" ? op::Side::queries : op::Side::keys;
  for (std::size_t b = 0; b < values.size(); ++b) {
    values[b] = static_cast<double>(op::sequence_length(p, side, static_cast<std::int64_t>(b)));
  }
}

void derive_weight_scale(std::string_view port, std::span<double> values) {
  const float scale = data::scale_from_amax(1, core::Dtype::fp8_e4m3);
  values[0] = static_cast<double>(port == "s_scale" ? scale : data::scale_inverse(scale));
}

bool is_attention_input(std::string_view port) noexcept {
  static constexpr std::array<std::string_view, 5> kPorts = {"q_lengths", "kv_lengths", "dropout_mask", "s_scale",
                                                             "s_scale_inv"};
  return std::ranges::find(kPorts, port) != kPorts.end();
}

void derive_attention_input(const op::AttentionParams& p, std::string_view port, std::span<double> values) {
  if (port == "dropout_mask") {
    derive_dropout_mask(p, values);
  } else if (port == "s_scale" || port == "s_scale_inv") {
    derive_weight_scale(port, values);
  } else {
    derive_lengths(p, port, values);
  }
}

}  // namespace numcheck::reference
