#include "report/merge.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "report/number.hpp"
#include "report/parse_report.hpp"
#include "report/report.hpp"
#include "report/shard_checks.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(std::vector<std::string> problems) {
  constexpr std::size_t kShown = 20;
  if (problems.size() > kShown) {
    const std::size_t more = problems.size() - kShown;
    problems.resize(kShown);
    problems.push_back(fmt::format("and {} more", more));
  }
  throw core::UsageError("these reports cannot be merged", std::move(problems));
}

void sort_by_shard(std::vector<NamedReport>& reports) {
  std::ranges::stable_sort(reports, {}, [](const NamedReport& one) {
    return one.report.at("plan").at("shard").at("index").get<std::size_t>();
  });
}

/// The cases in plan order. The reports lose theirs.
std::vector<json> ordered_cases(std::vector<NamedReport>& reports) {
  std::size_t total = 0;
  for (const NamedReport& one : reports) {
    total += one.report.at("cases").size();
  }
  std::vector<json> cases(total);
  std::vector<std::string> problems;
  std::set<std::string> selections;
  for (NamedReport& one : reports) {
    const json& shard = one.report.at("plan").at("shard");
    json& own = one.report.at("cases");
    if (reports.size() == 1) {
      std::ranges::move(own, cases.begin());
      return cases;
    }
    const json& places = shard.at("places");
    selections.insert(shard.at("selection").get<std::string>());
    if (places.size() != own.size()) {
      problems.push_back(fmt::format("{} has {} cases, but places for {}", one.name, own.size(), places.size()));
      continue;
    }
    if (shard.at("of").get<std::size_t>() != total) {
      problems.push_back(fmt::format("{} has {} of {} cases, but all the reports together have {}", one.name,
                                     own.size(), shard.at("of").get<std::size_t>(), total));
      continue;
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
      const auto place = places.at(i).get<std::size_t>();
      if (place >= total || !cases[place].is_null()) {
        problems.push_back(fmt::format("{}: the place of {} is not its own", one.name, own[i].at("id").dump()));
        break;
      }
      cases[place] = std::move(own[i]);
    }
  }
  std::vector<std::string> digests;
  for (const json& record : cases) {
    digests.push_back(record.is_null() ? "" : record.at("digest").get<std::string>());
  }
  if (problems.empty() && (selections.size() != 1 || *selections.begin() != selection_digest(digests))) {
    problems.emplace_back("their cases are not those of one selection: run all shards with the same plan and options");
  }
  if (!problems.empty()) {
    refuse(std::move(problems));
  }
  return cases;
}

/// One entry for each shard: what differs between them.
json shards_of(const std::vector<NamedReport>& reports) {
  json shards = json::array();
  for (const NamedReport& one : reports) {
    const json& report = one.report;
    const json& device = report.at("machine").at("device");
    json variables = json::object();
    for (const std::string_view name : device_variables()) {
      const json& environment = report.at("environment");
      variables[std::string(name)] = environment.value(std::string(name), json());
    }
    shards.push_back(
        {{"index", report.at("plan").at("shard").at("index")},
         {"cases", report.at("cases").size()},
         {"started", report.at("started")},
         {"wall_s", report.at("time_s").at("wall")},
         {"argv", report.at("tool").at("argv")},
         {"host", report.at("machine").at("host")},
         {"device", device.is_null() ? json() : json{{"index", device.at("index")}, {"uuid", device.at("uuid")}}},
         {"environment", std::move(variables)}});
  }
  return shards;
}

/// Stage times are summed; the wall-clock time is that of the longest shard, as they may have run side by side.
json times_of(const std::vector<NamedReport>& reports) {
  json times = reports.front().report.at("time_s");
  for (auto& [stage, value] : times.items()) {
    double sum = 0, longest = 0;
    for (const NamedReport& one : reports) {
      const double seconds = number_value(one.report.at("time_s").at(stage));
      sum += seconds;
      longest = std::max(longest, seconds);
    }
    value = number(stage == "wall" ? longest : sum);
  }
  return times;
}

/// "shard 2/4: a worker was replaced ...".
json notes_of(const std::vector<NamedReport>& reports) {
  json notes = json::array();
  for (const NamedReport& one : reports) {
    const json& shard = one.report.at("plan").at("shard");
    for (const json& note : one.report.value("notes", json::array())) {
      notes.push_back(fmt::format("shard {}/{}: {}", shard.at("index").get<std::size_t>() + 1,
                                  shard.at("count").get<std::size_t>(), note.get<std::string>()));
    }
  }
  return notes;
}

/// Every shard has asked about the whole plan; what each has verified is joined.
json configurations_of(const std::vector<NamedReport>& reports) {
  json configurations = reports.front().report.at("configurations");
  std::set<std::string> verified;
  for (const NamedReport& one : reports) {
    for (const json& digest : one.report.at("plan").at("shard").at("verified")) {
      verified.insert(digest.get<std::string>());
    }
  }
  configurations["verified"] = verified.size();
  return configurations;
}

/// Each shard had its own: the longest, and what all of them left.
json budget_of(const std::vector<NamedReport>& reports) {
  double limit = 0;
  std::size_t not_started = 0;
  for (const NamedReport& one : reports) {
    if (const auto budget = one.report.find("budget"); budget != one.report.end()) {
      limit = std::max(limit, number_value(budget->at("limit_s")));
      not_started += budget->at("not_started").get<std::size_t>();
    }
  }
  return {{"limit_s", number(limit)}, {"not_started", not_started}};
}

/// Without cases no worker was started, so that a shard without any knows no device.
const json& machine_of(const std::vector<NamedReport>& reports) {
  const auto known = std::ranges::find_if(
      reports, [](const NamedReport& one) { return !one.report.at("machine").at("device").is_null(); });
  return (known == reports.end() ? reports.front() : *known).report.at("machine");
}

json merged_machine(const std::vector<NamedReport>& reports) {
  json machine = machine_of(reports);
  for (const NamedReport& one : reports) {
    const json& device = one.report.at("machine").at("device");
    if (!device.is_null() && device.at("uuid") != machine["device"]["uuid"]) {
      machine["device"]["uuid"] = "";  // "shards" has them
    }
  }
  return machine;
}

/// Everything but the cases and what is computed from them.
json head_of(const std::vector<NamedReport>& reports, std::size_t cases) {
  json head = json::object();
  static const std::set<std::string> computed = {"cases",           "comparison",    "summary", "override_effect",
                                                 "library_changes", "precision_map", "causes",  "notes",
                                                 "shards",          "contract",      "gates"};
  for (const auto& [name, value] : reports.front().report.items()) {
    if (!computed.contains(name)) {
      head[name] = value;
    }
  }
  head["machine"] = merged_machine(reports);
  head["time_s"] = times_of(reports);
  head["started"] = std::ranges::min(reports, {}, [](const NamedReport& one) {
                      return one.report.at("started").get<std::string>();
                    }).report.at("started");
  head["plan"]["selected"] = cases;
  head["plan"]["shard"] = {{"index", 0}, {"count", 1}};
  head["shards"] = shards_of(reports);
  if (json notes = notes_of(reports); !notes.empty()) {
    head["notes"] = std::move(notes);
  }
  if (std::ranges::any_of(reports, [](const NamedReport& one) { return one.report.contains("budget"); })) {
    head["budget"] = budget_of(reports);
  }
  if (head.contains("configurations")) {
    head["configurations"] = configurations_of(reports);
  }
  return head;
}

json merged(std::vector<NamedReport>& reports) {
  if (std::vector<std::string> problems = shard_problems(reports); !problems.empty()) {
    refuse(std::move(problems));
  }
  if (reports.size() == 1) {
    return std::move(reports.front().report);
  }
  sort_by_shard(reports);
  std::size_t cases = 0;
  for (const NamedReport& one : reports) {
    cases += one.report.at("cases").size();
  }
  json report = head_of(reports, cases);
  add_cases(report, ordered_cases(reports));
  return report;
}

}  // namespace

json merge_reports(std::vector<NamedReport> reports) {
  try {
    return merged(reports);
  } catch (const json::exception& error) {
    throw core::IoError(fmt::format("a report lacks what is merged: {}", missing_text(error)));
  }
}

}  // namespace numcheck::report
