// The part of attention's graphs that forward and backward share: tensors, and from q k^T to masked scores.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/cudnn/graph.hpp"
#include "op/attention_layout.hpp"

namespace numcheck::kernels::cudnn {

/// Puts tensors and operations of one case into a graph. Pointers are to tensors of the graph.
class AttentionScores {
 public:
  using Tensor = const Descriptor*;

  /// `full_lengths`: a case without lengths gets those of the whole sequences.
  AttentionScores(Graph& graph, const Call& call, bool full_lengths);

  [[nodiscard]] const op::AttentionParams& params() const noexcept { return p_; }
  /// The format of q, k, v and o.
  [[nodiscard]] DataType format() const noexcept { return format_; }
  /// That of do, dq, dk and dv.
  [[nodiscard]] DataType gradient_format() const noexcept { return gradient_format_; }

  /// The port q, do, o, dq, or k, v, dk, dv.
  Tensor query_port(std::string_view name, std::int64_t channels);
  Tensor key_port(std::string_view name, std::int64_t channels);
  /// [batches, kv_heads, channels, sk]: k or v as the second factor of a product.
  Tensor transposed_key_port(std::string_view name, std::int64_t channels);
  /// [batches, heads, length, channels] with the strides of the port.
  [[nodiscard]] Layout query_layout(std::string_view name, std::int64_t channels) const;
  [[nodiscard]] Layout key_layout(std::string_view name, std::int64_t channels) const;
  /// What q k^T's second factor is transposed to, with the strides of port k.
  Tensor keys_again();
  /// lse: one number per query.
  Tensor statistics_port();
  Tensor max_logit_port();  ///< the same
  Tensor bias_port(std::string_view name);
  Tensor offset_port(std::string_view name);
  /// A single number; every mention is the same tensor.
  Tensor scalar_port(std::string_view name);
  /// What the denominator has besides the keys, as a logarithm; null: nothing.
  Tensor sink();
  Tensor scale() const noexcept { return scale_; }
  Tensor q_lengths() const noexcept { return q_lengths_; }
  Tensor kv_lengths() const noexcept { return kv_lengths_; }

  /// Intermediate [batches, heads, sq, sk], and [batches, heads, sq, 1].
  Tensor score_tensor(DataType type = DataType::fp32);
  Tensor row_tensor();
  [[nodiscard]] Layout score_layout() const;
  [[nodiscard]] Layout row_layout() const;
  Tensor unary(PointwiseMode mode, Tensor x, Tensor y);
  Tensor binary(PointwiseMode mode, Tensor x, Tensor b, Tensor y);

  /// Scores with scale (in FP8 also those of q and k), cap, bias and alibi, not masked.
  Tensor scored(Tensor products);
  /// [batches, heads, sq, sk], 1 = kept; null: no dropout. 1 / (1 - dropout); null: no dropout.
  Tensor dropout_mask() const noexcept { return dropout_mask_; }
  Tensor keep_scale() const noexcept { return keep_scale_; }
  /// The cap's derivative times `gradient`. Precondition: scored() was called and there is a cap.
  Tensor uncapped(Tensor gradient);
  Tensor within_lengths(Tensor scores);
  /// Causal masks and windows.
  Tensor within_bounds(Tensor scores);

 private:
  /// Layout thd: the elements that sequences begin with, where a token has so many elements; null for other layouts.
  Tensor starts(op::Side side, std::int64_t token);
  Tensor row_port(std::string_view name);
  Tensor head_port(std::string_view name, op::Side side, std::int64_t channels, bool is_transposed);
  Tensor biased(Tensor scores);
  Tensor sloped(Tensor scores);
  Tensor index(Tensor scores, std::int64_t axis);
  Tensor shifted(PointwiseMode mode, Tensor index, Tensor by);
  Tensor integer(std::int64_t value);
  Tensor selected(Tensor scores, Tensor where);
  Tensor compared(PointwiseMode mode, Tensor x, Tensor b);
  Tensor bounded_right(Tensor scores, std::int64_t bound);
  Tensor bounded_left(Tensor scores, std::int64_t bound);

  /// A mask from the engine's own generator, with rng_seed and the offset 0.
  Tensor drawn_mask();

  Graph& graph_;
  const Call& call_;
  op::AttentionParams p_;
  DataType format_, gradient_format_;
  Tensor scale_;
  Tensor q_lengths_ = nullptr;
  Tensor kv_lengths_ = nullptr;
  Tensor dropout_mask_ = nullptr;
  Tensor keep_scale_ = nullptr;
  Tensor cap_ = nullptr;
  Tensor before_cap_ = nullptr;
  std::map<std::pair<op::Side, std::int64_t>, Tensor> starts_;
  std::map<std::string, Tensor, std::less<>> scalars_;
};

}  // namespace numcheck::kernels::cudnn
