#include "report/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/strings.hpp"
#include "report/bits.hpp"
#include "report/case_facts.hpp"
#include "report/number.hpp"
#include "report/parse_report.hpp"
#include "report/settings_changes.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, kChanges> kNames = {
    "newly failing", "gone", "worse", "changed status", "better", "same", "fixed", "new", "identical"};

constexpr std::string_view kInconclusive = "inconclusive";

/// Known: fails, and is excused.
enum class Standing : std::uint8_t { absent, good, known, bad };

Standing standing_of(std::string_view status) {
  constexpr std::array<std::string_view, 3> kGood = {"pass", "warn", kInconclusive};
  constexpr std::array<std::string_view, 3> kAbsent = {"", "unsupported", "skipped"};
  return std::ranges::find(kAbsent, status) != kAbsent.end() ? Standing::absent
         : std::ranges::find(kGood, status) != kGood.end()   ? Standing::good
         : status == "xfail"                                 ? Standing::known
                                                             : Standing::bad;
}

std::vector<std::string> implementations_of(const json& record) {
  std::vector<std::string> names;
  for (const json& run : record.at("runs")) {
    names.push_back(run.at("implementation").get<std::string>());
  }
  return names;
}

/// The parts of both descriptions that differ: "algo 67, split-k 4" and "algo 71, split-k 4" -> "algo 67 -> algo 71".
std::string difference_of(const std::string& before, const std::string& after) {
  const std::vector<std::string> left = core::split(before, ','), right = core::split(after, ',');
  const auto without = [](const std::vector<std::string>& words, const std::vector<std::string>& others) {
    std::vector<std::string> rest;
    std::ranges::copy_if(words, std::back_inserter(rest), [&others](const std::string& word) {
      return std::ranges::find(others, word) == others.end();
    });
    return rest;
  };
  const auto text = [](const std::vector<std::string>& words) {
    const std::string joined = fmt::format("{}", fmt::join(words, ","));
    const std::size_t first = joined.find_first_not_of(' ');
    return first == std::string::npos ? std::string("nothing") : joined.substr(first);
  };
  return text(without(left, right)) + " -> " + text(without(right, left));
}

std::string implementation_change(const json& base, const json& now) {
  const std::vector<std::string> before = implementations_of(base), after = implementations_of(now);
  if (before == after || before.empty() || after.empty()) {
    return "";
  }
  if (before.size() == 1 && after.size() == 1) {
    return difference_of(before[0], after[0]);
  }
  return fmt::format("{} -> {} implementations", before.size(), after.size());
}

bool ran(const json& record) {
  return !runs_with_outputs(record).empty();
}

std::string text_of(const json& record, const char* member) {
  const auto found = record.find(member);
  return found == record.end() ? "" : found->get<std::string>();
}

/// The outputs of a record, and whether any gate with a ratio judges them.
std::map<std::string, bool> judged_outputs(const json& record) {
  std::map<std::string, bool> outputs;
  for (const json* run : runs_with_outputs(record)) {
    for (const auto& [port, output] : run->at("outputs").items()) {
      outputs[port] = outputs[port] || !output.at("criteria").empty();
    }
  }
  return outputs;
}

/// "o, lse and 3 more", as a report may have any number of outputs.
std::string names_text(std::vector<std::string> names) {
  constexpr std::size_t kNamed = 5;
  const std::size_t more = names.size() - std::min(names.size(), kNamed);
  names.resize(names.size() - more);
  return fmt::format("{}{}", fmt::join(names, ", "), more == 0 ? "" : fmt::format(" and {} more", more));
}

class Comparer {
 public:
  explicit Comparer(const ComparisonOptions& options) : options_(options) {}

  /// Null: the report does not have the case.
  CaseChange compare(const json* base, const json* now) const {
    const json& either = now != nullptr ? *now : *base;
    CaseChange change{.digest = text_of(either, "digest"), .id = text_of(either, "id")};
    change.base_status = base == nullptr ? "" : text_of(*base, "status");
    change.new_status = now == nullptr ? "" : text_of(*now, "status");
    const CaseFacts before = base == nullptr ? CaseFacts() : facts_of(*base);
    const CaseFacts after = now == nullptr ? CaseFacts() : facts_of(*now);
    change.base_ratio = base == nullptr ? std::nan("") : before.ratio;
    change.new_ratio = now == nullptr ? std::nan("") : after.ratio;
    if (base != nullptr && now != nullptr && ran(*base) && ran(*now)) {
      change.outputs = changed_outputs(*base, *now);
      change.implementation = implementation_change(*base, *now);
    }
    change.reason = now == nullptr ? "" : text_of(*now, "reason");
    if (change.reason.empty() && standing_of(change.base_status) == Standing::bad) {
      change.reason = text_of(*base, "reason");
    }
    change.change = kind_of(change, base != nullptr && now != nullptr && ran(*base) == ran(*now));
    if (change.change == Change::same || change.change == Change::better || change.change == Change::restated) {
      look_closer(before, after, change);
    }
    if (change.change > Change::gone && standing_of(change.new_status) == Standing::good && base != nullptr) {
      require_gates(*base, *now, change);
    }
    change.gates = change.change == Change::newly_failing || change.change == Change::worse ||
                   (change.change == Change::gone && !options_.allow_missing);
    return change;
  }

 private:
  /// A report may have been edited: outputs that were judged, and now are not, or are not there, have no ratio that could be
  /// worse.
  static void require_gates(const json& base, const json& now, CaseChange& change) {
    const std::map<std::string, bool> after = judged_outputs(now);
    std::vector<std::string> lost, gone;
    for (const auto& [port, judged] : judged_outputs(base)) {
      const auto found = after.find(port);
      if (judged && (found == after.end() || !found->second)) {
        (found == after.end() ? gone : lost).push_back(port);
      }
    }
    if (!lost.empty() || !gone.empty()) {
      change.change = Change::worse;
      change.reason = gone.empty() ? fmt::format("the new report has no gates of {}, the base has", names_text(lost))
                                   : fmt::format("the new report has no {}, the base has", names_text(gone));
    }
  }

  /// What the largest ratio hides: correct rounding to 16 or 8 bits takes up to all of its own limits, so errors in the
  /// arithmetic may grow behind it, and another gate may be the one that is excused.
  void look_closer(const CaseFacts& before, const CaseFacts& after, CaseChange& change) const {
    const bool excused =
        standing_of(change.base_status) == Standing::known && standing_of(change.new_status) == Standing::known;
    if (excused) {
      change.change = before.tightest == after.tightest ? change.change : Change::restated;
      return;
    }
    const bool good =
        standing_of(change.base_status) == Standing::good && standing_of(change.new_status) == Standing::good;
    for (const double CaseFacts::* kind : {&CaseFacts::others, &CaseFacts::rounding}) {
      if (good && !change.outputs.empty() && after.*kind > before.*kind * options_.allow_worse) {
        change.change = Change::worse;
        change.base_ratio = before.*kind;
        change.new_ratio = after.*kind;
        return;
      }
    }
  }

  Change kind_of(const CaseChange& change, bool comparable) const {
    const Standing before = standing_of(change.base_status), after = standing_of(change.new_status);
    if (after == Standing::absent) {
      return before == Standing::absent ? Change::identical : Change::gone;
    }
    if (after == Standing::bad && before != Standing::bad) {
      return Change::newly_failing;
    }
    if (before == Standing::absent) {
      return Change::appeared;
    }
    const bool proves_little = change.new_status == kInconclusive;
    if (after == Standing::good && before != Standing::good) {
      return proves_little ? Change::restated : Change::fixed;
    }
    return after == Standing::known ? kind_of_excused(change, before, comparable)
           : !comparable || (after == Standing::bad && change.base_status != change.new_status) ||
                   (proves_little && change.base_status != kInconclusive)
               ? Change::worse
               : kind_of_numbers(change);
  }

  /// What is excused is never worse.
  Change kind_of_excused(const CaseChange& change, Standing before, bool comparable) const {
    if (before != Standing::known || !comparable) {
      return Change::restated;
    }
    const Change kind = kind_of_numbers(change);
    return kind == Change::worse ? Change::same : kind;
  }

  Change kind_of_numbers(const CaseChange& change) const {
    const bool restated = change.base_status != change.new_status;
    if (change.outputs.empty()) {
      return restated ? Change::restated : Change::identical;
    }
    if (change.new_ratio > change.base_ratio * options_.allow_worse) {
      return Change::worse;
    }
    return restated                                                      ? Change::restated
           : change.new_ratio * options_.allow_worse < change.base_ratio ? Change::better
                                                                         : Change::same;
  }

  ComparisonOptions options_;
};

/// The cases by digest.
std::map<std::string_view, const json*> by_digest(const json& report, const char* which) {
  std::map<std::string_view, const json*> cases;
  for (const json& record : report.at("cases")) {
    if (!cases.emplace(record.at("digest").get_ref<const std::string&>(), &record).second) {
      throw core::IoError(fmt::format("the {} report has the case {} twice", which, text_of(record, "id")));
    }
  }
  return cases;
}

}  // namespace

std::string_view change_name(Change change) noexcept {
  return kNames.at(static_cast<std::size_t>(change));
}

std::string Comparison::sentence() const {
  std::string text;
  for (std::size_t i = 0; i < kChanges; ++i) {
    const std::string_view what = static_cast<Change>(i) == Change::same ? "changed bits" : kNames.at(i);
    text += counts.at(i) == 0 ? "" : fmt::format("{}{} {}", text.empty() ? "" : ", ", counts.at(i), what);
  }
  return text.empty() ? "no cases" : text;
}

Comparison compare_reports(const json& base, const json& now, const ComparisonOptions& options) {
  Comparison comparison;
  try {
    const Comparer comparer(options);
    std::map<std::string_view, const json*> before = by_digest(base, "base");
    const std::map<std::string_view, const json*> after = by_digest(now, "new");
    for (const json& record : now.at("cases")) {
      if (options.skip_skipped && record.at("status") == "skipped") {
        continue;
      }
      const auto found = before.find(record.at("digest").get_ref<const std::string&>());
      comparison.joined += found == before.end() ? 0 : 1;
      comparison.verified += found != before.end() && ran(record) ? 1 : 0;
      comparison.cases.push_back(comparer.compare(found == before.end() ? nullptr : found->second, &record));
    }
    for (const json& record : base.at("cases")) {
      if (!options.only_new && !after.contains(record.at("digest").get_ref<const std::string&>())) {
        comparison.cases.push_back(comparer.compare(&record, nullptr));
      }
    }
    comparison.settings = settings_changes(base, now);
  } catch (const json::exception& error) {
    throw core::IoError(fmt::format("a report lacks what is compared: {}", missing_text(error)));
  }
  for (const CaseChange& change : comparison.cases) {
    ++comparison.counts.at(static_cast<std::size_t>(change.change));
    comparison.regressions += change.gates ? 1 : 0;
  }
  return comparison;
}

namespace {

json summary_of(const Comparison& comparison) {
  json summary = json::object();
  for (std::size_t i = 0; i < kChanges; ++i) {
    summary[std::string(kNames.at(i))] = comparison.counts.at(i);
  }
  summary["regressions"] = comparison.regressions;
  return summary;
}

json change_of(const CaseChange& change) {
  return {{"digest", change.digest},
          {"id", change.id},
          {"change", change_name(change.change)},
          {"regression", change.gates},
          {"base", {{"status", change.base_status}, {"error_over_limit", number(change.base_ratio)}}},
          {"new", {{"status", change.new_status}, {"error_over_limit", number(change.new_ratio)}}},
          {"changed_outputs", change.outputs},
          {"implementation", change.implementation},
          {"reason", change.reason}};
}

}  // namespace

json comparison_json(const Comparison& comparison) {
  json cases = json::array();
  for (const CaseChange& change : comparison.cases) {
    if (change.change != Change::identical) {
      cases.push_back(change_of(change));
    }
  }
  return {{"schema", kComparisonSchemaName},   {"schema_version", kComparisonSchemaVersion},
          {"sentence", comparison.sentence()}, {"summary", summary_of(comparison)},
          {"settings", comparison.settings},   {"cases", std::move(cases)}};
}

json comparison_record(const Comparison& comparison, const std::string& baseline) {
  json regressions = json::array();
  for (const CaseChange& change : comparison.cases) {
    if (change.gates && regressions.size() < kRecordedRegressions) {
      regressions.push_back(change_of(change));
    }
  }
  return {{"baseline", baseline},
          {"sentence", comparison.sentence()},
          {"summary", summary_of(comparison)},
          {"settings", comparison.settings},
          {"regressions", std::move(regressions)}};
}

}  // namespace numcheck::report
