#include "op/moe.hpp"

#include <limits>
#include <vector>

#include <fmt/format.h>

#include "kernels/transformer_engine/bindings.hpp"
#include "kernels/transformer_engine/launch.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

/// NVTE's numbers for the score functions.
constexpr int kSigmoid = 0, kSoftmax = 1;

std::string rows_obstacle(const Context& context, const Call& call, std::int64_t hidden, std::string_view function) {
  if (std::string layout = layout_obstacle(call); !layout.empty()) {
    return layout;
  }
  const std::int64_t bytes = hidden * core::dtype_info(call.c->mode->first).storage_bytes;
  if (bytes % 16 != 0) {
    return fmt::format("TransformerEngine moves rows 16 bytes at a time; a row of {} columns has {} bytes", hidden,
                       bytes);
  }
  return context.library.lacks({function});
}

std::string permute_obstacle(const Context& context, const Call& call) {
  return rows_obstacle(context, call, op::from_params<op::MoePermuteParams>(call.c->params).hidden, kPermute.name);
}

std::string unpermute_obstacle(const Context& context, const Call& call) {
  return rows_obstacle(context, call, op::from_params<op::MoeUnpermuteParams>(call.c->params).hidden, kUnpermute.name);
}

std::string router_obstacle(const Context& context, const Call& call) {
  if (std::string layout = layout_obstacle(call); !layout.empty()) {
    return layout;
  }
  const auto p = op::from_params<op::RouterTopkParams>(call.c->params);
  if (p.tokens > std::numeric_limits<int>::max() / p.experts) {
    return "TransformerEngine's router counts scores in 32 bits";
  }
  if (call.c->mode->first != core::Dtype::fp32 && !context.library.at_least(2, 13).value_or(true)) {
    return fmt::format(
        "TransformerEngine {} computes the router's scores in the tensor's format, 2.13 and newer in FP32",
        context.library.version());
  }
  return context.library.lacks({kRouterTopk.name});
}

/// Which copy (token * topk + k) goes to each place, the dropped ones at the end: the inverse of the map.
std::vector<std::int32_t> sorted_copies(const op::MoePermuteParams& p, const std::vector<std::int32_t>& map) {
  std::vector<std::int32_t> sorted(map.size());
  std::size_t next_dropped = map.size() - static_cast<std::size_t>(p.dropped);
  for (std::int64_t k = 0; k < p.topk; ++k) {
    for (std::int64_t token = 0; token < p.tokens; ++token) {
      const std::int32_t place = map[static_cast<std::size_t>(k * p.tokens + token)];
      const std::size_t index = place < 0 ? next_dropped++ : static_cast<std::size_t>(place);
      sorted.at(index) = static_cast<std::int32_t>(token * p.topk + k);
    }
  }
  return sorted;
}

Enqueue prepare_permute(Operands& o, const op::MoePermuteParams& p) {
  const std::int64_t copies = p.topk * p.tokens;
  std::vector<std::int32_t> map(static_cast<std::size_t>(copies));
  DeviceMemory& memory = o.context().device->memory();
  memory.download(std::as_writable_bytes(std::span(map)), o.data("row_id_map"));
  std::byte* sorted_memory = o.extra();
  std::byte* map_memory = sorted_memory + aligned(map.size() * sizeof(std::int32_t));
  const std::vector<std::int32_t> order = sorted_copies(p, map);
  memory.upload(sorted_memory, std::as_bytes(std::span(order)));

  Handle x = o.input("x", {p.tokens, p.hidden}).handle();
  Handle y = o.input("y", {copies - p.dropped, p.hidden}).handle();
  Handle sorted = o.tensor(sorted_memory, kInt32, {copies}).handle();
  Handle made = o.tensor(map_memory, kInt32, {copies}).handle();
  Handle none = o.none().handle();
  return [=, &o](Handle) {
    o.context().library.call(kPermute, x, y, sorted, made, none, none, none, static_cast<int>(p.tokens),
                             static_cast<int>(p.topk), static_cast<int>(p.hidden), static_cast<int>(copies - p.dropped),
                             o.stream());
  };
}

Algorithm permute_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::MoePermuteParams>(call.c->params);
  const std::size_t map_bytes = aligned(static_cast<std::size_t>(p.topk * p.tokens) * sizeof(std::int32_t));
  return single_call(context, kPermute.name, [p](Operands& o) { return prepare_permute(o, p); }, 2 * map_bytes);
}

Algorithm unpermute_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::MoeUnpermuteParams>(call.c->params);
  return single_call(context, kUnpermute.name, [p](Operands& o) -> Enqueue {
    const std::int64_t copies = p.topk * p.tokens;
    Handle x = o.input("x", {copies - p.dropped, p.hidden}).handle();
    Handle y = o.input("y", {p.tokens, p.hidden}).handle();
    Handle map = o.input("row_id_map", {copies}).handle();
    Handle probs = p.probs ? o.input("probs", {p.tokens, p.topk}).handle() : o.none().handle();
    return [=, &o](Handle) {
      o.context().library.call(kUnpermute, x, y, map, probs, static_cast<int>(p.tokens), static_cast<int>(p.topk),
                               static_cast<int>(p.hidden), o.stream());
    };
  });
}

Algorithm router_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::RouterTopkParams>(call.c->params);
  // What the backward pass needs: FP32 scores, or scores in the tensor's format in older versions.
  const std::size_t scores_bytes = static_cast<std::size_t>(p.tokens * p.experts) * sizeof(float);
  return single_call(
      context, kRouterTopk.name,
      [p](Operands& o) -> Enqueue {
        Handle logits = o.input("logits", {p.tokens, p.experts}).handle();
        Handle probs = o.input("probs", {p.tokens, p.experts}).handle();
        Handle map = o.input("routing_map", {p.tokens, p.experts}).handle();
        Handle scores = o.tensor(o.extra(), kFloat32, {p.tokens, p.experts}).handle();
        Handle no_bias = o.none().handle();
        return [=, &o](Handle) {
          constexpr int kNoGroups = -1;
          o.context().library.call(kRouterTopk, logits, static_cast<int>(p.tokens), static_cast<int>(p.experts),
                                   static_cast<int>(p.topk), p.score == "softmax_pre" ? 1 : 0, kNoGroups, kNoGroups,
                                   static_cast<float>(p.scaling), p.score == "sigmoid" ? kSigmoid : kSoftmax, no_bias,
                                   probs, map, scores, o.stream());
        };
      },
      scores_bytes);
}

}  // namespace

// nvte_permute and nvte_unpermute, which are C++ functions, and nvte_fused_topk_with_score_function_forward. Rows are
// moved 16 bytes at a time. nvte_permute builds the row map itself from the copies sorted by place, which are derived
// from the op's map before the launch. The router computes in the tensor's format up to 2.12, in FP32 since 2.13.
// Source: TransformerEngine common/permutation/permutation.cu, common/fused_router.
const Binding& moe_permute() {
  static const TeBinding binding{{"transformer_engine", "moe_permute"}, &permute_obstacle, &permute_algorithm};
  return binding;
}

const Binding& moe_unpermute() {
  static const TeBinding binding{{"transformer_engine", "moe_unpermute"}, &unpermute_obstacle, &unpermute_algorithm};
  return binding;
}

const Binding& router_topk() {
  static const TeBinding binding{{"transformer_engine", "router_topk"}, &router_obstacle, &router_algorithm};
  return binding;
}

}  // namespace numcheck::kernels::transformer_engine
