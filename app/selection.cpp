#include "selection.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "arguments.hpp"
#include "catalog.hpp"
#include "core/counted.hpp"
#include "core/error.hpp"
#include "core/strings.hpp"
#include "failed_in.hpp"
#include "pattern.hpp"
#include "plan/backend_name.hpp"
#include "prepare/grouping.hpp"
#include "shard.hpp"

namespace numcheck::app {
namespace {

using plan::Case;

void keep_flagged(std::vector<Case>& cases, const std::vector<bool>& keep) {
  std::vector<Case> kept;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (keep[i]) {
      kept.push_back(std::move(cases[i]));
    }
  }
  cases = std::move(kept);
}

void filter_by_name(std::vector<Case>& cases, const SelectionOptions& options) {
  std::vector<bool> keep(cases.size(), true);
  std::vector<std::string_view> ids;
  ids.reserve(cases.size());
  for (const Case& c : cases) {
    ids.emplace_back(c.id);
  }
  const auto apply = [&](const std::vector<std::string>& expressions, std::string_view option, bool wanted) {
    for (const std::string& expression : expressions) {
      const std::vector<bool> found = Pattern(expression, option).found_in(ids);
      for (std::size_t i = 0; i < keep.size(); ++i) {
        keep[i] = keep[i] && found[i] == wanted;
      }
    }
  };
  apply(options.filters, "--filter", true);
  apply(options.excludes, "--exclude", false);
  keep_flagged(cases, keep);
}

/// Keeps cases for which `matches(case, word)` holds for at least one of the words.
template <class Matches>
void filter_by_field(std::vector<Case>& cases, const std::vector<std::string>& values, std::string_view what,
                     const std::vector<std::string_view>& legal, const Matches& matches) {
  const std::vector<std::string> wanted = split_lists(values, fmt::format("--{}", what));
  if (wanted.empty()) {
    return;
  }
  for (const std::string& word : wanted) {
    require_known(word, what, legal);
  }
  std::erase_if(cases, [&](const Case& c) {
    return std::ranges::none_of(wanted, [&](const std::string& word) { return matches(c, word); });
  });
}

/// A name without version stands for all versions; `auto` is a name like any other.
void filter_by_backend(std::vector<Case>& cases, const std::vector<std::string>& values,
                       std::vector<std::string_view> legal) {
  std::set<std::string> versions;
  for (const Case& c : cases) {
    if (!plan::version_of(c.backend).empty()) {
      versions.insert(c.backend);
    }
  }
  legal.insert(legal.end(), versions.begin(), versions.end());
  legal.emplace_back(plan::kAutoBackend);
  filter_by_field(cases, values, "backend", legal, [](const Case& c, const auto& word) {
    return c.backend == word || plan::backend_of(c.backend) == word;
  });
}

void filter_by_fields(std::vector<Case>& cases, const SelectionOptions& options) {
  const plan::Vocabulary words = vocabulary();
  std::vector<std::string_view> ops;
  ops.reserve(words.ops.size());
  for (const op::Op* op : words.ops) {
    ops.push_back(op->name);
  }
  std::vector<std::string_view> modes;
  for (const op::Mode& mode : op::all_modes()) {
    modes.push_back(mode.name);
  }
  filter_by_field(cases, options.ops, "op", ops, [](const Case& c, const auto& word) { return c.op->name == word; });
  filter_by_field(cases, options.modes, "mode", modes,
                  [](const Case& c, const auto& word) { return c.mode->name == word; });
  filter_by_backend(cases, options.backends, words.backends);
}

void filter_by_tags(std::vector<Case>& cases, const SelectionOptions& options) {
  const std::vector<std::string> wanted = split_lists(options.tags, "--tag");
  if (wanted.empty()) {
    return;
  }
  std::set<std::string_view> known;
  for (const Case& c : cases) {
    known.insert(c.tags.begin(), c.tags.end());
  }
  for (const std::string& word : wanted) {
    if (known.empty()) {
      throw core::UsageError(fmt::format("--tag {}: no case of the plan has a tag", word));
    }
    require_known(word, "tag", {known.begin(), known.end()});
  }
  std::erase_if(cases, [&wanted](const Case& c) {
    return std::ranges::none_of(
        c.tags, [&wanted](const std::string& tag) { return std::ranges::find(wanted, tag) != wanted.end(); });
  });
}

constexpr std::size_t kFewestDigits = 4;
constexpr std::size_t kAllDigits = 32;

/// The digits in lower case, if the text may be meant as (the beginning of) a digest: "5f3a", "#5F3A91C2"; else empty.
std::string digest_digits(std::string_view text) {
  text.remove_prefix(text.starts_with('#') ? 1 : 0);
  std::string digits(text);
  std::ranges::transform(digits, digits.begin(), [](char letter) {
    return letter >= 'A' && letter <= 'F' ? static_cast<char>(letter - 'A' + 'a') : letter;
  });
  return digits.find_first_not_of("0123456789abcdef") == std::string::npos ? digits : "";
}

[[noreturn]] void refuse_name(const std::vector<Case>& cases, const std::string& name, const std::string& digits,
                              const std::string& by) {
  if (!digits.empty() && digits.size() < kFewestDigits) {
    throw core::UsageError(fmt::format("{}: \"{}\" is too short for a digest; give at least {} of its {} digits", by,
                                       name, kFewestDigits, kAllDigits));
  }
  constexpr std::size_t kSuggestFrom = 2000;  // edit distances to more identifiers take too long
  std::vector<std::string_view> ids;
  if (cases.size() <= kSuggestFrom) {
    std::ranges::transform(cases, std::back_inserter(ids), [](const Case& c) { return std::string_view(c.id); });
  }
  const std::string_view nearest = core::nearest_name(name, ids);
  throw core::UsageError(fmt::format("{}: no case {} \"{}\"{}; te-numcheck list cases PLAN shows all", by,
                                     digits.empty() ? "is named" : "has the digest", name,
                                     nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest)));
}

void filter_by_case(std::vector<Case>& cases, const SelectionOptions& options) {
  if (options.cases.empty()) {
    return;
  }
  std::set<core::Digest> wanted;
  for (const std::string& name : options.cases) {
    wanted.insert(named_case(cases, name, options.named_by));
  }
  std::erase_if(cases, [&wanted](const Case& c) { return !wanted.contains(c.digest); });
}

/// Keeps the cases whose hash comes first: the same sample on every machine, and mostly the same when a plan grows. The
/// versions of a case share a hash and count once, so that they stay together and the sample is that of one version.
void keep_sample(std::vector<Case>& cases, std::uint64_t count) {
  std::vector<core::Digest> keys;
  keys.reserve(cases.size());
  for (const Case& c : cases) {
    keys.push_back(core::digest_of("sample " + plan::without_version(c).digest.hex()));
  }
  std::vector<core::Digest> sorted = keys;
  std::ranges::sort(sorted);
  sorted.erase(std::ranges::unique(sorted).begin(), sorted.end());
  if (sorted.size() <= count) {
    return;
  }
  const core::Digest limit = sorted[static_cast<std::size_t>(count) - 1];
  std::vector<Case> kept;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (keys[i] <= limit) {
      kept.push_back(std::move(cases[i]));
    }
  }
  cases = std::move(kept);
}

/// Keeps the cases of a shard, and returns where they were.
report::ShardFacts keep_shard(std::vector<Case>& cases, const Shard& shard) {
  report::ShardFacts facts{.index = shard.index, .count = shard.count, .of = cases.size()};
  std::vector<std::string> digests;
  digests.reserve(cases.size());
  for (const Case& c : cases) {
    digests.push_back(c.digest.hex());
  }
  facts.selection = report::selection_digest(digests);
  std::vector<std::size_t> all(cases.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = i;
  }
  std::vector<bool> keep(cases.size());
  for (const prepare::GroupPlan& group : prepare::group_cases(cases, all)) {
    for (const std::size_t index : group.cases) {
      keep[index] = shard_of(group.key, shard.count) == shard.index;
    }
  }
  for (std::size_t i = 0; i < keep.size(); ++i) {
    if (keep[i]) {
      facts.places.push_back(i);
    }
  }
  keep_flagged(cases, keep);
  return facts;
}

}  // namespace

core::Digest named_case(const std::vector<Case>& cases, const std::string& name, const std::string& by) {
  const std::string digits = digest_digits(name);
  const bool is_prefix = digits.size() >= kFewestDigits;
  std::vector<const Case*> found;
  for (const Case& c : cases) {
    if (c.id == name || (is_prefix && c.digest.hex().starts_with(digits))) {
      found.push_back(&c);
    }
  }
  if (found.empty()) {
    refuse_name(cases, name, digits, by);
  }
  if (found.size() > 1 && found.front()->id != name) {
    std::vector<std::string> candidates;
    for (const Case* c : found) {
      candidates.push_back(c->digest.hex() + "  " + c->id);
    }
    throw core::UsageError(fmt::format("{}: several digests start with {}:", by, name), std::move(candidates));
  }
  return found.front()->digest;
}

void add_selection_options(CLI::App& cli, SelectionOptions& options) {
  const char* group = "Selection";
  const auto many = [&cli, group](const char* name, std::vector<std::string>& values, const char* type,
                                  const char* text) {
    cli.add_option(name, values, text)->type_name(type)->allow_extra_args(false)->group(group);
  };
  many("-k,--filter", options.filters, "REGEX", "cases whose identifier matches; repeated: all must match");
  many("--exclude", options.excludes, "REGEX", "drop cases whose identifier matches");
  many("--op", options.ops, "LIST", "these ops, comma-separated");
  many("--mode", options.modes, "LIST", "these modes");
  many("--backend", options.backends, "LIST", "these backends");
  many("--tag", options.tags, "LIST", "cases with one of these tags");
  many("--case", options.cases, "ID|DIGEST", "one case, by identifier or the start of its digest");
  cli.add_option("--failed-in", options.failed_in, "cases that failed or broke in that report.json")
      ->type_name("PATH")
      ->group(group);
  cli.add_option("--sample", options.sample, "N cases chosen by hash, the same everywhere")
      ->type_name("N")
      ->group(group);
  cli.add_option("--shard", options.shard, "I/N: this part of N; auto: from the scheduler's variables; auto/N")
      ->type_name("I/N")
      ->group(group);
}

std::string auto_backend_hint(const std::vector<plan::Case>& all, const SelectionOptions& options) {
  const auto is_auto = [](const Case& c) { return c.backend == plan::kAutoBackend; };
  const std::vector<std::string> wanted = split_lists(options.backends, "--backend");
  if (wanted.empty() || std::ranges::find(wanted, plan::kAutoBackend) != wanted.end() ||
      !std::ranges::any_of(all, is_auto)) {
    return "";
  }
  const auto is_wanted = [&wanted](const Case& c) {
    return std::ranges::any_of(wanted, [&c](const std::string& word) { return plan::backend_of(c.backend) == word; });
  };
  if (std::ranges::any_of(all, is_wanted)) {
    return "";
  }
  return fmt::format(
      "{} cases say \"backend\": \"auto\", which --backend {} does not select; name it in the plan: "
      "\"backend\": \"{}\"",
      std::ranges::all_of(all, is_auto) ? "its" : "some", fmt::join(wanted, ","), wanted.front());
}

Selection select(std::vector<plan::Case> cases, const SelectionOptions& options) {
  Selection selection;
  filter_by_case(cases, options);
  filter_by_name(cases, options);
  filter_by_tags(cases, options);
  filter_by_fields(cases, options);
  if (!options.failed_in.empty()) {
    selection.notes = keep_failed(cases, options.failed_in);
  }
  if (!options.sample.empty()) {
    keep_sample(cases, parse_count(options.sample, "--sample", 1, UINT64_MAX));
  }
  if (!options.shard.empty()) {
    const Shard shard = parse_shard(options.shard, [](const char* name) -> std::optional<std::string> {
      const char* value = std::getenv(name);
      return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    });
    selection.shard = keep_shard(cases, shard);
  }
  selection.cases = std::move(cases);
  return selection;
}

bool is_empty_shard(const Selection& selection) noexcept {
  return selection.cases.empty() && selection.shard.count > 1 && selection.shard.of > 0;
}

std::string nothing_to_run(const Selection& selection, std::size_t expanded, const std::string& hint) {
  if (is_empty_shard(selection)) {
    return fmt::format("nothing to run: shard {}/{} has none of the {}", selection.shard.index + 1,
                       selection.shard.count, core::counted(static_cast<double>(selection.shard.of), "selected case"));
  }
  return fmt::format("nothing to run: the selection matches none of the plan's {}{}{}",
                     core::counted(static_cast<double>(expanded), "case"), hint.empty() ? "" : "; ", hint);
}

}  // namespace numcheck::app
