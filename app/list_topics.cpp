#include "list_topics.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "catalog.hpp"
#include "core/strings.hpp"
#include "data/distribution.hpp"
#include "diagnose/hypothesis.hpp"
#include "diagnose/told.hpp"
#include "kernels/loader/probe.hpp"
#include "machine/device.hpp"
#include "machine/environment.hpp"
#include "op/known_cause.hpp"
#include "op/mode.hpp"
#include "plan/plan.hpp"

namespace numcheck::app {
namespace {

using nlohmann::json;

json ops_list() {
  json list = json::array();
  for (const prepare::CatalogRow& row : catalog()) {
    list.push_back({{"name", row.op->name},
                    {"summary", row.op->summary},
                    {"modes", row.op->modes},
                    {"backends", prepare::backend_names(row)}});
  }
  return list;
}

json modes_list() {
  json list = json::array();
  for (const op::Mode& mode : op::all_modes()) {
    list.push_back({{"name", mode.name},
                    {"first", core::dtype_info(mode.first).name},
                    {"second", core::dtype_info(mode.second).name},
                    {"output", core::dtype_info(mode.output).name},
                    {"summary", mode.doc}});
  }
  return list;
}

json backends_list() {
  json list = json::array();
  for (const BackendInfo& backend : backends()) {
    list.push_back({{"name", backend.name}, {"summary", backend.doc}});
  }
  return list;
}

json devices_list() {
  json list = json::array();
  for (const machine::Device& device : kernels::loader::cuda_devices()) {
    list.push_back({{"name", fmt::format("cuda:{}", device.index)},
                    {"summary", fmt::format("{}, sm_{}, driver {}", device.name, device.sm, device.driver)}});
  }
  for (const int sm : machine::simulated_architectures()) {
    list.push_back(
        {{"name", fmt::format("sim:sm_{}", sm)}, {"summary", "simulated on the host: no hardware evidence"}});
  }
  return list;
}

json distributions_list() {
  json list = json::array();
  for (const data::DistributionInfo& info : data::all_distributions()) {
    json parameters = json::array();
    for (const op::Field& field : info.fields()) {
      parameters.push_back(field.name);
    }
    list.push_back({{"name", info.name}, {"parameters", std::move(parameters)}, {"summary", info.doc}});
  }
  return list;
}

json faults_list() {
  json list = json::array();
  for (const FaultOfOps& fault : faults_by_op()) {
    list.push_back({{"name", fault.info.name}, {"ops", fault.ops}, {"summary", fault.info.doc}});
  }
  return list;
}

/// Names that diagnose gives to causes; those of faults are in a list of their own.
json causes_list() {
  json list = json::array();
  for (const diagnose::ToldCause& cause : diagnose::told_causes()) {
    list.push_back({{"name", cause.name}, {"summary", cause.doc}});
  }
  for (const op::KnownCause& cause : op::known_causes()) {
    list.push_back({{"name", cause.name}, {"summary", cause.doc}});
  }
  std::set<std::string> names;
  for (const diagnose::CatalogueRow& row : diagnose::catalogue()) {
    for (const std::string& name : core::split(row.name, ',')) {
      const std::string trimmed = name.substr(name.find_first_not_of(' '));
      if (names.insert(trimmed).second) {
        list.push_back({{"name", trimmed}, {"summary", row.doc}});
      }
    }
  }
  return list;
}

json variables_list() {
  json list = json::array();
  const std::vector<plan::EnvironmentVariable> settable = plan::settable_variables();
  for (const machine::NumericVariable& variable : machine::numeric_variables()) {
    const bool in_plans =
        std::ranges::find(settable, variable.name, &plan::EnvironmentVariable::name) != settable.end();
    list.push_back({{"name", variable.name}, {"settable", in_plans ? "yes" : "no"}, {"summary", variable.doc}});
  }
  for (const plan::EnvironmentVariable& variable : settable) {
    const auto names = machine::numeric_variables();
    if (std::ranges::find(names, variable.name, &machine::NumericVariable::name) == names.end()) {
      list.push_back({{"name", variable.name}, {"settable", "yes"}, {"summary", variable.doc}});
    }
  }
  return list;
}

/// What an op has of a topic.
std::vector<std::string_view> names_of_op(std::string_view topic, std::string_view op) {
  const prepare::CatalogRow& row = *prepare::find_row(catalog(), op);
  if (topic == "modes") {
    return {row.op->modes.begin(), row.op->modes.end()};
  }
  std::vector<std::string_view> names;
  if (topic == "backends") {
    names = prepare::backend_names(row);
    names.emplace_back("auto");
    return names;
  }
  for (const FaultOfOps& fault : faults_by_op()) {
    if (std::ranges::find(fault.ops, op) != fault.ops.end()) {
      names.push_back(fault.info.name);
    }
  }
  return names;
}

}  // namespace

ListTopic list_topic(std::string_view name) {
  if (name == "ops") {
    return {ops_list(), {"name", "summary", "backends", "modes"}};
  }
  if (name == "modes") {
    return {modes_list(), {"name", "first", "second", "output", "summary"}};
  }
  if (name == "backends") {
    return {backends_list(), {"name", "summary"}};
  }
  if (name == "devices") {
    return {devices_list(), {"name", "summary"}};
  }
  if (name == "distributions") {
    return {distributions_list(), {"name", "summary", "parameters"}};
  }
  if (name == "causes") {
    return {causes_list(), {"name", "summary"}};
  }
  if (name == "faults") {
    return {faults_list(), {"name", "summary", "ops"}};
  }
  return {variables_list(), {"name", "settable", "summary"}};
}

bool lists_by_op(std::string_view topic) noexcept {
  return topic == "modes" || topic == "backends" || topic == "faults";
}

ListTopic list_topic_of_op(std::string_view name, std::string_view op) {
  ListTopic topic = list_topic(name);
  const std::vector<std::string_view> names = names_of_op(name, op);
  json kept = json::array();
  for (json& entry : topic.entries) {
    if (std::ranges::find(names, entry.at("name").get_ref<const std::string&>()) != names.end()) {
      kept.push_back(std::move(entry));
    }
  }
  topic.entries = std::move(kept);
  std::erase(topic.columns, "ops");
  return topic;
}

}  // namespace numcheck::app
