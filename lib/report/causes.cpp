#include "report/causes.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

struct Group {
  std::string cause, op, backend, implementation;
  std::set<std::string> modes;
  std::set<std::string> cases;
  std::size_t runs = 0;
  std::string first, first_id;
};

/// Tiles, stages and workspaces differ from shape to shape; the algorithm and how it splits k do not.
std::string implementation_of(const json& run) {
  const json& details = run.at("details");
  if (details.contains("id") && details.contains("split_k")) {
    return fmt::format("algo {}, split-k {}", details.at("id").get<std::string>(),
                       details.at("split_k").get<std::string>());
  }
  const auto label = run.at("implementation").get<std::string>();
  return label.substr(0, label.find(", workspace"));
}

class Groups {
 public:
  void add(const json& record, const json& run, const std::string& cause) {
    const auto op = record.at("op").get<std::string>(), backend = record.at("backend").get<std::string>();
    const std::string implementation = implementation_of(run);
    const auto [found, is_new] = index_.try_emplace({cause, op, backend, implementation}, groups_.size());
    if (is_new) {
      groups_.push_back({.cause = cause, .op = op, .backend = backend, .implementation = implementation});
      groups_.back().first = record.at("digest").get<std::string>();
      groups_.back().first_id = record.at("id").get<std::string>();
    }
    Group& group = groups_[found->second];
    group.modes.insert(record.at("mode").get<std::string>());
    group.cases.insert(record.at("digest").get<std::string>());
    ++group.runs;
  }

  [[nodiscard]] json rows() {
    std::ranges::stable_sort(groups_, std::greater(), [](const Group& group) { return group.cases.size(); });
    json rows = json::array();
    for (const Group& g : groups_) {
      rows.push_back({{"cause", g.cause},
                      {"op", g.op},
                      {"backend", g.backend},
                      {"implementation", g.implementation},
                      {"modes", g.modes},
                      {"cases", g.cases.size()},
                      {"runs", g.runs},
                      {"first", g.first},
                      {"first_id", g.first_id}});
    }
    return rows;
  }

 private:
  std::vector<Group> groups_;
  std::map<std::tuple<std::string, std::string, std::string, std::string>, std::size_t> index_;
};

}  // namespace

std::string failure_sentence(const nlohmann::json& record) {
  const auto id = record.at("id").get<std::string>();
  for (const json& run : record.at("runs")) {
    for (const json& output : run.at("outputs")) {
      for (const json& finding : output.at("findings")) {
        if (finding.contains("cause")) {
          return fmt::format("{}: {} ({})", id, finding.at("cause").get<std::string>(), implementation_of(run));
        }
      }
    }
  }
  const json& runs = record.at("runs");
  const auto failed = std::ranges::find_if(runs, [](const json& run) { return run.at("status") == "fail"; });
  const auto why = (failed == runs.end() ? record.at("reason") : (*failed).at("failing")).get<std::string>();
  return why.empty() ? id : fmt::format("{}: {}", id, why);
}

nlohmann::json causes(std::span<const nlohmann::json> cases) {
  Groups groups;
  for (const json& record : cases) {
    for (const json& run : record.at("runs")) {
      for (const json& output : run.at("outputs")) {
        for (const json& finding : output.at("findings")) {
          if (run.at("status") != "pass" && finding.contains("cause")) {
            groups.add(record, run, finding.at("cause").get<std::string>());
          }
        }
      }
    }
  }
  return groups.rows();
}

}  // namespace numcheck::report
