#include "op/attention_fp8.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/error.hpp"

namespace numcheck::op {
namespace {

struct Names {
  std::string_view tensor;
  std::string_view scale;
  std::string_view scale_inv;
  std::string_view amax;
};

constexpr std::array kNames = {
    Names{"q", "", "q_scale_inv", ""},
    Names{"k", "", "k_scale_inv", ""},
    Names{"v", "", "v_scale_inv", ""},
    Names{"o", "o_scale", "o_scale_inv", "o_amax"},
    Names{"s", "s_scale", "s_scale_inv", "s_amax"},
    Names{"do", "", "do_scale_inv", ""},
    Names{"dp", "dp_scale", "dp_scale_inv", "dp_amax"},
    Names{"dq", "dq_scale", "", "dq_amax"},
    Names{"dk", "dk_scale", "", "dk_amax"},
    Names{"dv", "dv_scale", "", "dv_amax"},
};

const Names& names_of(std::string_view tensor) {
  const auto* found = std::ranges::find(kNames, tensor, &Names::tensor);
  if (found == kNames.end()) {
    throw core::InternalError("attention has no scale of " + std::string(tensor));
  }
  return *found;
}

std::vector<Port> scalars(const std::vector<std::string_view>& tensors, Role role, std::string_view Names::* name,
                          std::string_view doc) {
  std::vector<Port> list;
  for (const std::string_view tensor : tensors) {
    const Names& names = names_of(tensor);
    list.push_back(scalar_port(names.*name, role, names.tensor, doc));
  }
  return list;
}

/// Scale and inverse of a tensor that exists only inside the kernels.
std::vector<Port> inner_scales(std::string_view tensor, std::string_view doc, std::string_view inverse_doc) {
  const Names& names = names_of(tensor);
  std::vector<Port> list = {dense_port(names.scale, Role::input, core::Dtype::fp32, 1, 1, doc),
                            dense_port(names.scale_inv, Role::input, core::Dtype::fp32, 1, 1, inverse_doc)};
  std::ranges::for_each(list, [](Port& port) { port.fill = Fill::computed; });
  return list;
}

}  // namespace

bool has_scales(const Mode& mode) noexcept {
  return mode.scaled;
}

core::Dtype attention_output(const Mode& mode) noexcept {
  return mode.scaled ? mode.first : mode.output;
}

core::Dtype attention_gradient(const Mode& mode) noexcept {
  return mode.scaled ? mode.second : mode.output;
}

std::vector<Port> weight_scales() {
  return inner_scales("s", "weights are multiplied as sat(RN(weight * s_scale))",
                      "by which products of weights are multiplied afterwards");
}

std::vector<Port> score_gradient_scales() {
  return inner_scales("dp", "gradients of scaled products are multiplied as sat(RN(gradient * dp_scale))",
                      "by which their products are multiplied afterwards");
}

std::vector<Port> operand_scales(const std::vector<std::string_view>& tensors) {
  return scalars(tensors, Role::scale, &Names::scale_inv, "value = code * scale_inv");
}

std::vector<Port> result_scales(const std::vector<std::string_view>& tensors) {
  return scalars(tensors, Role::scale, &Names::scale, "codes = sat(RN(value * scale))");
}

std::vector<Port> amaxes(const std::vector<std::string_view>& tensors) {
  return scalars(tensors, Role::amax, &Names::amax, "max |value| before the scale");
}

std::vector<std::string> check_attention_mode(std::string_view op, const AttentionParams& p, const Mode& mode) {
  std::vector<std::string> mistakes = check_attention(op, p);
  if (mode.scaled && p.has_bias_tensor()) {
    mistakes.push_back(fmt::format("{}: mode {} has no bias tensor: set bias to none or alibi", op, mode.name));
  }
  if (mode.scaled && p.has_dropout()) {
    mistakes.push_back(fmt::format("{}: mode {} has no dropout: set dropout to 0", op, mode.name));
  }
  if (mode.scaled && p.max_logit) {
    mistakes.push_back(fmt::format("{}: mode {} has no largest score: set max_logit to false", op, mode.name));
  }
  return mistakes;
}

}  // namespace numcheck::op
