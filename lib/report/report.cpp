#include "report/report.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/hash.hpp"
#include "report/causes.hpp"
#include "report/library_table.hpp"
#include "report/number.hpp"
#include "report/override_table.hpp"
#include "report/precision_map.hpp"
#include "report/record_members.hpp"
#include "report/summary.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

/// "cannot load /usr/lib/libfoo.so (/etc/x)" -> "cannot load libfoo.so (x)": a report must not reveal
/// directories of the machine. A path starts with a slash at the beginning of a word and ends where the word ends.
std::string strip_directories(std::string_view text) {
  constexpr std::string_view kBefore = " \t\n\"'`(=:,;[<";
  constexpr std::string_view kAfter = " \t\n\"'`),;]>";
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts_word = i == 0 || kBefore.find(text[i - 1]) != std::string_view::npos;
    if (text[i] != '/' || !starts_word) {
      result += text[i];
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(kAfter, i), text.size());
    const std::string_view path = text.substr(i, end - i);
    result += path.substr(path.find_last_of('/') + 1);
    i = end - 1;
  }
  return result;
}

/// A command-line argument: all of it, or what follows an equals sign, may be a path with spaces.
std::string strip_directory_from_argument(const std::string& word) {
  const std::size_t start = word.starts_with("--") && word.find('=') != std::string::npos ? word.find('=') + 1 : 0;
  if (start >= word.size() || word[start] != '/') {
    return word;
  }
  return word.substr(0, start) + word.substr(word.find_last_of('/') + 1);
}

json machine_json(const RunFacts& facts) {
  json libraries = json::object();
  for (const auto& [name, version] : facts.libraries) {
    libraries[name] = strip_directories(version);
  }
  json machine = {{"device", nullptr},
                  {"driver", nullptr},
                  {"libraries", std::move(libraries)},
                  {"host", {{"cpus", facts.host.cpus}, {"isa", facts.host.isa}, {"blas", facts.host.blas}}}};
  if (!facts.host.name.empty()) {
    machine["host"]["name"] = facts.host.name;
  }
  if (facts.device.has_value()) {
    const machine::Device& device = *facts.device;
    machine["device"] = {{"name", device.name},
                         {"sm", device.sm},
                         {"index", device.index},
                         {"simulated", device.simulated},
                         {"uuid", device.uuid},
                         {"memory_bytes", device.memory_bytes},
                         {"multiprocessors", device.multiprocessors}};
    machine["driver"] = device.driver.empty() ? json() : json(device.driver);
  }
  return machine;
}

json environment_json(const RunFacts& facts) {
  json environment = json::object();
  for (const auto& [name, value] : facts.environment) {
    environment[name] = value.has_value() ? json(*value) : json();
  }
  return environment;
}

json plan_json(const PlanFacts& plan) {
  json shard = {{"index", plan.shard.index}, {"count", plan.shard.count}};
  if (plan.shard.count > 1) {
    shard.update({{"of", plan.shard.of},
                  {"places", plan.shard.places},
                  {"selection", plan.shard.selection},
                  {"verified", plan.shard.verified}});
  }
  return {{"name", plan.name},         {"digest", plan.digest},     {"seed", plan.seed},
          {"expanded", plan.expanded}, {"selected", plan.selected}, {"shard", std::move(shard)}};
}

json settings_json(const SettingFacts& settings) {
  return {{"repeat", settings.repeat},
          {"inject", settings.inject.empty() ? json() : json(settings.inject)},
          {"inject_cases", settings.inject_cases},
          {"reference_flops", settings.reference_flops}};
}

json times_json(const RunTimes& times) {
  json stages = object_of(stage_members(), times.stages);
  stages["wall"] = number(times.wall_s);
  return stages;
}

/// What the cases show together.
void add_tables(json& report, const std::vector<json>& records) {
  const json& device = report.at("machine").at("device");
  const bool is_simulated = !device.is_null() && device.at("simulated").get<bool>();
  json effect = override_effect(records, report["environment"], is_simulated);
  if (!effect["rows"].empty()) {
    report["override_effect"] = std::move(effect);
  }
  json changes = library_changes(records);
  if (!changes["rows"].empty()) {
    report["library_changes"] = std::move(changes);
  }
  json precision = precision_map(records, report["environment"]);
  if (!precision.empty()) {
    report["precision_map"] = std::move(precision);
  }
  json named = causes(records);
  if (!named.empty()) {
    report["causes"] = std::move(named);
  }
}

}  // namespace

nlohmann::json without_folders(nlohmann::json record) {
  record["reason"] = strip_directories(record.at("reason").get<std::string>());
  const auto strip_file = [](json& known) {
    if (const auto file = known.find("file"); file != known.end()) {
      *file = strip_directories(file->get<std::string>());
    }
  };
  if (const auto known = record.find("xfail"); known != record.end()) {
    strip_file(*known);
  }
  if (const auto expired = record.find("expired_issues"); expired != record.end()) {
    std::ranges::for_each(*expired, strip_file);
  }
  for (json& run : record.at("runs")) {
    run["error"] = strip_directories(run.at("error").get<std::string>());
  }
  return record;
}

nlohmann::json make_report(const RunFacts& facts, std::vector<nlohmann::json> cases) {
  json argv = json::array();
  for (const std::string& word : facts.tool.argv) {
    argv.push_back(strip_directory_from_argument(word));
  }
  // Records of a large run take gigabytes: they are moved, never copied.
  std::vector<json> records = std::move(cases);
  for (json& record : records) {
    record = without_folders(std::move(record));
  }
  json report = {{"schema", kReportSchemaName},
                 {"schema_version", kReportSchemaVersion},
                 {"tool",
                  {{"version", facts.tool.version},
                   {"revision", facts.tool.revision},
                   {"dirty", facts.tool.dirty},
                   {"argv", std::move(argv)}}},
                 {"plan", plan_json(facts.plan)},
                 {"settings", settings_json(facts.settings)},
                 {"machine", machine_json(facts)},
                 {"environment", environment_json(facts)},
                 {"started", facts.started},
                 {"interrupted", facts.interrupted},
                 {"time_s", times_json(facts.times)}};
  if (!facts.notes.empty()) {
    for (const std::string& note : facts.notes) {
      report["notes"].push_back(strip_directories(note));
    }
  }
  if (facts.budget.has_value()) {
    report["budget"] = {{"limit_s", number(facts.budget->limit_s)}, {"not_started", facts.budget->not_started}};
  }
  if (facts.configurations.has_value()) {
    const ConfigurationFacts& c = *facts.configurations;
    report["configurations"] = {{"asked", c.asked}, {"kept", c.kept}, {"offered", c.offered}, {"verified", c.verified}};
  }
  add_cases(report, std::move(records));
  return report;
}

void add_cases(nlohmann::json& report, std::vector<nlohmann::json> records) {
  report["summary"] = summarise(records);
  if (!report.value("brief", false)) {
    add_tables(report, records);
  }
  report["cases"] = std::move(records);
}

std::string selection_digest(const std::vector<std::string>& digests) {
  return core::digest_of(fmt::format("{}", fmt::join(digests, " "))).hex();
}

std::vector<std::string> short_digests(const std::vector<std::string>& digests) {
  constexpr std::size_t kDigits = 8;
  std::vector<std::string> sorted = digests;
  std::ranges::sort(sorted);
  sorted.erase(std::ranges::unique(sorted).begin(), sorted.end());
  const auto common = [](const std::string& left, const std::string& right) {
    return static_cast<std::size_t>(std::ranges::mismatch(left, right).in1 - left.begin());
  };
  std::vector<std::string> prefixes;
  prefixes.reserve(digests.size());
  for (const std::string& digest : digests) {
    const auto at = std::ranges::lower_bound(sorted, digest);
    std::size_t digits = kDigits;
    if (at != sorted.begin()) {
      digits = std::max(digits, common(digest, *std::prev(at)) + 1);
    }
    if (std::next(at) != sorted.end()) {
      digits = std::max(digits, common(digest, *std::next(at)) + 1);
    }
    prefixes.push_back(digest.substr(0, digits));
  }
  return prefixes;
}

}  // namespace numcheck::report
