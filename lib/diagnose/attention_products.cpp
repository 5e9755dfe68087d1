// Hypotheses about the formats in which attention multiplies matrices, and stores what is between two products.
#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/dtype.hpp"
#include "diagnose/hypothesis.hpp"
#include "diagnose/narrowed.hpp"
#include "model/eager_attention.hpp"
#include "op/attention_params.hpp"

namespace numcheck::diagnose {
namespace {

using core::Dtype;

bool is_attention(const plan::Case& c) {
  return c.op->multiplies_matrices && c.op->name.starts_with("attention_");
}

/// Rounds those of the inputs to TF32; false if none of them changes.
bool round_to_tf32(const Subject& subject, std::initializer_list<std::string_view> names, Trial& trial) {
  bool changes = false;
  for (const op::Port& port : subject.c.op->ports(subject.c.params, *subject.c.mode)) {
    if (std::ranges::find(names, port.name) == names.end() || !subject.inputs.has(port)) {
      continue;
    }
    if (prepare::SharedDoubles values = narrowed(subject.inputs.of(port), Dtype::tf32, core::Rounding::nearest_even)) {
      trial.inputs.set(std::string(port.name), std::move(values));
      changes = true;
    }
  }
  return changes;
}

/// Inputs as the hardware converts them; what the rounding of the weights adds is in the error model of the mode.
std::vector<Hypothesis> products_in_tf32(const Evidence& evidence) {
  const Subject& subject = evidence.subject;
  Trial trial = as_declared(subject);
  if (!is_attention(subject.c) || subject.c.mode->name != "fp32" ||
      !round_to_tf32(subject, {"q", "k", "v", "do"}, trial)) {
    return {};
  }
  trial.c.mode = op::find_mode("tf32");
  constexpr double kLeast = 0.2;
  return {
      {.name = "products_in_tf32",
       .family = {},
       .cause = "the products of attention ran in TF32: q, k, v and the weights were rounded to 11 significant bits",
       .remedy = std::string(kForbidTf32),
       .trial = std::move(trial),
       .least_spread = kLeast}};
}

std::vector<Hypothesis> scores_in_tf32(const Evidence& evidence) {
  const Subject& subject = evidence.subject;
  Trial trial = as_declared(subject);
  if (subject.c.op->name != "attention_fwd" || subject.c.mode->name != "fp32" ||
      !round_to_tf32(subject, {"q", "k"}, trial)) {
    return {};
  }
  return {{.name = "scores_in_tf32",
           .family = {},
           .cause = "the product of q and k ran in TF32, and that of the weights and v did not",
           .remedy = std::string(kForbidTf32),
           .trial = std::move(trial)}};
}

/// What eager implementations do between two products. It allows for the errors of that, and does not predict them.
std::vector<Hypothesis> scores_stored(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  const bool is_short = core::dtype_info(c.mode->first).storage_bytes == 2;
  if (!is_attention(c) || !is_short) {
    return {};
  }
  const auto p = op::from_params<op::AttentionParams>(c.params);
  Trial trial = as_declared(evidence.subject);
  trial.rounding.attention = model::eager_rounding(p, *c.mode);
  const std::string_view format = c.mode->first == Dtype::bf16 ? "BF16" : "FP16";
  constexpr double kLeast = 0.2;
  return {
      {.name = fmt::format("scores_stored_in_{}", core::dtype_info(c.mode->first).name),
       .family = {},
       .cause = fmt::format("scores and weights were rounded to {} between the products, as implementations do that "
                            "compute them one after the other",
                            format),
       .remedy = "That is eager attention: Hugging Face's attn_implementation=\"eager\", PyTorch's SDPBackend.MATH, "
                 "TransformerEngine with NVTE_FUSED_ATTN=0 and NVTE_FLASH_ATTN=0. Take a fused kernel, or compare with "
                 "what --backend unfused gives.",
       .trial = std::move(trial),
       .least_spread = kLeast}};
}

/// Truncated weights are too small by a part that depends on them, of a rounding unit on average 0.7: the output tells how much.
std::vector<Hypothesis> weights_truncated(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  const Dtype dtype = c.mode->first;
  if (c.op->name != "attention_fwd" || evidence.port != "o" || (dtype != Dtype::bf16 && dtype != Dtype::fp16)) {
    return {};
  }
  double product = 0, square = 0;
  for (std::size_t i = 0; i < evidence.delivered.size(); ++i) {
    const double y = evidence.values.value[i], d = evidence.delivered[i];
    if (std::isfinite(y) && std::isfinite(d)) {
      product += y * d;
      square += y * y;
    }
  }
  constexpr double kLeast = 0.2;
  const double factor = product / square, unit = core::dtype_info(dtype).unit_roundoff;
  if (!(factor >= 1 - unit && factor <= 1 - kLeast * unit)) {
    return {};
  }
  Trial trial = as_declared(evidence.subject);
  trial.then = change_each(evidence, [factor](double y) { return factor * y; });
  const std::string_view spelled = dtype == Dtype::bf16 ? "BF16" : "FP16";
  return {
      {.name = fmt::format("weights_truncated_to_{}", core::dtype_info(dtype).name),
       .family = {},
       .cause = fmt::format("weights were truncated to {} before they were multiplied by v, not rounded to nearest, "
                            "which makes {} {:.2g} % smaller",
                            spelled, evidence.port, 100 * (1 - factor)),
       .remedy = "Convert with rounding to nearest (cvt.rn, __float2bfloat16_rn), not by shifting bits away.",
       .trial = std::move(trial),
       .shared_cause = fmt::format("weights were truncated to {}, not rounded to nearest", spelled),
       .is_measured = true}};
}

constexpr std::array kRows = {
    CatalogueRow{"scores_in_tf32", "attention of FP32 inputs whose product of q and k ran in TF32", &scores_in_tf32},
    CatalogueRow{"products_in_tf32", "the same of all products", &products_in_tf32},
    CatalogueRow{"scores_stored_in_FORMAT", "attention that stores scores and weights in 16 bits", &scores_stored},
    CatalogueRow{"weights_truncated_to_FORMAT", "attention whose weights lose bits instead of being rounded",
                 &weights_truncated}};

}  // namespace

std::span<const CatalogueRow> attention_product_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
