#include "verdict/declared_rounding.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/dtype.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fwd.hpp"
#include "op/field.hpp"
#include "op/gemm.hpp"
#include "tolerance/attention_rounding.hpp"
#include "tolerance/criterion_words.hpp"
#include "tolerance/output_reduction.hpp"
#include "verdict/output_model.hpp"

namespace numcheck::verdict {
namespace {

double mean_square(std::span<const op::Operand> operands, std::string_view port) {
  const op::Operand* found = op::find_operand(operands, port);
  if (found == nullptr || found->elements() == 0) {
    return 0;
  }
  double squares = 0;
  for (std::size_t i = 0; i < found->elements(); ++i) {
    const double value = found->data[i] * found->scale;
    squares += std::isfinite(value) ? value * value : 0;
  }
  return squares / static_cast<double>(found->elements());
}

std::string_view epilogue_name(const model::DeclaredRounding& declared) {
  return !declared.gelu ? "bias" : declared.bias ? "bias and gelu" : "gelu";
}

using ModelTransform = std::function<model::ErrorModel(model::ErrorModel)>;

/// Something that makes a result less precise than its mode promises: its effect on the model, a description, and the
/// finding whose bits must confirm it (empty if no bits are predicted).
struct Shortcut {
  ModelTransform model;
  std::string sentence;
  std::string_view evidence;
};

/// At most one of `parts` applies; `others` can be combined with each other and with one of the parts.
struct Shortcuts {
  std::vector<Shortcut> parts;
  std::vector<Shortcut> others;
};

ModelTransform rounded_part(double steepness, double other_square) {
  return [steepness, other_square](model::ErrorModel model) {
    return tolerance::with_rounded_part(std::move(model), steepness, other_square);
  };
}

/// Shortcuts of a product. Besides the product itself, the bias is rounded early if C is added in place, and C if the
/// epilogue is a separate kernel.
Shortcuts product_shortcuts(const model::DeclaredRounding& declared, const EvaluationContext& context,
                            core::Dtype format) {
  const std::string_view name = core::dtype_info(format).name;
  const int bytes = core::dtype_info(format).storage_bytes;
  const std::span<const op::Operand> operands = context.prepared->rounding->operands;
  const double steepness = declared.gelu ? tolerance::kGeluSteepness : 1;
  Shortcuts all;
  if (bytes < 4 && declared.slices > 1) {
    all.others.push_back({[slices = declared.slices](model::ErrorModel model) {
                            return tolerance::with_output_reduction(std::move(model), slices);
                          },
                          fmt::format("{} slices of k are added in {}, as the library declares", declared.slices, name),
                          {}});
  }
  if (bytes == 2 && declared.in_place) {
    all.parts.push_back({rounded_part(steepness, mean_square(operands, "bias")),
                         fmt::format("the product is rounded to {} before C is added, in place", name),
                         op::kProductRounded});
  }
  if (bytes == 2 && (declared.gelu || declared.bias)) {  // relu commutes with rounding
    const double beta = op::from_params<op::GemmParams>(context.prepared->c->params).beta;
    all.parts.push_back(
        {rounded_part(steepness, beta * beta * mean_square(operands, "c")),
         fmt::format("the sum is rounded to {} before the epilogue ({})", name, epilogue_name(declared)),
         op::kSumRounded});
  }
  if (declared.gelu) {
    all.others.push_back({&tolerance::with_approximate_tanh,
                          fmt::format("the tanh of gelu is an approximation (to {:g})", tolerance::kTanhError),
                          {}});
  }
  return all;
}

/// Both shortcuts at once. No bits are predicted for combinations.
Shortcut combined(const Shortcut& first, const Shortcut& second) {
  return {
      [before = first.model, after = second.model](model::ErrorModel model) { return after(before(std::move(model))); },
      first.sentence + "; " + second.sentence,
      {}};
}

/// Single shortcuts first, then combinations.
std::vector<Shortcut> explanations(const Shortcuts& shortcuts) {
  std::vector<Shortcut> all = shortcuts.parts;
  all.insert(all.end(), shortcuts.others.begin(), shortcuts.others.end());
  if (shortcuts.others.empty()) {
    return all;
  }
  Shortcut others = shortcuts.others.front();
  if (shortcuts.others.size() > 1) {
    others = combined(others, shortcuts.others.back());
    all.push_back(others);
  }
  for (const Shortcut& part : shortcuts.parts) {
    all.push_back(combined(part, others));
  }
  return all;
}

/// True unless a finding shows that too few elements have the bits that the shortcut predicts. Even with the shortcut,
/// a few elements differ because of errors in the product itself: 0.3 % of an FP16 output at k = 512, 1.4 % at k = 2048
/// (H200).
bool has_evidence(const OutputResult& output, std::string_view evidence) {
  constexpr double kMinShare = 0.8;
  const auto found = std::ranges::find(output.findings, evidence, &op::Finding::name);
  return found == output.findings.end() || found->measured >= kMinShare;
}

/// All that attention's run declares about an output, at once: unlike those of a product's epilogue, these roundings always
/// happen.
std::vector<Shortcut> attention_shortcuts(const model::AttentionRounding& declared, const EvaluationContext& context,
                                          const op::Port& port, model::PrecisionClass expected) {
  const plan::Case& c = *context.prepared->c;
  const std::string_view format = core::dtype_info(c.mode->first).name;
  const model::AttentionRounding rounding =
      tolerance::roundings_of(declared, port.name, op::from_params<op::AttentionParams>(c.params));
  if (rounding == model::AttentionRounding()) {
    return {};
  }
  const auto model = [&context, &port, expected, rounding](const model::ErrorModel&) {
    return output_model(context, port, expected, rounding);
  };
  return {{model, tolerance::describe(rounding, format) + ", as the backend declares", {}}};
}

std::vector<Shortcut> shortcuts_of(const model::DeclaredRounding& declared, const EvaluationContext& context,
                                   const op::Port& port, model::PrecisionClass expected) {
  const op::Op* op = context.prepared->c->op;
  if (op == &op::attention_fwd() || op == &op::attention_bwd()) {
    return attention_shortcuts(declared.attention, context, port, expected);
  }
  return explanations(product_shortcuts(declared, context, port.dtype));
}

/// How far the worst gate is beyond its limit. Gates that allow nothing are beyond any.
double excess(const std::vector<tolerance::Criterion>& criteria) {
  double most = 0;
  for (const tolerance::Criterion& criterion : criteria) {
    if (!criterion.ok) {
      const double ratio = criterion.measured / criterion.limit;
      most = std::max(most, std::isfinite(ratio) ? ratio : std::numeric_limits<double>::infinity());
    }
  }
  return most;
}

/// What still fails with the declared roundings that explain most.
op::Finding unexplained(std::string_view port, const Shortcut& shortcut,
                        const std::vector<tolerance::Criterion>& criteria) {
  const auto broken = std::ranges::find(criteria, false, &tolerance::Criterion::ok);
  op::Finding finding;
  finding.name = "declared roundings";
  finding.port = port;
  finding.measured = excess(criteria);
  finding.text = fmt::format("{}, but this would fail even so: {}", shortcut.sentence, tolerance::words_of(*broken));
  return finding;
}

}  // namespace

void judge_declared_rounding(const EvaluationContext& context, const model::DeclaredRounding& declared,
                             const ComparedPort& compared, const tolerance::RunFacts& facts,
                             const model::ErrorModel& strict, OutputResult& output) {
  if (strict.exact) {
    return;
  }
  std::optional<op::Finding> nearest;
  for (const Shortcut& shortcut : shortcuts_of(declared, context, compared.port(), facts.expected)) {
    if (!has_evidence(output, shortcut.evidence)) {
      continue;
    }
    const model::ErrorModel model = shortcut.model(strict);
    const auto entry = compare_output(context, compared, model);
    std::vector<tolerance::Criterion> criteria =
        tolerance::judge(entry->statistics, model, facts, context.prepared->c->tolerance);
    if (!std::ranges::all_of(criteria, &tolerance::Criterion::ok)) {
      op::Finding finding = unexplained(output.port, shortcut, criteria);
      if (!nearest.has_value() || finding.measured < nearest->measured) {
        nearest = std::move(finding);
      }
      continue;
    }
    const auto broken = std::ranges::find(output.criteria, false, &tolerance::Criterion::ok);
    output.declared = shortcut.sentence;
    output.warning = fmt::format("{}: {}; otherwise this would fail: {}", output.port, shortcut.sentence,
                                 tolerance::words_of(*broken));
    output.model_source = model.source;
    output.statistics = entry->statistics;
    output.certificate = entry->certificate;
    output.criteria = std::move(criteria);
    return;
  }
  if (nearest.has_value()) {
    output.findings.push_back(*std::move(nearest));
  }
}

}  // namespace numcheck::verdict
