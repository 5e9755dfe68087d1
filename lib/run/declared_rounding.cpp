#include "run/declared_rounding.hpp"

#include <algorithm>
#include <cstdlib>
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

/// A model with more roundings in it, and the sentence that names them.
struct Declared {
  tolerance::ErrorModel model;
  std::string sentence;
};

std::vector<Declared> declared_by(const RunReport& run, const tolerance::ErrorModel& strict) {
  const std::string_view format = core::dtype_info(strict.output).name;
  std::vector<Declared> all;
  if (const int slices = narrow_slices(run); slices > 1) {
    all.push_back({tolerance::with_output_reduction(strict, slices),
                   fmt::format("{} slices of k are added in {}, as the library declares", slices, format)});
  }
  if (detail_of(run, "addend") == "in place") {
    all.push_back({tolerance::with_rounded_product(strict),
                   fmt::format("the product is rounded to {} before C is added, in place", format)});
  }
  return all;
}

}  // namespace

void judge_declared_rounding(const EvaluationContext& context, const RunReport& run, const ComparedPort& compared,
                             const tolerance::RunFacts& facts, const tolerance::ErrorModel& strict,
                             report::OutputResult& output) {
  const bool narrow = core::dtype_info(compared.port().dtype).storage_bytes < 4;
  if (!narrow || strict.exact) {
    return;
  }
  for (const Declared& declared : declared_by(run, strict)) {
    const auto entry = compare_output(context, compared, declared.model);
    std::vector<tolerance::Criterion> criteria =
        tolerance::judge(entry->statistics, declared.model, facts, context.prepared->c->tolerance);
    if (!std::ranges::all_of(criteria, &tolerance::Criterion::ok)) {
      continue;
    }
    const auto broken = std::ranges::find(output.criteria, false, &tolerance::Criterion::ok);
    output.warning = fmt::format("{}: {}; with FP32 sums {} would be {:.4g} > {:.4g}", output.port, declared.sentence,
                                 broken->name, broken->measured, broken->limit);
    output.model_source = declared.model.source;
    output.statistics = entry->statistics;
    output.certificate = entry->certificate;
    output.criteria = std::move(criteria);
    return;
  }
}

}  // namespace numcheck::run
