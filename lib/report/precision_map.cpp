#include "report/precision_map.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/class_borders.hpp"
#include "report/shape_facts.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

constexpr const char* kVariable = "NVIDIA_TF32_OVERRIDE";
constexpr const char* kAccumulate = "accumulate";
constexpr std::array<const char*, 2> kLayout = {"trans_a", "trans_b"};

/// A case with at least one run of the class.
struct Member {
  const json* record;
  double size;  ///< see product_size
};

struct Observed {
  std::string name, note, expected;
  std::vector<Member> members;
  std::set<std::string> algorithms;
  bool all_runs_name_algorithm = true;
  std::size_t runs = 0;
};

/// Everything that ran under one request in one layout.
struct Group {
  json heading;
  std::vector<Observed> classes;
};

json request_of(const json& record, const json& ambient) {
  json request = json::object();
  const json& own = record.at("environment");
  const json& environment = own.contains(kVariable) ? own : ambient;
  if (environment.contains(kVariable) && environment.at(kVariable).is_string()) {
    request[kVariable] = environment.at(kVariable);
  }
  const json& params = record.at("params");
  if (const auto accumulate = params.find(kAccumulate); accumulate != params.end() && *accumulate != "default") {
    request[kAccumulate] = *accumulate;
  }
  return request;
}

json heading_of(const json& record, const json& ambient) {
  json layout = json::object();
  for (const char* name : kLayout) {
    if (record.at("params").contains(name)) {
      layout[name] = record.at("params").at(name);
    }
  }
  return {{"op", record.at("op")},
          {"mode", record.at("mode")},
          {"backend", record.at("backend")},
          {"request", request_of(record, ambient)},
          {"layout", std::move(layout)}};
}

std::string detail(const json& run, const char* name) {
  return run.at("details").value(name, std::string());
}

void add_run(Group& group, const json& record, const json& run) {
  const auto name = run.at("observed_class").get<std::string>();
  const std::string note = detail(run, "classification");
  auto found =
      std::ranges::find_if(group.classes, [&](const Observed& one) { return one.name == name && one.note == note; });
  if (found == group.classes.end()) {
    group.classes.push_back({.name = name, .note = note, .expected = run.at("expected_class")});
    found = std::prev(group.classes.end());
  }
  if (found->members.empty() || found->members.back().record != &record) {
    found->members.push_back({&record, product_size(record.at("params"))});
  }
  ++found->runs;
  const std::string algorithm = detail(run, "id");
  found->all_runs_name_algorithm = found->all_runs_name_algorithm && !algorithm.empty();
  found->algorithms.insert(algorithm);
}

bool has_class(const json& run) {
  return run.at("error").get_ref<const std::string&>().empty() &&
         !run.at("observed_class").get_ref<const std::string&>().empty();
}

/// Groups in the record's order.
std::vector<Group> groups_of(std::span<const json> cases, const json& ambient) {
  std::map<json, std::size_t> position;
  std::vector<Group> groups;
  for (const json& record : cases) {
    if (std::ranges::none_of(record.at("runs"), has_class)) {
      continue;
    }
    json heading = heading_of(record, ambient);
    const auto [at, is_new] = position.try_emplace(std::move(heading), groups.size());
    if (is_new) {
      groups.push_back({at->first, {}});
    }
    for (const json& run : record.at("runs")) {
      if (has_class(run)) {
        add_run(groups[at->second], record, run);
      }
    }
  }
  for (Group& group : groups) {
    std::ranges::stable_sort(group.classes, std::greater(), [](const Observed& one) { return one.members.size(); });
  }
  return groups;
}

/// "algo 28, 31" if the class's algorithms gave no other class; otherwise empty.
std::string algorithms_where(const Group& group, const Observed& observed) {
  constexpr std::size_t kMostNamed = 8;
  const bool shared = std::ranges::any_of(group.classes, [&](const Observed& other) {
    return !other.all_runs_name_algorithm ||
           (&other != &observed && std::ranges::any_of(other.algorithms, [&](const std::string& algorithm) {
             return observed.algorithms.contains(algorithm);
           }));
  });
  return shared || observed.algorithms.size() > kMostNamed
             ? ""
             : fmt::format("algo {}", fmt::join(observed.algorithms, ", "));
}

json where_of(const Group& group, const Observed& observed, const std::optional<Border>& border) {
  if (group.classes.size() == 1) {
    return {{"border", "none"}, {"where", "everywhere"}, {"also", json::array()}};
  }
  if (border.has_value()) {
    return {{"border", "shape"}, {"where", border->condition}, {"also", border->also}};
  }
  const std::string algorithms = algorithms_where(group, observed);
  if (!algorithms.empty()) {
    return {{"border", "algorithm"}, {"where", algorithms}, {"also", json::array()}};
  }
  return {{"border", "unknown"}, {"where", "no simple condition"}, {"also", json::array()}};
}

json row_of(const Group& group, const Observed& observed, const std::optional<Border>& border) {
  const Member& least = *std::ranges::min_element(observed.members, {}, &Member::size);
  const json& smallest = *least.record;
  json row = group.heading;
  row.update({{"expected", observed.expected},
              {"class", observed.name},
              {"note", observed.note},
              {"cases", observed.members.size()},
              {"runs", observed.runs},
              {"smallest", smallest.at("digest")},
              {"smallest_id", smallest.at("id")},
              {"smallest_size", least.size}});
  row.update(where_of(group, observed, border));
  return row;
}

void add_rows(json& rows, const Group& group) {
  if (group.classes.size() == 1) {
    rows.push_back(row_of(group, group.classes.front(), std::nullopt));
    return;
  }
  std::vector<const json*> params;
  for (const Observed& observed : group.classes) {
    for (const Member& member : observed.members) {
      params.push_back(&member.record->at("params"));
    }
  }
  const std::vector<Fact> facts = shape_facts(group.heading.at("op").get<std::string>(), params);
  std::size_t begin = 0;
  for (const Observed& observed : group.classes) {
    std::vector<bool> inside(params.size(), false);
    std::fill_n(inside.begin() + static_cast<std::ptrdiff_t>(begin), observed.members.size(), true);
    begin += observed.members.size();
    rows.push_back(row_of(group, observed, find_border(facts, inside)));
  }
}

}  // namespace

nlohmann::json precision_map(std::span<const nlohmann::json> cases, const nlohmann::json& environment) {
  json rows = json::array();
  for (const Group& group : groups_of(cases, environment)) {
    add_rows(rows, group);
  }
  return rows;
}

}  // namespace numcheck::report
