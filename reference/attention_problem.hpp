// Attention as the references see it: rows of heads in any layout, and scores.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "op/attention_layout.hpp"
#include "op/reference.hpp"
#include "reference/attention_dropout.hpp"
#include "reference/attention_kernels.hpp"

namespace numcheck::reference {

/// Positions of one head: row i is at data + i * stride.
struct HeadRows {
  const double* data = nullptr;
  std::int64_t stride = 0;
};

/// Which rows of a head have only channels that are finite, in TF32 as well (special_rows.hpp).
class FiniteRows {
 public:
  FiniteRows() = default;
  FiniteRows(const HeadRows& rows, std::int64_t count, std::int64_t channels);
  /// Whether all of [begin, end) have.
  [[nodiscard]] bool all(std::int64_t begin, std::int64_t end) const {
    return before_[static_cast<std::size_t>(begin)] == before_[static_cast<std::size_t>(end)];
  }

 private:
  std::vector<std::int64_t> before_;  ///< how many before each row have not
};

/// Queries and keys of one sequence.
struct Lengths {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
};

/// Operands are those of the ports of op::attention_fwd, dequantised; they must outlive this object.
class AttentionProblem {
 public:
  AttentionProblem(const op::AttentionParams& p, std::span<const op::Operand> operands);

  [[nodiscard]] const op::AttentionParams& params() const noexcept { return p_; }
  [[nodiscard]] HeadRows queries(std::int64_t batch, std::int64_t head) const;
  /// Keys and values that `head` of the queries uses.
  [[nodiscard]] HeadRows keys(std::int64_t batch, std::int64_t head) const;
  [[nodiscard]] HeadRows values(std::int64_t batch, std::int64_t head) const;
  [[nodiscard]] Lengths lengths(std::int64_t batch) const;
  /// Of all sequences.
  [[nodiscard]] std::vector<std::int64_t> all_lengths(op::Side side) const;
  /// Logarithm of what the denominator has besides the keys; -infinity: nothing.
  [[nodiscard]] double sink(std::int64_t head) const;
  /// Turns products of query i's and keys' channels into scores: those of the keys [keys.begin, keys.end).
  ScoreRange score(std::int64_t head, const Lengths& lengths, std::int64_t i, const op::KeyRange& keys,
                   std::span<double> products) const;
  /// That in two steps: before and after a post_scale bias or alibi, if there is one.
  ScoreRange score_inside(std::int64_t head, std::int64_t i, const op::KeyRange& keys,
                          std::span<double> products) const;
  /// Precondition: adds_bias_last().
  ScoreRange add_last_bias(std::int64_t head, const Lengths& lengths, std::int64_t i, const op::KeyRange& keys,
                           std::span<double> scores) const;
  [[nodiscard]] bool adds_bias_last() const noexcept { return kind_ == Bias::post_scale || kind_ == Bias::alibi; }
  /// Derivatives of these scores' caps, from the products. Precondition: there is a cap.
  void slopes(std::int64_t head, std::int64_t i, const op::KeyRange& keys, std::span<const double> products,
              std::span<double> slopes) const;
  /// True if a bias or the sink of these queries and keys is not finite, but for the sink of a softmax that has none.
  [[nodiscard]] bool has_special_scores(std::int64_t head, const Lengths& lengths) const;
  [[nodiscard]] double factor() const noexcept { return factor_; }
  [[nodiscard]] const AttentionDropout& dropout() const noexcept { return dropout_; }
  /// Only those may be rounded to TF32 before they are multiplied.
  [[nodiscard]] bool has_fp32_tensors() const noexcept { return q_.dtype == core::Dtype::fp32; }
  /// By what codes were multiplied; 1 in modes without scales.
  [[nodiscard]] double query_scale() const noexcept { return q_.scale; }
  [[nodiscard]] double key_scale() const noexcept { return k_.scale; }
  [[nodiscard]] double value_scale() const noexcept { return v_.scale; }
  /// The smallest weight that is a normal number of its FP8 format, 2^-6 / s_scale; nothing in modes without scales.
  [[nodiscard]] std::optional<double> least_weight() const;
  /// False if multiplying codes by their scales may, in some order, overflow in FP32, or lose bits to its subnormal range
  /// that scores of up to `largest_score`, or outputs, have. True in modes without scales.
  [[nodiscard]] bool scales_fit(double largest_score) const;

 private:
  enum class Bias { none, pre_scale, post_scale, alibi };
  /// Biases of a query's keys, from keys.begin on. Precondition: there is a tensor of them.
  [[nodiscard]] const double* bias_row(std::int64_t head, std::int64_t i, const op::KeyRange& keys) const;
  [[nodiscard]] static HeadRows rows(const op::Operand& operand, const op::HeadPlace& at);

  op::AttentionParams p_;
  double factor_;
  Bias kind_;
  AttentionDropout dropout_;
  const op::Operand& q_;
  const op::Operand& k_;
  const op::Operand& v_;
  const op::Operand* bias_;
  const op::Operand* offset_;
  const op::Operand* q_lengths_;
  const op::Operand* kv_lengths_;
  const op::Operand* weight_scale_;
};

/// Sets the values of port q_lengths or kv_lengths.
void derive_lengths(const op::AttentionParams& p, std::string_view port, std::span<double> values);

/// Whether draws or the mode alone become that port: lengths, the dropout mask, the scale of FP8 weights and its inverse.
[[nodiscard]] bool is_attention_input(std::string_view port) noexcept;
/// Derives them. Precondition: is_attention_input.
void derive_attention_input(const op::AttentionParams& p, std::string_view port, std::span<double> values);
/// The scale of FP8 weights, which are at most 1, or its inverse: ports s_scale, s_scale_inv.
void derive_weight_scale(std::string_view port, std::span<double> values);

}  // namespace numcheck::reference
