#include "run/declared_rounding.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/dtype.hpp"
#include "tolerance/output_reduction.hpp"

namespace numcheck::run {
namespace {

std::string_view detail_of(const RunReport& run, std::string_view key) {
  const auto found =
      std::ranges::find(run.details, key, [](const auto& detail) { return std::string_view(detail.first); });
  return found == run.details.end() ? std::string_view() : std::string_view(found->second);
}

/// Slices of a split-K product that are added in the output's format; 1 if there are none.
int narrow_slices(const RunReport& run) {
  const std::string_view reduction = detail_of(run, "reduction");
  const bool narrow = reduction == "output_type" || reduction == "inplace";
  return narrow ? std::max(1, std::atoi(std::string(detail_of(run, "split_k")).c_str())) : 1;
}

/// One thing that makes a result less precise than its mode promises: what it does to the model, and its sentence.
struct Shortcut {
  std::function<tolerance::ErrorModel(tolerance::ErrorModel)> model;
  std::string sentence;
};

/// Mean of the squares of what is added to the product: the operands beyond its factors.
double addend_square(std::span<const op::Operand> operands) {
  double sum = 0;
  for (std::size_t i = 2; i < operands.size(); ++i) {
    const op::Operand& addend = operands[i];
    double squares = 0;
    for (std::size_t j = 0; j < addend.elements(); ++j) {
      const double value = addend.data[j] * addend.scale;
      squares += std::isfinite(value) ? value * value : 0;
    }
    sum += squares / static_cast<double>(std::max<std::size_t>(1, addend.elements()));
  }
  return sum;
}

std::vector<Shortcut> shortcuts_of(const RunReport& run, core::Dtype format, std::span<const op::Operand> operands) {
  const std::string_view name = core::dtype_info(format).name;
  const bool narrow = core::dtype_info(format).storage_bytes == 2;
  const std::string_view epilogue = detail_of(run, "epilogue");
  const bool gelu = epilogue.find("GELU") != std::string_view::npos;
  const double steepness = gelu ? tolerance::kGeluSteepness : 1;
  const auto rounded = [steepness, rest = addend_square(operands)](tolerance::ErrorModel model) {
    return tolerance::with_rounded_part(std::move(model), steepness, rest);
  };
  std::vector<Shortcut> all;
  if (const int slices = narrow_slices(run); narrow && slices > 1) {
    all.push_back(
        {[slices](tolerance::ErrorModel model) { return tolerance::with_output_reduction(std::move(model), slices); },
         fmt::format("{} slices of k are added in {}, as the library declares", slices, name)});
  }
  if (narrow && detail_of(run, "addend") == "in place") {
    all.push_back({rounded, fmt::format("the product is rounded to {} before C is added, in place", name)});
  }
  if (narrow && !epilogue.empty()) {
    all.push_back({rounded, fmt::format("the sum is rounded to {} before the epilogue {}", name, epilogue)});
  }
  if (gelu) {
    all.push_back({&tolerance::with_approximate_tanh, "the tanh of gelu is an approximation (to 8e-6)"});
  }
  return all;
}

/// Models with one shortcut, then with all of them: their sentences tell which.
std::vector<Shortcut> explanations(std::vector<Shortcut> shortcuts) {
  if (shortcuts.size() < 2) {
    return shortcuts;
  }
  Shortcut all = shortcuts.front();
  for (std::size_t i = 1; i < shortcuts.size(); ++i) {
    all.model = [before = all.model, next = shortcuts[i].model](tolerance::ErrorModel model) {
      return next(before(std::move(model)));
    };
    all.sentence += "; " + shortcuts[i].sentence;
  }
  shortcuts.push_back(std::move(all));
  return shortcuts;
}

}  // namespace

void judge_declared_rounding(const EvaluationContext& context, const RunReport& run, const ComparedPort& compared,
                             const tolerance::RunFacts& facts, const tolerance::ErrorModel& strict,
                             report::OutputResult& output) {
  if (strict.exact) {
    return;
  }
  for (const Shortcut& shortcut :
       explanations(shortcuts_of(run, compared.port().dtype, context.prepared->rounding->operands))) {
    const tolerance::ErrorModel model = shortcut.model(strict);
    const auto entry = compare_output(context, compared, model);
    std::vector<tolerance::Criterion> criteria =
        tolerance::judge(entry->statistics, model, facts, context.prepared->c->tolerance);
    if (!std::ranges::all_of(criteria, &tolerance::Criterion::ok)) {
      continue;
    }
    const auto broken = std::ranges::find(output.criteria, false, &tolerance::Criterion::ok);
    output.warning = fmt::format("{}: {}; otherwise {} would be {:.4g} > {:.4g}", output.port, shortcut.sentence,
                                 broken->name, broken->measured, broken->limit);
    output.model_source = model.source;
    output.statistics = entry->statistics;
    output.certificate = entry->certificate;
    output.criteria = std::move(criteria);
    return;
  }
}

}  // namespace numcheck::run
