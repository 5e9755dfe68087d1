// Derives the case's status from its runs.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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
                        (about == Criterion::About::unwritten && finding.about == Explained::unwritten) ||
                        (about == Criterion::About::repetition && finding.about == Explained::repetition);
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

/// Something that went wrong, which a known issue must explain: an output that fails, or an error; a crash is one as well.
struct Fault {
  const OutputResult* output = nullptr;
  std::string_view error{};

  [[nodiscard]] bool is_explained_by(const plan::XFail& issue) const {
    return output != nullptr ? !issue.cause.empty() && is_explained(*output, issue.cause)
                             : !issue.error.empty() && error.find(issue.error) != std::string_view::npos;
  }
};

/// True if the reference of a run, or its comparison, exceeded the case's time limit.
bool any_out_of_time(const CaseResult& result) {
  return std::ranges::find(result.runs, Status::timeout, &RunResult::status) != result.runs.end();
}

/// All that went wrong; nothing if something did that no entry can explain.
std::optional<std::vector<Fault>> faults_of(const CaseResult& result, const worker::Outcome& outcome) {
  using Kind = worker::Outcome::Kind;
  if (outcome.kind == Kind::unsupported || outcome.kind == Kind::timeout || any_out_of_time(result)) {
    return std::nullopt;
  }
  std::vector<Fault> faults;
  for (const RunResult& run : result.runs) {
    const std::size_t before = faults.size();
    for (const OutputResult& output : run.outputs) {
      if (run.status == Status::fail && !std::ranges::all_of(output.criteria, &tolerance::Criterion::ok)) {
        faults.push_back({.output = &output});
      }
    }
    if (run.status == Status::error) {  // or a run that lost the device, and those after it
      faults.push_back({.error = run.run.error});
    }
    if (run.status == Status::fail && faults.size() == before) {
      return std::nullopt;
    }
  }
  if (outcome.kind == Kind::error || outcome.kind == Kind::crashed) {
    faults.push_back({.error = outcome.reason});
  }
  return faults;
}

void append(std::string& text, const std::string& more) {
  text += (text.empty() || more.empty() ? "" : "; ") + more;
}

/// Several entries that explain a case together, as one. Its place is that of the one that expires first.
plan::XFail combined(std::span<const plan::XFail* const> entries) {
  plan::XFail all = *entries.front();
  for (const plan::XFail* entry : entries.subspan(1)) {
    append(all.reason, entry->reason);
    append(all.cause, entry->cause);
    append(all.error, entry->error);
    append(all.link, entry->link);
    if (!entry->expires.empty() && (all.expires.empty() || entry->expires < all.expires)) {
      all.expires = entry->expires;
      all.place = entry->place;
    }
  }
  return all;
}

/// Known issues that concern the case together.
struct Fit {
  std::vector<const plan::XFail*> issues;  ///< one or more
  bool excuses = false;                    ///< they cover all that went wrong
};

/// An entry without a cause or an error concerns the whole case. The others concern what goes wrong only, and only if
/// together they explain all of it: each output by one cause, each error or crash by one text that its message contains.
std::optional<Fit> fitting(std::span<const plan::XFail* const> issues, const CaseResult& result,
                           const worker::Outcome& outcome) {
  const auto whole = std::ranges::find_if(issues, &plan::XFail::expects_failure);
  if (whole != issues.end()) {
    const bool complete = outcome.kind == worker::Outcome::Kind::done && !any_out_of_time(result);
    return Fit{{*whole}, result.status == Status::fail && complete};
  }
  const auto faults = faults_of(result, outcome);
  constexpr std::array kBad = {Status::fail, Status::error, Status::crashed};
  if (!faults || std::ranges::find(kBad, result.status) == kBad.end()) {
    return std::nullopt;
  }
  std::vector<const plan::XFail*> used;
  for (const Fault& fault : *faults) {
    const auto issue = std::ranges::find_if(
        issues, [&fault](const plan::XFail* candidate) { return fault.is_explained_by(*candidate); });
    if (issue == issues.end()) {
      return std::nullopt;
    }
    if (std::ranges::find(used, *issue) == used.end()) {
      used.push_back(*issue);
    }
  }
  return used.empty() ? std::nullopt : std::optional(Fit{std::move(used), true});
}

/// The first failed output that no cause explains, if they explain others; null otherwise.
const OutputResult* first_unexplained(std::span<const plan::XFail* const> issues, const CaseResult& result) {
  const OutputResult* first = nullptr;
  bool any_explained = false;
  for (const RunResult& run : result.runs) {
    for (const OutputResult& output : run.outputs) {
      const bool failed = !std::ranges::all_of(output.criteria, &tolerance::Criterion::ok);
      const bool explained = failed && std::ranges::any_of(issues, [&output](const plan::XFail* issue) {
                               return Fault{.output = &output}.is_explained_by(*issue);
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

void apply(const Fit& fit, CaseResult& result, const std::string& today) {
  const plan::XFail& known = result.known_issue.emplace(combined(fit.issues));
  result.known_issue_expired = is_expired(known, today);
  if (fit.excuses && !result.known_issue_expired) {
    result.status = Status::xfail;
    result.reason = known.reason + " (" + result.reason + ")";
  } else if (result.status == Status::pass) {
    result.status = Status::xpass;
    result.reason = "passes although listed as known to fail: " + known.reason;
  } else if (fit.excuses) {
    const std::string place = known.place.text();
    result.reason +=
        fmt::format(" (its known issue{}{} expired on {})", place.empty() ? "" : " at ", place, known.expires);
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
  for (const Status worse : {Status::warn, Status::inconclusive, Status::error, Status::timeout, Status::fail}) {
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
  std::optional<Fit> fit;
  for (const bool expired : {false, true}) {
    for (const plan::XFail& issue : known_issues) {
      if (is_expired(issue, today) == expired) {
        issues.push_back(&issue);
      }
    }
    if (fit = fitting(issues, result, outcome); fit.has_value()) {
      break;
    }
  }
  if (fit.has_value()) {
    apply(*fit, result, today);
  } else if (const OutputResult* rest = result.status == Status::fail ? first_unexplained(issues, result) : nullptr) {
    result.reason = failure_of(*rest) + ", besides what is known";
  }
  note_expired(result, known_issues, today);
  if (fit.has_value()) {
    std::erase_if(result.expired_issues, [&fit](const plan::XFail& issue) {
      return std::ranges::any_of(fit->issues, [&issue](const plan::XFail* used) { return *used == issue; });
    });
  }
}

void note_expired(CaseResult& result, std::span<const plan::XFail> known_issues, const std::string& today) {
  for (const plan::XFail& issue : known_issues) {
    if (is_expired(issue, today)) {
      result.expired_issues.push_back(issue);
    }
  }
}

}  // namespace numcheck::verdict
