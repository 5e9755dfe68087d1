#include "verdict/own_gates.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/trace.hpp"
#include "verdict/decoded_outputs.hpp"
#include "verdict/lost_updates.hpp"
#include "verdict/output_model.hpp"
#include "verdict/wrong_formulas.hpp"

namespace numcheck::verdict {
namespace {

/// What the op's function says about the run, by what `expected` says.
template <class Said>
std::vector<Said> findings_of(const EvaluationContext& context,
                              std::vector<Said> (*function)(const op::FindingRequest&), const op::Values& expected,
                              std::string_view about = {}) {
  const DecodedOutputs delivered(*context.prepared, context.host);
  return function(
      {&context.group->params, context.inputs(), &expected, delivered.outputs(), &context.group->sample, about});
}

}  // namespace

bool has_wrong_numbers(const tolerance::Criterion& criterion) {
  return !criterion.ok && !tolerance::is_conduct(criterion.about);
}

std::vector<op::Finding> diagnosis_of(const EvaluationContext& context, const op::Port& port) {
  if (context.group->row->reference.diagnose == nullptr) {
    return {};
  }
  std::vector<op::Finding> findings =
      findings_of(context, context.group->row->reference.diagnose, expected_outputs(context, port), port.name);
  std::erase_if(findings, [&port](const op::Finding& finding) { return finding.port != port.name; });
  return findings;
}

std::vector<op::ImpossibleDraw> impossible_draws(const EvaluationContext& context) {
  const auto function = context.group->row->reference.impossible;
  return function == nullptr ? std::vector<op::ImpossibleDraw>()
                             : findings_of(context, function, values_of_case(context));
}

namespace {

/// What the plan asks of a statistic. measured <= limit passes, so the least number that it may be is beside what it is.
void add_asked(const plan::ToleranceSpec& wanted, const op::Finding& statistic,
               std::vector<tolerance::Criterion>& criteria) {
  for (const plan::StatisticLimit& limit : wanted.statistics) {
    if (limit.name != statistic.name) {
      continue;
    }
    const auto add = [&](std::string name, double measured, double most, std::string_view words, double asked) {
      criteria.push_back({std::move(name), measured, most, measured <= most,
                          fmt::format("{} is {:.6g}, and the plan asks for at {} {:.6g}", limit.name,
                                      statistic.measured, words, asked),
                          tolerance::Criterion::About::conduct});
    };
    if (limit.most) {
      add(limit.name, statistic.measured, *limit.most, "most", *limit.most);
    }
    if (limit.least) {
      add("asked " + limit.name, *limit.least, statistic.measured, "least", *limit.least);
    }
  }
}

/// Limits of statistics that the run has none of: a recipe without blocks has no dead ones.
void add_unmeasured(const plan::ToleranceSpec& wanted, const std::vector<op::Finding>& findings,
                    std::vector<tolerance::Criterion>& criteria) {
  for (const plan::StatisticLimit& limit : wanted.statistics) {
    if (std::ranges::find(findings, limit.name, &op::Finding::name) == findings.end()) {
      criteria.push_back({limit.name, std::numeric_limits<double>::quiet_NaN(), limit.most.value_or(0), false,
                          fmt::format("the plan limits {}, and nothing of that name was measured", limit.name),
                          tolerance::Criterion::About::conduct});
    }
  }
}

}  // namespace

void judge_by_own_gates(const EvaluationContext& context, RunResult& result) {
  std::vector<op::Finding> findings = lost_updates(context);
  if (context.group->row->reference.findings == nullptr && findings.empty() &&
      context.prepared->c->tolerance.statistics.empty()) {
    return;
  }
  const core::Span span("own gates");
  std::vector<std::string> failed;  // without the op's own gates, and diagnosed
  for (const OutputResult& output : result.outputs) {
    if (std::ranges::any_of(output.criteria, has_wrong_numbers)) {
      failed.push_back(output.port);
    }
  }
  if (context.group->row->reference.findings != nullptr) {
    std::ranges::move(context.streamed != nullptr
                          ? context.streamed->findings()
                          : findings_of(context, context.group->row->reference.findings, values_of_case(context)),
                      std::back_inserter(findings));
  }
  add_unmeasured(context.prepared->c->tolerance, findings, result.outputs.front().criteria);
  for (op::Finding& finding : findings) {
    const auto output = std::ranges::find(result.outputs, finding.port, &OutputResult::port);
    if (output == result.outputs.end()) {
      throw core::InternalError("a finding names an unknown output: " + finding.port);
    }
    if (std::isfinite(finding.limit)) {
      if (std::ranges::find(context.group->row->reference.gates, finding.name, &op::OwnGate::name) ==
          context.group->row->reference.gates.end()) {
        throw core::InternalError("the op does not list its gate " + finding.name);
      }
      output->criteria.push_back(
          {finding.name, finding.measured, finding.limit, finding.measured <= finding.limit, finding.text});
      if (!finding.fake.empty()) {
        output->certificate.fakes.push_back({finding.fake, tolerance::Fake::Outcome::accepted, {}});
      }
    } else {
      add_asked(context.prepared->c->tolerance, finding, output->criteria);
      output->findings.push_back(std::move(finding));
    }
  }
  for (OutputResult& output : result.outputs) {
    if (context.streamed != nullptr && std::ranges::any_of(output.criteria, has_wrong_numbers)) {
      throw metric::NeedsAllRows();
    }
    const bool failed_before = std::ranges::find(failed, output.port) != failed.end();
    if (!failed_before && !context.gates_only && std::ranges::any_of(output.criteria, has_wrong_numbers)) {
      const auto port = std::ranges::find(context.prepared->ports, output.port, &op::Port::name);
      std::ranges::move(diagnosis_of(context, *port), std::back_inserter(output.findings));
    }
  }
  for (auto& [port, fakes] : judge_in_choices(context)) {
    const auto output = std::ranges::find(result.outputs, port, &OutputResult::port);
    std::ranges::move(fakes, std::back_inserter(output->certificate.fakes));
  }
}

}  // namespace numcheck::verdict
