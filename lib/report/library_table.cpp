#include "report/library_table.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "plan/backend_name.hpp"
#include "report/bits.hpp"
#include "report/library_sentences.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

/// Everything that identifies a case except the version.
std::string join_key(const json& record) {
  json key = json::object();
  for (const char* field : {"op", "mode", "params", "inputs", "seed", "algorithms", "environment"}) {
    if (record.contains(field)) {
      key[field] = record.at(field);
    }
  }
  key["backend"] = plan::backend_of(record.at("backend").get_ref<const std::string&>());
  return key.dump();
}

std::string version_in(const json& record) {
  return std::string(plan::version_of(record.at("backend").get_ref<const std::string&>()));
}

/// Elements of all outputs of the first run.
std::uint64_t size_of(const json& record) {
  std::uint64_t elements = 0;
  for (const auto& [port, output] : runs_with_outputs(record).front()->at("outputs").items()) {
    std::uint64_t product = 1;
    for (const json& extent : output.at("shape")) {
      product *= extent.get<std::uint64_t>();
    }
    elements += product;
  }
  return elements;
}

bool is_deterministic(const json& record) {
  return std::ranges::all_of(runs_with_outputs(record),
                             [](const json* run) { return run->at("deterministic").get<bool>(); });
}

/// Why a record cannot be compared with another version; empty if it can.
std::string incomparable_reason(const json& record) {
  if (runs_with_outputs(record).empty()) {
    const std::string reason = record.at("reason").get<std::string>();
    return version_in(record) + ": " + record.at("status").get<std::string>() + (reason.empty() ? "" : ": " + reason);
  }
  return is_deterministic(record) ? "" : version_in(record) + ": bits differ from run to run";
}

/// One op x mode x backend with two versions.
class Row {
 public:
  void add(const json& base, const json& other) {
    const bool base_ran = !runs_with_outputs(base).empty(), other_ran = !runs_with_outputs(other).empty();
    if (!base_ran && !other_ran) {
      ++neither_;
      return;
    }
    std::set<std::string> changed;
    if (base_ran && other_ran) {
      changed = changed_outputs(base, other);
      if (changed.empty()) {
        ++identical_;
        return;
      }
    }
    for (const json* record : {&base, &other}) {
      if (const std::string reason = incomparable_reason(*record); !reason.empty()) {
        ++reasons_[reason];
        ++not_comparable_;
        return;
      }
    }
    changes_.push_back(change(base, other, changed));
  }

  [[nodiscard]] json to_json(const json& first, const json& other) {
    std::ranges::stable_sort(changes_, {}, [](const json& one) { return one.at("elements").get<std::uint64_t>(); });
    std::vector<std::pair<std::string, std::size_t>> ranked(reasons_.begin(), reasons_.end());
    std::ranges::stable_sort(ranked, std::ranges::greater(), &std::pair<std::string, std::size_t>::second);
    json reasons = json::array();
    for (const auto& [text, cases] : ranked) {
      reasons.push_back({{"text", text}, {"cases", cases}});
    }
    return {{"op", first.at("op")},
            {"mode", first.at("mode")},
            {"backend", plan::backend_of(first.at("backend").get_ref<const std::string&>())},
            {"base", version_in(first)},
            {"other", version_in(other)},
            {"cases", identical_ + changes_.size() + not_comparable_ + neither_},
            {"identical", identical_},
            {"changed", changes_.size()},
            {"not_comparable", not_comparable_},
            {"neither", neither_},
            {"changes", changes_},
            {"reasons", std::move(reasons)}};
  }

 private:
  static json change(const json& base, const json& other, const std::set<std::string>& changed) {
    return {{"case", base.at("digest")},
            {"other_case", other.at("digest")},
            {"id", base.at("id")},
            {"elements", size_of(base)},
            {"outputs", changed},
            {"of", runs_with_outputs(base).front()->at("outputs").size()},
            {"error_over_limit", {{"base", base.at("error_over_limit")}, {"other", other.at("error_over_limit")}}}};
  }

  std::size_t identical_ = 0;
  std::size_t not_comparable_ = 0;
  std::size_t neither_ = 0;
  std::vector<json> changes_;
  std::map<std::string, std::size_t> reasons_;
};

/// The versions of every case, in the record's order.
std::vector<std::vector<const json*>> joined_versions(std::span<const json> cases) {
  std::map<std::string, std::size_t> position;
  std::vector<std::vector<const json*>> joined;
  for (const json& record : cases) {
    if (version_in(record).empty()) {
      continue;
    }
    const auto [at, is_new] = position.try_emplace(join_key(record), joined.size());
    if (is_new) {
      joined.emplace_back();
    }
    joined[at->second].push_back(&record);
  }
  return joined;
}

}  // namespace

nlohmann::json library_changes(std::span<const nlohmann::json> cases) {
  struct Member {
    const json* base;
    const json* other;
    Row row;
  };
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  std::map<Key, std::size_t> position;
  std::vector<Member> members;
  for (const std::vector<const json*>& versions : joined_versions(cases)) {
    for (std::size_t i = 1; i < versions.size(); ++i) {
      const json &base = *versions.front(), &other = *versions[i];
      const Key key{base.at("op"), base.at("mode"), base.at("backend"), other.at("backend")};
      const auto [at, is_new] = position.try_emplace(key, members.size());
      if (is_new) {
        members.push_back({&base, &other, {}});
      }
      members[at->second].row.add(base, other);
    }
  }
  json rows = json::array();
  for (Member& member : members) {
    rows.push_back(member.row.to_json(*member.base, *member.other));
  }
  json sentences = library_sentences(rows);
  return {{"rows", std::move(rows)}, {"sentences", std::move(sentences)}};
}

}  // namespace numcheck::report
