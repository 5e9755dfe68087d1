// Derives the case's status from its runs.
#include <algorithm>
#include <optional>
#include <string>

#include "model/expected_class.hpp"
#include "verdict/evaluate.hpp"

namespace numcheck::verdict {
namespace {

/// True if nothing is wrong with the run but that cause: numbers that it explains, in every output that failed.
bool has_only(const RunResult& run, const std::string& cause, const plan::Case& c) {
  const model::PrecisionClass observed = run.run.observed.value_or(model::PrecisionClass::unknown);
  const bool class_ok =
      observed == model::PrecisionClass::unknown || run.expected_class == model::PrecisionClass::native ||
      model::acceptable_class(run.expected_class, observed) || model::permitted_class(*c.mode, observed);
  return run.run.guards_intact && run.run.inputs_intact && run.run.deterministic && class_ok &&
         std::ranges::all_of(run.outputs, [&](const OutputResult& output) {
           return std::ranges::all_of(output.criteria, &tolerance::Criterion::ok) ||
                  std::ranges::find(output.findings, cause, &op::Finding::cause) != output.findings.end();
         });
}

/// An entry without a cause concerns the whole case; one with a cause only failures that it explains completely.
bool fits(const plan::XFail& issue, const CaseResult& result) {
  return issue.cause.empty() ||
         (result.status == Status::fail && std::ranges::all_of(result.runs, [&](const RunResult& run) {
            return run.status != Status::error && (run.status != Status::fail || has_only(run, issue.cause, *result.c));
          }));
}

void apply(const plan::XFail& known, CaseResult& result, bool whole, const std::string& today) {
  result.known_issue = known;
  const bool expired = !known.expires.empty() && known.expires < today;
  if (result.status == Status::fail && whole && !expired) {
    result.status = Status::xfail;
    result.reason = known.reason + " (" + result.reason + ")";
  } else if (result.status == Status::pass) {
    result.status = Status::xpass;
    result.reason = "passes although listed as known to fail: " + known.reason;
  } else if (expired && result.status == Status::fail) {
    result.reason += " (its xfail entry expired on " + known.expires + ")";
  }
}

}  // namespace

void conclude(CaseResult& result, const worker::Outcome& outcome, std::span<const plan::XFail> known_issues,
              const std::string& today) {
  switch (outcome.kind) {
    case worker::Outcome::Kind::unsupported:
      result.status = Status::unsupported;
      break;
    case worker::Outcome::Kind::error:
      result.status = Status::error;
      break;
    case worker::Outcome::Kind::crashed:
      result.status = Status::crashed;
      break;
    case worker::Outcome::Kind::timeout:
      result.status = Status::timeout;
      break;
    case worker::Outcome::Kind::done:
      result.status = result.runs.empty() ? Status::error : Status::pass;
      break;
  }
  result.reason = outcome.kind == worker::Outcome::Kind::done && result.runs.empty() ? "the worker reported no runs"
                                                                                     : outcome.reason;
  // A crash or timeout takes precedence over whatever earlier runs showed.
  const bool lost = outcome.kind == worker::Outcome::Kind::crashed || outcome.kind == worker::Outcome::Kind::timeout;
  const auto settled = [&result] {
    return result.status != Status::pass && result.status != Status::warn && result.status != Status::inconclusive;
  };
  for (const Status worse : {Status::warn, Status::inconclusive, Status::error, Status::fail}) {
    const auto found = std::ranges::find(result.runs, worse, &RunResult::status);
    const bool outranks = worse == Status::fail || !settled();
    if (found != result.runs.end() && lost) {
      result.reason += worse == Status::fail ? "; before that a run failed: " + found->failing : "";
    } else if (found != result.runs.end() && outranks) {
      result.status = worse;
      result.reason = found->failing;
    }
  }
  const auto known = std::ranges::find_if(known_issues, [&](const plan::XFail& issue) { return fits(issue, result); });
  if (known != known_issues.end()) {
    apply(*known, result, outcome.kind == worker::Outcome::Kind::done, today);
  }
}

}  // namespace numcheck::verdict
