#include "plans.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "annotations.hpp"
#include "arguments.hpp"
#include "catalog.hpp"
#include "command.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/printable.hpp"
#include "core/strings.hpp"
#include "facts.hpp"
#include "machine/memory.hpp"
#include "plan/known_issues.hpp"
#include "shipped_files.hpp"

namespace numcheck::app {
namespace {

/// Expanding takes 2 us per case, so this many take about 20 s.
constexpr std::uint64_t kMaxCases = 10'000'000;

/// Joins the cases of plans: of those that compute the same numbers, the first.
class CaseUnion {
 public:
  void add(std::vector<plan::Case> part, std::vector<plan::Case>& whole) {
    // Nearly always, and a million cases are not to be moved one by one.
    if (whole.empty() && are_all_different(part)) {
      whole = std::move(part);
      return;
    }
    if (known_.empty()) {
      note(whole);
    }
    for (plan::Case& c : part) {
      if (known_.insert(c.digest).second) {
        whole.push_back(std::move(c));
      }
    }
  }

 private:
  static bool are_all_different(const std::vector<plan::Case>& cases) {
    std::vector<core::Digest> digests(cases.size());
    std::ranges::transform(cases, digests.begin(), &plan::Case::digest);
    std::ranges::sort(digests);
    return std::ranges::adjacent_find(digests) == digests.end();
  }
  void note(const std::vector<plan::Case>& cases) {
    for (const plan::Case& c : cases) {
      known_.insert(c.digest);
    }
  }

  std::set<core::Digest> known_;
};

void append(plan::Plan& whole, plan::Plan part, CaseUnion& cases) {
  whole.name += (whole.name.empty() ? "" : "+") + part.name;
  if (whole.digest.empty()) {
    whole.digest = part.digest;
    whole.description = part.description;
    whole.seed = part.seed;
  } else {
    whole.digest = "xxh128:" + core::digest_of(whole.digest + " " + part.digest).hex();
  }
  if (part.baseline && whole.baseline && part.baseline->path != whole.baseline->path) {
    plan::Diagnostic diagnostic = part.baseline->place;
    diagnostic.text =
        fmt::format("another plan has the baseline {}: a run is compared with one report", whole.baseline->path);
    diagnostic.hint = "run the plans one by one";
    throw plan::PlanError({diagnostic});
  }
  if (part.baseline) {
    whole.baseline = std::move(part.baseline);
  }
  cases.add(std::move(part.cases), whole.cases);
  std::ranges::move(part.warnings, std::back_inserter(whole.warnings));
  std::ranges::move(part.files, std::back_inserter(whole.files));
}

/// Entries that match no case: how many, and with -v where they are.
void note_unmatched(Context& context, const std::string& path, const plan::KnownIssues& known) {
  context.terminal.err(fmt::format("note: {}: {} of {} known issues match{} no case of the plan{}\n",
                                   core::printable(path), known.unmatched.size(), known.entries,
                                   known.unmatched.size() == 1 ? "es" : "",
                                   context.common.verbosity() > 0 ? "" : "; -v shows where they are"));
  if (context.common.verbosity() > 0) {
    for (const plan::Place& place : known.unmatched) {
      context.terminal.err(fmt::format("  {}\n", core::printable(place.text())));
    }
  }
}
/// The mistakes of several files, so that all are reported at once.
class Mistakes {
 public:
  template <class Load>
  void collect(const Load& load) {
    try {
      load();
    } catch (const plan::PlanError& error) {
      std::ranges::copy(error.diagnostics(), std::back_inserter(all_));
      found_ += error.found();
    }
  }
  void finish() {
    if (!all_.empty()) {
      throw plan::PlanError(std::move(all_), found_);
    }
  }

 private:
  std::vector<plan::Diagnostic> all_;
  std::size_t found_ = 0;
};

}  // namespace

bool names_plan(const std::string& word) {
  std::error_code error;
  return std::filesystem::is_regular_file(word, error) || shipped_plans().contains(word);
}

void add_plan_options(CLI::App& cli, PlanOptions& options) {
  cli.add_option("plans", options.paths, "plan files, or names of shipped plans")->type_name("PLAN");
  cli.add_option("--max-cases", options.max_cases, "refuse plans that expand to more than N cases [100000]")
      ->type_name("N")
      ->group("Selection");
  cli.add_option("--known,--known-issues", options.known_issues,
                 "expect the failures that this file lists, in every plan; may be repeated")
      ->type_name("PATH")
      ->allow_extra_args(false)
      ->group("Selection");
  cli.add_flag("--sandbox", options.sandbox, "refuse paths outside the plan's folder")->group("Selection");
}

plan::Plan load_plans(Context& context, const PlanOptions& options, std::string_view command) {
  if (options.paths.empty()) {
    throw core::UsageError(fmt::format("{0}: name a plan: te-numcheck {0} PLAN...", command));
  }
  plan::Limits limits;
  limits.sandbox = options.sandbox;
  limits.case_memory_bytes = machine::default_memory_bytes();
  if (!options.max_cases.empty()) {
    limits.max_cases = parse_count(options.max_cases, "--max-cases", 1, kMaxCases);
  }
  if (options.reports_known_issues) {
    limits.today = utc_now().substr(0, std::string_view("2026-01-31").size());
  }
  plan::Plan whole;
  CaseUnion cases;
  const auto announce = [&context](const std::string& path, const std::string& found) {
    if (found != path && !is_plan_name(path)) {
      context.terminal.err(
          fmt::format("{} does not exist here; reading {}\n", core::printable(path), core::printable(found)));
    }
    return found;
  };
  Mistakes mistakes;
  for (const std::string& path : options.paths) {
    const std::string found = announce(path, found_plan(path).string());
    mistakes.collect([&] { append(whole, plan::load_plan(found, vocabulary(), limits), cases); });
  }
  for (const std::string& path : options.known_issues) {
    const std::string found = announce(path, found_file(path).string());
    mistakes.collect([&] {
      plan::KnownIssues known_issues = plan::add_known_issues(whole.cases, found, vocabulary(), limits);
      whole.digest = "xxh128:" + core::digest_of(whole.digest + " " + known_issues.digest).hex();
      whole.files.push_back(found);
      std::ranges::move(known_issues.warnings, std::back_inserter(whole.warnings));
      if (options.reports_known_issues && !known_issues.unmatched.empty()) {
        note_unmatched(context, found, known_issues);
      }
    });
  }
  mistakes.finish();
  print_diagnostics(context.terminal, whole.warnings);
  return whole;
}

void print_diagnostics(Terminal& terminal, const std::vector<plan::Diagnostic>& diagnostics) {
  for (const plan::Diagnostic& diagnostic : diagnostics) {
    terminal.err(plan::render(diagnostic));
    terminal.annotate(annotation(diagnostic));
  }
}

}  // namespace numcheck::app
