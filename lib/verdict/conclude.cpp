// Derives the case's status from its runs.
#include <algorithm>
#include <optional>
#include <string>

#include "verdict/evaluate.hpp"

namespace numcheck::verdict {

void conclude(CaseResult& result, const worker::Outcome& outcome, const std::string& today) {
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
  const std::optional<plan::XFail>& known = result.c->xfail;
  const bool expired = known.has_value() && !known->expires.empty() && known->expires < today;
  const bool whole = outcome.kind == worker::Outcome::Kind::done;
  if (known.has_value() && result.status == Status::fail && whole && !expired) {
    result.status = Status::xfail;
    result.reason = known->reason + " (" + result.reason + ")";
  } else if (known.has_value() && result.status == Status::pass) {
    result.status = Status::xpass;
    result.reason = "passes although listed as known to fail: " + known->reason;
  } else if (expired && result.status == Status::fail) {
    result.reason += " (its xfail entry expired on " + known->expires + ")";
  }
}

}  // namespace numcheck::verdict
