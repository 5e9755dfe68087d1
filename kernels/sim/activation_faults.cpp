#include "kernels/sim/activation_faults.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "op/activation_kind.hpp"

namespace numcheck::kernels::sim {
namespace {

using op::Activation;

/// Name of the kind, from the parameter `kind` or `fused`; "none" means no activation.
std::string kind_of(const Call& call) {
  const op::Op& op = *call.c->op;
  const std::optional<std::size_t> kind = op::field_index(op, "kind");
  return op::value_text(call.c->params.at(kind.has_value() ? *kind : *op::field_index(op, "fused")));
}

bool computes(const std::string& kind, Activation function) {
  return kind != "none" && op::activation_kind(kind).function == function;
}

std::string unless(bool fits, const std::string& kind, std::string_view lack) {
  return fits ? std::string() : (kind == "none" ? std::string("a sum without activation") : kind) + std::string(lack);
}

}  // namespace

std::string needs_tanh(const Call& call) {
  const std::string kind = kind_of(call);
  return unless(computes(kind, Activation::gelu), kind, " does not use tanh");
}

std::string needs_erf(const Call& call) {
  const std::string kind = kind_of(call);
  return unless(computes(kind, Activation::gelu_erf), kind, " does not use erf");
}

std::string needs_exponential(const Call& call) {
  const std::string kind = kind_of(call);
  return unless(kind != "none" && !op::activation_kind(kind).rational, kind, " does not use tanh, erf or a sigmoid");
}

std::string needs_factor_2(const Call& call) {
  const std::string kind = kind_of(call);
  const bool backward = call.c->op->name != "activation_fwd";
  return unless(computes(kind, Activation::gelu) || (backward && computes(kind, Activation::srelu)), kind,
                " has no such factor");
}

std::string needs_halves(const Call& call) {
  const std::string kind = kind_of(call);
  return unless(kind != "none" && op::activation_kind(kind).gated, kind, " has no halves");
}

std::string needs_clamp(const Call& call) {
  const std::string kind = kind_of(call);
  return unless(computes(kind, Activation::clamped), kind, " has no clamp");
}

}  // namespace numcheck::kernels::sim
