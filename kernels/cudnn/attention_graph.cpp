#include "kernels/cudnn/attention_graph.hpp"

#include "kernels/cudnn/attention_fp8_graph.hpp"
#include "kernels/cudnn/attention_scores.hpp"
#include "kernels/cudnn/attention_softmax.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fp8.hpp"
#include "op/attention_fwd.hpp"

namespace numcheck::kernels::cudnn {
namespace {

using Tensor = AttentionScores::Tensor;

bool is_forward(const Call& call) {
  return call.c->op == &op::attention_fwd();
}

Tensor score_products(Graph& graph, AttentionScores& s, Tensor q, Tensor k) {
  const Tensor products = s.score_tensor();
  graph.matmul({.a = q, .b = k, .c = products, .rows = s.q_lengths(), .columns = s.kv_lengths()});
  return products;
}

void build_forward(Graph& graph, const Call& call) {
  AttentionScores s(graph, call, false);
  const op::AttentionParams& p = s.params();
  Tensor scores = score_products(graph, s, s.query_port("q", p.d), s.transposed_key_port("k", p.d));
  scores = s.within_bounds(s.within_lengths(s.scored(scores)));
  const Tensor weights = softmax_graph(graph, s, scores, s.format());
  graph.matmul({.a = weights,
                .b = s.key_port("v", p.value_channels()),
                .c = s.query_port("o", p.value_channels()),
                .rows = s.q_lengths(),
                .inner = s.kv_lengths()});
}

/// The backward pass, in the order that the header says.
class Backward {
 public:
  Backward(const Library& library, Graph& graph, const Call& call, bool accumulated)
      : graph_(graph),
        s_(graph, call, gets_full_lengths(call, library.get_version())),
        p_(s_.params()),
        accumulated_(accumulated) {}

  void build() {
    const Tensor q = s_.query_port("q", p_.d);
    const Tensor k = s_.transposed_key_port("k", p_.d);
    const Tensor v = s_.transposed_key_port("v", p_.value_channels());
    const Tensor gradient = s_.query_port("do", p_.value_channels());
    const Tensor lse = s_.statistics_port();
    const Tensor sums = row_sums(gradient, lse);

    Tensor scores = s_.within_lengths(s_.scored(score_products(graph_, s_, q, k)));
    scores = s_.binary(PointwiseMode::sub, scores, lse, s_.score_tensor());
    const Tensor weights = s_.unary(PointwiseMode::exp, s_.within_bounds(scores), s_.score_tensor());
    key_gradient(dropped(weights), gradient, "dv", p_.value_channels());

    const Tensor changes = score_gradient(score_products(graph_, s_, gradient, v), weights, sums);
    key_gradient(changes, q, "dk", p_.d);
    query_gradient(changes, k);
  }

 private:
  /// D, and from it the gradient of a sink.
  Tensor row_sums(Tensor gradient, Tensor lse) {
    const Layout wide = dense_layout({p_.batches, p_.heads, p_.sq, p_.value_channels()});
    const Tensor products = s_.binary(PointwiseMode::mul, gradient, s_.query_port("o", p_.value_channels()),
                                      &graph_.intermediate(DataType::fp32, wide));
    const Tensor sums = s_.row_tensor();
    graph_.reduce(ReduceOperator::add, *products, *sums);
    if (p_.softmax == "learnable") {
      const Tensor lowered = s_.binary(PointwiseMode::sub, s_.sink(), lse, s_.row_tensor());
      const Tensor share = s_.unary(PointwiseMode::exp, lowered, s_.row_tensor());
      const Tensor each = s_.binary(PointwiseMode::mul, share, sums, s_.row_tensor());
      graph_.reduce(ReduceOperator::add, *each, *s_.offset_port("dsoftmax_offset"));
    }
    // The pattern divides dp and D by 1 - dropout together, later.
    const Tensor share = &graph_.scalar(core::Dtype::fp32, 1 - p_.dropout);
    return s_.binary(PointwiseMode::mul, sums, share, &graph_.auxiliary(DataType::fp32, s_.row_layout()));
  }

  Tensor dropped(Tensor weights) {
    if (s_.dropout_mask() == nullptr) {
      return weights;
    }
    const Tensor kept = s_.binary(PointwiseMode::mul, weights, s_.dropout_mask(), s_.score_tensor());
    return s_.binary(PointwiseMode::mul, kept, s_.keep_scale(), s_.score_tensor());
  }

  Tensor score_gradient(Tensor products, Tensor weights, Tensor sums) {
    const bool drops = s_.dropout_mask() != nullptr;
    if (drops) {
      products = s_.binary(PointwiseMode::mul, products, s_.dropout_mask(), s_.score_tensor());
    }
    Tensor changes = s_.binary(PointwiseMode::sub, products, sums, s_.score_tensor());
    changes = s_.binary(PointwiseMode::mul, changes, weights, s_.score_tensor());
    if (drops) {
      changes = s_.binary(PointwiseMode::mul, changes, s_.keep_scale(), s_.score_tensor());
    }
    if (p_.bias == "post_scale") {
      graph_.reduce(ReduceOperator::add, *changes, *s_.bias_port("dbias"));
    }
    if (p_.softcap != 0) {
      changes = s_.uncapped(changes);
    }
    changes = s_.binary(PointwiseMode::mul, changes, s_.scale(), s_.score_tensor());
    if (p_.bias == "pre_scale") {
      graph_.reduce(ReduceOperator::add, *changes, *s_.bias_port("dbias"));
    }
    return changes;
  }

  /// factors^T rows, summed over the heads that share a key.
  void key_gradient(Tensor factors, Tensor rows, std::string_view name, std::int64_t channels) {
    Layout turned = dense_layout({p_.batches, p_.heads, p_.sk, p_.sq});
    turned.strides[2] = 1;
    turned.strides[3] = p_.sk;
    const Tensor exchanged = &graph_.intermediate(s_.format(), turned);
    graph_.reshape(*factors, *exchanged);
    const bool shared = p_.key_heads() != p_.heads;
    const Tensor out = s_.key_port(name, channels);
    const Tensor each =
        shared ? &graph_.intermediate(s_.format(), dense_layout({p_.batches, p_.heads, p_.sk, channels})) : out;
    graph_.matmul({.a = exchanged, .b = rows, .c = each, .rows = s_.kv_lengths(), .inner = s_.q_lengths()});
    if (shared) {
      graph_.reduce(ReduceOperator::add, *each, *out);
    }
  }

  void query_gradient(Tensor changes, Tensor transposed_keys) {
    const Tensor keys = s_.keys_again();
    graph_.reshape(*transposed_keys, *keys);
    const Tensor out = s_.query_port("dq", p_.d);
    const Tensor sum =
        accumulated_ ? &graph_.auxiliary(DataType::fp32, dense_layout({p_.batches, p_.heads, p_.sq, p_.d})) : out;
    graph_.matmul({.a = changes, .b = keys, .c = sum, .rows = s_.q_lengths(), .inner = s_.kv_lengths()});
    if (accumulated_) {
      s_.unary(PointwiseMode::identity, sum, out);
    }
  }

  Graph& graph_;
  AttentionScores s_;
  const op::AttentionParams& p_;
  bool accumulated_;
};

void build_unified(Graph& graph, const Call& call) {
  AttentionScores s(graph, call, false);
  const op::AttentionParams& p = s.params();
  graph.sdpa_forward({.q = s.query_port("q", p.d),
                      .k = s.key_port("k", p.d),
                      .v = s.key_port("v", p.value_channels()),
                      .o = s.query_port("o", p.value_channels()),
                      .statistics = s.statistics_port(),
                      .scale = s.scale(),
                      .q_lengths = s.q_lengths(),
                      .kv_lengths = s.kv_lengths()});
}

/// True if one operation says it all. Source: cudnn-frontend 1.23, sdpa_support_surface.h.
bool is_unified(const op::AttentionParams& p, std::size_t version) {
  constexpr std::size_t kFirst = 91301;
  constexpr std::size_t kFirstWithLengths = 91500;
  constexpr std::size_t kFirstWithSoftmaxOperation = 92100;  // which then has the statistics
  const bool masked = p.is_causal() || p.window_left >= 0 || p.window_right >= 0;
  return version >= (p.has_lengths() ? kFirstWithLengths : kFirst) && version < kFirstWithSoftmaxOperation && !masked &&
         p.bias == "none" && p.softmax == "vanilla" && p.softcap == 0 && !p.has_dropout() && !p.max_logit;
}

}  // namespace

std::string_view form_name(AttentionForm form) noexcept {
  switch (form) {
    case AttentionForm::composite:
      return "composite";
    case AttentionForm::accumulated:
      return "accumulated";
    case AttentionForm::unified:
      break;
  }
  return "unified";
}

std::vector<AttentionForm> attention_forms(const Call& call, std::size_t version) {
  if (op::has_scales(*call.c->mode)) {
    return {AttentionForm::composite};
  }
  const auto p = op::from_params<op::AttentionParams>(call.c->params);
  if (!is_forward(call)) {
    // Source: cudnn-frontend 1.23, scaled_dot_product_flash_attention.h: "dBias is only supported on workspace
    // implementation"; engines accept it and leave dbias unwritten (9.14 and 9.19, H200).
    return p.has_bias_tensor() ? std::vector{AttentionForm::composite}
                               : std::vector{AttentionForm::composite, AttentionForm::accumulated};
  }
  std::vector<AttentionForm> forms = {AttentionForm::composite};
  if (is_unified(p, version)) {
    forms.push_back(AttentionForm::unified);
  }
  return forms;
}

std::string_view unordered_sum(const Call& call, AttentionForm form) {
  if (is_forward(call)) {
    return {};
  }
  if (op::from_params<op::AttentionParams>(call.c->params).softmax == "learnable") {
    return "dsoftmax_offset";
  }
  return form == AttentionForm::accumulated ? "dq" : "";
}

bool gets_full_lengths(const Call& call, std::size_t version) {
  constexpr std::size_t kFirstSafe = 91501;
  constexpr std::int64_t kKeysPerTile = 128;
  const auto p = op::from_params<op::AttentionParams>(call.c->params);
  return !is_forward(call) && !p.has_lengths() && version < kFirstSafe && p.sk % kKeysPerTile != 0;
}

std::shared_ptr<Graph> attention_graph(const Library& library, const Call& call, AttentionForm form) {
  auto graph = std::make_shared<Graph>(library);
  if (op::has_scales(*call.c->mode)) {
    is_forward(call) ? build_fp8_forward(*graph, call) : build_fp8_backward(*graph, call);
  } else if (form == AttentionForm::unified) {
    build_unified(*graph, call);
  } else if (is_forward(call)) {
    build_forward(*graph, call);
  } else {
    Backward(library, *graph, call, form == AttentionForm::accumulated).build();
  }
  return graph;
}

}  // namespace numcheck::kernels::cudnn
