#include "verdict/declared_rounding.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/counted.hpp"
#include "core/dtype.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fwd.hpp"
#include "op/field.hpp"
#include "op/gemm.hpp"
#include "op/grouped_gemm.hpp"
#include "op/replay.hpp"
#include "tolerance/attention_rounding.hpp"
#include "tolerance/criterion_words.hpp"
#include "tolerance/output_reduction.hpp"
#include "verdict/conversion.hpp"
#include "verdict/farthest_elements.hpp"
#include "verdict/output_model.hpp"
#include "verdict/product_shortcuts.hpp"
#include "verdict/slices_overflow.hpp"
#include "verdict/whole_output.hpp"

namespace numcheck::verdict {
namespace {

op::EarlyRounding both(const op::EarlyRounding& x, const op::EarlyRounding& y) {
  return {.slices = std::max(x.slices, y.slices),
          .product = x.product || y.product,
          .sum = x.sum || y.sum,
          .tanh_error = std::max(x.tanh_error, y.tanh_error)};
}

/// Both shortcuts of a product at once.
Shortcut combined(const Shortcut& first, const Shortcut& second) {
  return {
      [before = first.model, after = second.model](model::ErrorModel model) { return after(before(std::move(model))); },
      first.sentence + "; " + second.sentence, both(first.evidence.value(), second.evidence.value())};
}

/// Single shortcuts first, then combinations: of the others with each other, and of a part with each of them and with all.
std::vector<Shortcut> explanations(const Shortcuts& shortcuts) {
  std::vector<Shortcut> others = shortcuts.others;
  if (others.size() > 1) {
    others.push_back(combined(others.front(), others.back()));
  }
  std::vector<Shortcut> all = shortcuts.parts;
  all.insert(all.end(), others.begin(), others.end());
  for (const Shortcut& part : shortcuts.parts) {
    std::ranges::transform(others, std::back_inserter(all),
                           [&part](const Shortcut& other) { return combined(part, other); });
  }
  return all;
}

/// Whether the bits of the output show the shortcut's roundings.
op::Replay replayed(const EvaluationContext& context, const JudgedOperands& operands, const ComparedPort& compared,
                    const model::ErrorModel& strict, const op::EarlyRounding& rounding) {
  const core::Dtype format = compared.port().dtype;
  const op::Op& op = *context.prepared->c->op;
  const std::optional<op::Product> product = op::product_behind(op, context.group->params, compared.port().name);
  const op::Params params = product.has_value() ? op::to_params(product->params) : context.group->params;
  const std::vector<op::Operand> inputs = op::operands_behind(op, operands.get(), compared.port().name);
  op::ReplayRequest request;
  request.params = &params;
  request.inputs = inputs;
  request.dtype = format;
  request.scale = strict.output_scale;
  request.stored = [&compared, format, scale = strict.output_scale](std::size_t index) {
    return core::decode(compared.bits_at(index), format) / scale;
  };
  request.rounding = rounding;
  request.farthest =
      farthest_elements(expected_values(context, compared.port()).value.span(), compared.port(), request.stored);
  request.variance = [&strict](double magnitude, double second, double value) {
    const double coherent = magnitude > 0 ? value * value / magnitude : 0;
    // What sums of one sign lose, all in the same direction.
    const double drift = strict.slope_low * value + strict.slope_coherent * coherent;
    return drift * drift + strict.var_second * second + strict.var_value * value * value +
           strict.var_magnitude * magnitude * magnitude + strict.var_coherent * coherent * coherent +
           strict.var_absolute;
  };
  return context.group->row->reference.replay(request);
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
  return {{model, tolerance::describe(rounding, format) + ", as the backend declares", std::nullopt}};
}

std::vector<Shortcut> shortcuts_of(const model::DeclaredRounding& declared, const EvaluationContext& context,
                                   const op::Port& port, model::PrecisionClass expected) {
  const op::Op* op = context.prepared->c->op;
  if (op == &op::attention_fwd() || op == &op::attention_bwd()) {
    return attention_shortcuts(declared.attention, context, port, expected);
  }
  return explanations(product_shortcuts(declared, context, port));
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

op::Finding finding_about(std::string_view port) {
  op::Finding finding;
  finding.name = "declared roundings";
  finding.port = port;
  return finding;
}

/// What still fails with the declared roundings that explain most.
op::Finding unexplained(std::string_view port, const Shortcut& shortcut,
                        const std::vector<tolerance::Criterion>& criteria) {
  const auto broken = std::ranges::find(criteria, false, &tolerance::Criterion::ok);
  op::Finding finding = finding_about(port);
  finding.measured = excess(criteria);
  finding.text = fmt::format("{}, but this would fail even so: {}", shortcut.sentence, tolerance::words_of(*broken));
  return finding;
}

op::Finding replay_finding(std::string_view port, const Shortcut& shortcut, const op::Replay& replay) {
  op::Finding finding = finding_about(port);
  finding.measured = replay.share;
  finding.text =
      fmt::format("{}{}: {}", shortcut.sentence, replay.shown ? "" : ", but the bits do not show it", replay.text);
  return finding;
}

/// True if only NaN, infinities, unwritten elements or repetitions are wrong.
bool numbers_hold(const std::vector<tolerance::Criterion>& criteria) {
  using About = tolerance::Criterion::About;
  return std::ranges::none_of(criteria, [](const tolerance::Criterion& criterion) {
    return !criterion.ok && (criterion.about == About::errors || criterion.about == About::rounding);
  });
}

/// The output is judged with the shortcut's model, by which its numbers pass. Returns what would fail otherwise, in words.
std::string explain(const Shortcut& shortcut, const model::ErrorModel& model, const ComparisonCache::Entry& entry,
                    std::vector<tolerance::Criterion> criteria, OutputResult& output) {
  const auto broken = std::ranges::find(output.criteria, false, &tolerance::Criterion::ok);
  std::string failing = tolerance::words_of(*broken);
  output.declared = shortcut.sentence;
  output.model_source = model.source;
  output.statistics = entry.statistics;
  output.certificate = entry.certificate;
  output.criteria = std::move(criteria);
  return failing;
}

/// A shortcut, and how the output is judged by it.
struct Candidate {
  Shortcut shortcut;
  model::ErrorModel model;
  std::shared_ptr<const ComparisonCache::Entry> entry;
  std::vector<tolerance::Criterion> criteria;
};

/// Of an output that fails even with the shortcut: whether that accounts for its numbers, or its slices for all of it, so that only
/// NaN, infinities, and zeros that relu has made of them, are left to explain. Then it is judged by the shortcut.
bool explains_numbers(const EvaluationContext& context, const worker::RunReport& run, const ComparedPort& compared,
                      const tolerance::RunFacts& facts, const model::ErrorModel& strict, Candidate& tried,
                      OutputResult& output) {
  auto& [shortcut, model, entry, criteria] = tried;
  const bool holds = numbers_hold(criteria), held_before = numbers_hold(output.criteria);
  // It fails whatever the bits say: they need not show the slices of the numbers that are left.
  if (shortcut.evidence.has_value() && shortcut.evidence->slices > 1 &&
      slices_overflow(context, compared, facts, model, shortcut.evidence->slices, !holds)) {
    explain(shortcut, model, *entry, std::move(criteria), output);
    add_slices_overflow(output.port, shortcut.evidence->slices, !holds, output.findings);
    return true;
  }
  if (!holds || held_before) {
    return false;
  }
  if (shortcut.evidence.has_value()) {
    op::Replay replay = replayed(context, JudgedOperands(context, run), compared, strict, *shortcut.evidence);
    if (!replay.shown) {
      return false;
    }
    output.findings.push_back(replay_finding(output.port, shortcut, replay));
    output.replay = std::move(replay);
  }
  explain(shortcut, model, *entry, std::move(criteria), output);
  return true;
}

}  // namespace

void judge_declared_rounding(const EvaluationContext& context, const worker::RunReport& run,
                             const ComparedPort& compared, const tolerance::RunFacts& facts,
                             const model::ErrorModel& strict, OutputResult& output) {
  if (strict.exact) {
    return;
  }
  std::optional<op::Finding> nearest, closest;  // by errors, and by bits
  std::optional<Candidate> candidate;
  for (const Shortcut& each : shortcuts_of(run.rounding, context, compared.port(), facts.expected)) {
    Candidate tried{each, each.model(strict), nullptr, {}};
    auto& [shortcut, model, entry, criteria] = tried;
    entry = compare_output(context, compared, model);
    criteria = tolerance::judge(entry->statistics, model, facts, context.prepared->c->tolerance);
    if (output.sampled) {
      judge_whole_output(context, run, compared, model, entry->statistics, criteria);
    }
    if (!std::ranges::all_of(criteria, &tolerance::Criterion::ok)) {
      if (explains_numbers(context, run, compared, facts, strict, tried, output)) {
        return;
      }
      op::Finding finding = unexplained(output.port, shortcut, criteria);
      if (!nearest.has_value() || finding.measured < nearest->measured) {
        nearest = std::move(finding);
      }
      continue;
    }
    if (shortcut.evidence.has_value()) {
      const op::Replay replay = replayed(context, JudgedOperands(context, run), compared, strict, *shortcut.evidence);
      op::Finding finding = replay_finding(output.port, shortcut, replay);
      if (!replay.shown && replay.too_few && !candidate.has_value()) {
        candidate = tried;
      }
      if (!replay.shown) {
        if (!closest.has_value() || finding.measured > closest->measured) {
          closest = std::move(finding);
        }
        continue;
      }
      output.findings.push_back(std::move(finding));
      output.replay = replay;
    }
    const std::string failing = explain(shortcut, model, *entry, std::move(criteria), output);
    output.warning = fmt::format("{}: {}; otherwise this would fail: {}", output.port, shortcut.sentence, failing);
    return;
  }
  if (candidate.has_value()) {
    auto& [shortcut, model, entry, criteria] = *candidate;
    const std::string failing = explain(shortcut, model, *entry, std::move(criteria), output);
    output.doubt = fmt::format("{}: {} with exact sums; {} would explain it, but {} are too few to show that",
                               output.port, failing, shortcut.sentence,
                               core::counted(static_cast<double>(output.statistics.elements), "element"));
  }
  if (closest.has_value() || nearest.has_value()) {
    output.findings.push_back(*std::move(closest.has_value() ? closest : nearest));
  }
}

}  // namespace numcheck::verdict
