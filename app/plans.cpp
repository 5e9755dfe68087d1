#include "plans.hpp"

#include <algorithm>
#include <array>
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
#include "machine/memory.hpp"
#include "plan/known_issues.hpp"

namespace numcheck::app {
namespace {

/// Expanding takes 13 us per case, so this many take about two minutes.
constexpr std::uint64_t kMaxCases = 10'000'000;

void append(plan::Plan& whole, plan::Plan part, std::set<core::Digest>& known) {
  whole.name += (whole.name.empty() ? "" : "+") + part.name;
  if (whole.digest.empty()) {
    whole.digest = part.digest;
    whole.description = part.description;
    whole.seed = part.seed;
  } else {
    whole.digest = "xxh128:" + core::digest_of(whole.digest + " " + part.digest).hex();
  }
  for (plan::Case& c : part.cases) {
    if (known.insert(c.digest).second) {
      whole.cases.push_back(std::move(c));
    }
  }
  std::ranges::move(part.warnings, std::back_inserter(whole.warnings));
  std::ranges::move(part.files, std::back_inserter(whole.files));
}

/// A word that could be the name of a shipped plan: "acceptance".
bool is_plan_name(const std::string& path) {
  return !path.empty() && path.find_first_of("/.") == std::string::npos;
}

constexpr std::array<const char*, 2> kPlanFolders = {"configs/plans", "configs/plans/scenarios"};

/// Where shipped files are: here, as in the source tree; in the installation; and in the source tree that the program
/// was built in.
std::vector<std::filesystem::path> roots() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<std::filesystem::path> roots = {{}, (folder / "../share/te-numcheck").lexically_normal()};
  for (auto above = folder; above.has_relative_path(); above = above.parent_path()) {
    if (std::filesystem::is_regular_file(above / kPlanFolders.front() / "quick.json", error)) {
      roots.push_back(above);
      break;
    }
  }
  return roots;
}

std::set<std::string> shipped_plans() {
  std::set<std::string> names;
  for (const std::filesystem::path& root : roots()) {
    for (const char* folder : kPlanFolders) {
      std::error_code error;
      for (const auto& entry : std::filesystem::directory_iterator(root / folder, error)) {
        if (entry.path().extension() == ".json") {
          names.insert(entry.path().stem().string());
        }
      }
    }
  }
  return names;
}

[[noreturn]] void refuse_name(const std::string& name) {
  const std::set<std::string> shipped = shipped_plans();
  const std::vector<std::string_view> names(shipped.begin(), shipped.end());
  const std::string_view nearest = core::nearest_name(name, names);
  throw core::UsageError(fmt::format("no plan is named \"{}\"{}{}", core::printable(name),
                                     nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest),
                                     names.empty() ? "" : fmt::format("; plans are: {}", fmt::join(names, " "))));
}

/// The first regular file of these; empty if there is none.
std::filesystem::path first_file(const std::vector<std::filesystem::path>& candidates) {
  std::error_code error;
  const auto found = std::ranges::find_if(candidates, [&error](const std::filesystem::path& candidate) {
    return std::filesystem::is_regular_file(candidate, error);
  });
  return found == candidates.end() ? std::filesystem::path() : *found;
}

/// The path itself, or the shipped file for "configs/..." that does not exist here, so that documented commands work
/// from any folder.
std::filesystem::path found_file(const std::string& path) {
  std::error_code error;
  if (!path.starts_with("configs/") || std::filesystem::exists(path, error)) {
    return path;
  }
  std::vector<std::filesystem::path> candidates;
  std::ranges::transform(roots(), std::back_inserter(candidates), [&path](const auto& root) { return root / path; });
  const std::filesystem::path found = first_file(candidates);
  return found.empty() ? std::filesystem::path(path) : found;
}

/// The file of a plan: the path itself, or the shipped plan of that name ("acceptance"); a folder may have the name of a
/// plan, as one with its results does. Throws core::UsageError if it is a name, but of no plan.
std::filesystem::path found_plan(const std::string& path) {
  if (!is_plan_name(path)) {
    return found_file(path);
  }
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_directory(path, error)) {
    return path;
  }
  std::vector<std::filesystem::path> candidates;
  for (const std::filesystem::path& root : roots()) {
    for (const char* folder : kPlanFolders) {
      candidates.push_back(root / folder / (path + ".json"));
    }
  }
  const std::filesystem::path found = first_file(candidates);
  if (found.empty()) {
    refuse_name(path);
  }
  return found;
}

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
  cli.add_option("--known-issues", options.known_issues,
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
  plan::Plan whole;
  std::set<core::Digest> known;
  const auto announce = [&context](const std::string& path, const std::string& found) {
    if (found != path && !is_plan_name(path)) {
      context.terminal.err(
          fmt::format("{} does not exist here; reading {}\n", core::printable(path), core::printable(found)));
    }
    return found;
  };
  for (const std::string& path : options.paths) {
    append(whole, plan::load_plan(announce(path, found_plan(path).string()), vocabulary(), limits), known);
  }
  for (const std::string& path : options.known_issues) {
    const std::string found = announce(path, found_file(path).string());
    const std::string digest = plan::add_known_issues(whole.cases, found, vocabulary(), limits);
    whole.digest = "xxh128:" + core::digest_of(whole.digest + " " + digest).hex();
    whole.files.push_back(found);
  }
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
