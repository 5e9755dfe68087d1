#include "report/override_table.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/bits.hpp"
#include "report/number.hpp"
#include "report/override_sentences.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

constexpr std::string_view kVariable = "NVIDIA_TF32_OVERRIDE";

/// "unset", "0" or "1"; empty if the variable has another value.
std::string state_of(const json& record, const json& ambient) {
  const std::string name(kVariable);
  const json& own = record.at("environment");
  const json& value = own.contains(name) ? own.at(name) : ambient.contains(name) ? ambient.at(name) : json();
  if (value.is_null()) {
    return "unset";
  }
  return value == "0" || value == "1" ? value.get<std::string>() : std::string();
}

/// Everything that identifies a case except the variable.
std::string join_key(const json& record) {
  json key = json::object();
  for (const char* field : {"op", "mode", "backend", "params", "inputs", "seed", "algorithms", "environment"}) {
    if (record.contains(field)) {
      key[field] = record.at(field);
    }
  }
  key["environment"].erase(std::string(kVariable));
  return key.dump();
}

json state_json(const json& record) {
  std::set<std::string> classes;
  double rel_l2 = 0;
  double bits = std::numeric_limits<double>::quiet_NaN();
  const std::vector<const json*> runs = runs_with_outputs(record);
  for (const json* run : runs) {
    const std::string observed = run->value("observed_class", std::string());
    if (!observed.empty() && observed != "unknown") {
      classes.insert(observed);
    }
    for (const auto& [port, output] : run->at("outputs").items()) {
      rel_l2 = std::max(rel_l2, number_value(output.at("metrics").at("rel_l2")));
      bits = std::fmin(bits, number_value(output.at("metrics").at("effective_bits")));
    }
  }
  return {{"case", record.at("digest")},
          {"status", record.at("status")},
          {"observed", classes},
          {"rel_l2", number(rel_l2)},
          {"effective_bits", number(bits)},
          {"device_s", runs.front()->at("device_s")},
          {"implementation", runs.front()->at("implementation")},
          {"bits", nullptr}};
}

/// Second part of the identifier: the non-default parameters.
std::string shape_of(const json& record) {
  const std::string id = record.at("id").get<std::string>();
  const std::size_t first = id.find('/');
  const std::size_t second = id.find('/', first == std::string::npos ? first : first + 1);
  return first == std::string::npos ? id : id.substr(first + 1, second - first - 1);
}

using States = std::map<std::string, const json*, std::less<>>;

json row_of(const States& states, bool simulated) {
  const std::string base = states.contains("unset") ? "unset" : "0";
  const json& first = *states.at(base);
  json row = {{"op", first.at("op")},
              {"mode", first.at("mode")},
              {"backend", first.at("backend")},
              {"shape", shape_of(first)},
              {"predicted", simulated || first.at("backend") == "sim"},
              {"base", base},
              {"states", json::object()},
              {"inputs", first.value("inputs", json::object())}};
  for (const auto& [state, record] : states) {
    json entry = state_json(*record);
    if (state != base) {
      entry["bits"] = changed_outputs(first, *record).empty() ? "identical" : "differ";
    }
    row["states"][state] = std::move(entry);
  }
  return row;
}

}  // namespace

nlohmann::json override_effect(std::span<const nlohmann::json> cases, const nlohmann::json& environment,
                               bool simulated) {
  std::map<std::string, std::size_t> position;
  std::vector<States> joined;
  for (const json& record : cases) {
    const std::string state = state_of(record, environment);
    if (state.empty() || runs_with_outputs(record).empty()) {
      continue;
    }
    const auto [at, is_new] = position.try_emplace(join_key(record), joined.size());
    if (is_new) {
      joined.emplace_back();
    }
    joined[at->second].try_emplace(state, &record);
  }
  json rows = json::array();
  for (const States& states : joined) {
    if (states.size() > 1) {
      rows.push_back(row_of(states, simulated));
    }
  }
  json sentences = override_sentences(rows);
  return {{"rows", std::move(rows)}, {"sentences", std::move(sentences)}};
}

}  // namespace numcheck::report
