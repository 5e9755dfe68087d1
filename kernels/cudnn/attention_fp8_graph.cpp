#include "kernels/cudnn/attention_fp8_graph.hpp"

#include <string_view>

#include "kernels/cudnn/attention_scores.hpp"
#include "kernels/cudnn/attention_softmax.hpp"

namespace numcheck::kernels::cudnn {
namespace {

using Tensor = AttentionScores::Tensor;

/// A product of two scaled operands that becomes a scaled tensor.
struct ScaledProduct {
  Matmul matmul;                   ///< without c
  Layout layout;                   ///< of c
  std::string_view first, second;  ///< the inverse scales of its operands
  std::string_view name;           ///< port of the result
  Tensor result;
  Layout result_layout;  ///< with fewer heads than `layout` where heads are added up
};

/// What both directions do with scales.
class ScaledGraph {
 public:
  ScaledGraph(Graph& graph, const Call& call) : graph_(graph), call_(call), s_(graph, call, false) {}

 protected:
  Tensor scalar(std::string_view name) { return s_.scalar_port(name); }

  /// x times a number, in a tensor like x.
  Tensor times(Tensor x, std::string_view factor, const Layout& layout, DataType type = DataType::fp32) {
    return s_.binary(PointwiseMode::mul, x, scalar(factor), &graph_.intermediate(type, layout));
  }
  Tensor times(Tensor x, Tensor factor) { return s_.binary(PointwiseMode::mul, x, factor, s_.score_tensor()); }

  void amax(Tensor x, std::string_view name) { graph_.reduce(ReduceOperator::amax, *x, *scalar(name)); }

  /// Masked scores of q and k^T.
  Tensor scores(Tensor q, Tensor k) {
    const Tensor products = s_.score_tensor();
    graph_.matmul({.a = q, .b = k, .c = products, .rows = s_.q_lengths(), .columns = s_.kv_lengths()});
    return s_.within_bounds(s_.within_lengths(s_.scored(products)));
  }

  void multiply(const ScaledProduct& p) {
    Tensor x = &graph_.intermediate(DataType::fp32, p.layout);
    Matmul matmul = p.matmul;
    matmul.c = x;
    graph_.matmul(matmul);
    const Layout whole = dense_layout(p.result_layout.dimensions);
    if (p.result_layout.dimensions != p.layout.dimensions) {
      const Tensor sum = &graph_.intermediate(DataType::fp32, whole);
      graph_.reduce(ReduceOperator::add, *x, *sum);
      x = sum;
    }
    x = times(times(x, p.first, whole), p.second, whole);
    s_.binary(PointwiseMode::mul, x, scalar(std::string(p.name) + "_scale"), p.result);
    amax(x, std::string(p.name) + "_amax");
  }

  Graph& graph_;
  const Call& call_;
  AttentionScores s_;
};

class Forward : ScaledGraph {
 public:
  using ScaledGraph::ScaledGraph;

  void build() {
    const op::AttentionParams& p = s_.params();
    const Tensor masked = scores(s_.query_port("q", p.d), s_.transposed_key_port("k", p.d));
    const Tensor weights = softmax_graph(graph_, s_, masked, DataType::fp32);
    amax(weights, "s_amax");
    const Layout layout = s_.query_layout("o", p.value_channels());
    multiply({.matmul = {.a = times(weights, "s_scale", s_.score_layout(), s_.format()),
                         .b = s_.key_port("v", p.value_channels()),
                         .c = nullptr,
                         .rows = s_.q_lengths(),
                         .inner = s_.kv_lengths()},
              .layout = dense_layout(layout.dimensions),
              .first = "s_scale_inv",
              .second = "v_scale_inv",
              .name = "o",
              .result = s_.query_port("o", p.value_channels()),
              .result_layout = layout});
  }
};

class Backward : ScaledGraph {
 public:
  using ScaledGraph::ScaledGraph;

  void build() {
    const op::AttentionParams& p = s_.params();
    const Tensor q = s_.query_port("q", p.d);
    const Tensor k = s_.transposed_key_port("k", p.d);
    const Tensor v = s_.transposed_key_port("v", p.value_channels());
    const Tensor gradient = s_.query_port("do", p.value_channels());
    const Tensor lse = s_.statistics_port();
    const Tensor sums = row_sums(gradient, lse);

    const Tensor lowered = s_.binary(PointwiseMode::sub, scores(q, k), lse, s_.score_tensor());
    const Tensor weights = s_.unary(PointwiseMode::exp, lowered, s_.score_tensor());
    key_gradient("dv", times(weights, "s_scale", s_.score_layout(), s_.format()), s_.format(), gradient, "s_scale_inv",
                 "do_scale_inv", p.value_channels());

    const Tensor changes = score_gradient(gradient, v, weights, sums);
    query_gradient(changes, k);
    key_gradient("dk", changes, s_.gradient_format(), q, "dp_scale_inv", "q_scale_inv", p.d);
  }

 private:
  /// D, and from it the gradient of a sink.
  Tensor row_sums(Tensor gradient, Tensor lse) {
    const op::AttentionParams& p = s_.params();
    const Layout wide = dense_layout({p.batches, p.heads, p.sq, p.value_channels()});
    const Tensor products = s_.binary(PointwiseMode::mul, gradient, s_.query_port("o", p.value_channels()),
                                      &graph_.intermediate(DataType::fp32, wide));
    Tensor sums = s_.row_tensor();
    graph_.reduce(ReduceOperator::add, *products, *sums);
    sums = times(times(sums, "do_scale_inv", s_.row_layout()), "o_scale_inv", s_.row_layout());
    if (p.softmax == "learnable") {
      const Tensor share =
          s_.unary(PointwiseMode::exp, s_.binary(PointwiseMode::sub, s_.sink(), lse, s_.row_tensor()), s_.row_tensor());
      const Tensor each = s_.binary(PointwiseMode::mul, share, sums, s_.row_tensor());
      graph_.reduce(ReduceOperator::add, *each, *s_.offset_port("dsoftmax_offset"));
      // The factor is where the pattern has that of dropout.
      sums = s_.binary(PointwiseMode::mul, sums, &graph_.scalar(core::Dtype::fp32, 1), s_.row_tensor());
    }
    return sums;
  }

  Tensor score_gradient(Tensor gradient, Tensor v, Tensor weights, Tensor sums) {
    const Tensor products = s_.score_tensor();
    graph_.matmul({.a = gradient, .b = v, .c = products, .rows = s_.q_lengths(), .columns = s_.kv_lengths()});
    Tensor changes = times(times(products, scalar("do_scale_inv")), scalar("v_scale_inv"));
    changes = s_.binary(PointwiseMode::sub, changes, sums, s_.score_tensor());
    changes = times(changes, weights);
    if (s_.params().softcap != 0) {
      changes = s_.uncapped(changes);
    }
    changes = times(changes, s_.scale());
    amax(changes, "dp_amax");
    return times(changes, "dp_scale", s_.score_layout(), s_.gradient_format());
  }

  /// factors^T rows, summed over the heads that share a key.
  void key_gradient(std::string_view name, Tensor factors, DataType format, Tensor rows, std::string_view first,
                    std::string_view second, std::int64_t channels) {
    const op::AttentionParams& p = s_.params();
    Layout turned = dense_layout({p.batches, p.heads, p.sk, p.sq});
    turned.strides[2] = 1;
    turned.strides[3] = p.sk;
    const Tensor exchanged = &graph_.intermediate(format, turned);
    graph_.reshape(*factors, *exchanged);
    multiply({.matmul = {.a = exchanged, .b = rows, .c = nullptr, .rows = s_.kv_lengths(), .inner = s_.q_lengths()},
              .layout = dense_layout({p.batches, p.heads, p.sk, channels}),
              .first = first,
              .second = second,
              .name = name,
              .result = s_.key_port(name, channels),
              .result_layout = s_.key_layout(name, channels)});
  }

  void query_gradient(Tensor changes, Tensor transposed_keys) {
    const op::AttentionParams& p = s_.params();
    const Tensor keys = s_.keys_again();
    graph_.reshape(*transposed_keys, *keys);
    const Layout layout = s_.query_layout("dq", p.d);
    multiply({.matmul = {.a = changes, .b = keys, .c = nullptr, .rows = s_.q_lengths(), .inner = s_.kv_lengths()},
              .layout = dense_layout(layout.dimensions),
              .first = "dp_scale_inv",
              .second = "k_scale_inv",
              .name = "dq",
              .result = s_.query_port("dq", p.d),
              .result_layout = layout});
  }
};

}  // namespace

void build_fp8_forward(Graph& graph, const Call& call) {
  Forward(graph, call).build();
}

void build_fp8_backward(Graph& graph, const Call& call) {
  Backward(graph, call).build();
}

}  // namespace numcheck::kernels::cudnn
