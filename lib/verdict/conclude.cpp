// Derives the case's status from its runs.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tolerance/criterion_words.hpp"
#include "verdict/evaluate.hpp"

namespace numcheck::verdict {
namespace {

/// The least share of an error that its cause must explain.
constexpr double kLeastShare = 0.95;

/// True if the finding would explain failures of such criteria, and leaves little of them.
bool explains(const op::Finding& finding, tolerance::Criterion::About about) {
  using Explained = op::Finding::About;
  using tolerance::Criterion;
  const bool numbers = about == Criterion::About::errors || about == Criterion::About::rounding;
  const bool concerns = (numbers && finding.about == Explained::numbers) ||
                        (about == Criterion::About::pattern && finding.about != Explained::numbers) ||
                        (about == Criterion::About::unwritten && finding.about == Explained::unwritten);
  return concerns && finding.measured >= kLeastShare;
}

/// True if the cause explains all criteria that the output fails.
bool is_explained(const OutputResult& output, const std::string& cause) {
  return std::ranges::all_of(output.criteria, [&](const tolerance::Criterion& criterion) {
    return criterion.ok || std::ranges::any_of(output.findings, [&](const op::Finding& finding) {
             return finding.cause == cause && explains(finding, criterion.about);
           });
  });
}

/// The outputs that failed; nothing if the case failed for another reason as well, which no cause explains.
std::optional<std::vector<const OutputResult*>> failed_outputs(const CaseResult& result) {
  std::vector<const OutputResult*> failed;
  for (const RunResult& run : result.runs) {
    const std::size_t before = failed.size();
    for (const OutputResult& output : run.outputs) {
      if (run.status == Status::fail && !std::ranges::all_of(output.criteria, &tolerance::Criterion::ok)) {
        failed.push_back(&output);
      }
    }
    if (run.status == Status::error || (run.status == Status::fail && failed.size() == before)) {
      return std::nullopt;
    }
  }
  return failed;
}

/// Several entries that explain a case together, as one.
plan::XFail combined(std::span<const plan::XFail* const> entries) {
  plan::XFail all = *entries.front();
  for (const plan::XFail* entry : entries.subspan(1)) {
    all.reason += "; " + entry->reason;
    all.cause += "; " + entry->cause;
    if (!entry->expires.empty() && (all.expires.empty() || entry->expires < all.expires)) {
      all.expires = entry->expires;
    }
  }
  return all;
}

/// An entry without a cause concerns the whole case. Entries with one concern failures only, and only if together they
/// explain all of them, each output by one cause.
std::optional<plan::XFail> fitting(std::span<const plan::XFail* const> issues, const CaseResult& result) {
  const auto whole = std::ranges::find_if(issues, [](const plan::XFail* issue) { return issue->cause.empty(); });
  if (whole != issues.end()) {
    return **whole;
  }
  const auto failed = failed_outputs(result);
  if (result.status != Status::fail || !failed) {
    return std::nullopt;
  }
  std::vector<const plan::XFail*> used;
  for (const OutputResult* output : *failed) {
    const auto issue = std::ranges::find_if(
        issues, [output](const plan::XFail* candidate) { return is_explained(*output, candidate->cause); });
    if (issue == issues.end()) {
      return std::nullopt;
    }
    if (std::ranges::find(used, *issue) == used.end()) {
      used.push_back(*issue);
    }
  }
  return used.empty() ? std::nullopt : std::optional(combined(used));
}

/// The first failed output that no cause explains, if they explain others; null otherwise.
const OutputResult* first_unexplained(std::span<const plan::XFail* const> issues, const CaseResult& result) {
  const OutputResult* first = nullptr;
  bool any_explained = false;
  for (const RunResult& run : result.runs) {
    for (const OutputResult& output : run.outputs) {
      const bool failed = !std::ranges::all_of(output.criteria, &tolerance::Criterion::ok);
      const bool explained = failed && std::ranges::any_of(issues, [&output](const plan::XFail* issue) {
                               return !issue->cause.empty() && is_explained(output, issue->cause);
                             });
      any_explained = any_explained || explained;
      first = first == nullptr && failed && !explained ? &output : first;
    }
  }
  return any_explained ? first : nullptr;
}

bool is_expired(const plan::XFail& issue, const std::string& today) {
  return !issue.expires.empty() && issue.expires < today;
}

void apply(const plan::XFail& known, CaseResult& result, bool whole, const std::string& today) {
  result.known_issue = known;
  const bool expired = is_expired(known, today);
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

std::string failure_of(const OutputResult& output) {
  const auto failed = std::ranges::find(output.criteria, false, &tolerance::Criterion::ok);
  if (failed == output.criteria.end()) {
    return "";
  }
  return fmt::format("{}: {}{}", output.port, tolerance::words_of(*failed),
                     output.pass.empty() ? "" : fmt::format(", left by {}", output.pass));
}

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
  std::vector<const plan::XFail*> issues;
  for (const bool expired : {false, true}) {
    for (const plan::XFail& issue : known_issues) {
      if (is_expired(issue, today) == expired) {
        issues.push_back(&issue);
      }
    }
    if (const std::optional<plan::XFail> known = fitting(issues, result)) {
      apply(*known, result, outcome.kind == worker::Outcome::Kind::done, today);
      return;
    }
  }
  if (const OutputResult* rest = result.status == Status::fail ? first_unexplained(issues, result) : nullptr) {
    result.reason = failure_of(*rest) + ", besides what is known";
  }
}

}  // namespace numcheck::verdict
