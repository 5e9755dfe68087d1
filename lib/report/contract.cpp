#include "report/contract.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/strings.hpp"
#include "plan/backend_name.hpp"
#include "report/parse_report.hpp"
#include "verdict/record.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

/// These come with the machine or with this program, and say nothing about what libraries support.
constexpr std::array<std::string_view, 2> kNotPromised = {"cuda_driver", "cuda_runtime"};

bool is_judged_record(const json& record) {
  const auto status = verdict::parse_status(record.at("status").get_ref<const std::string&>());
  return status.has_value() && verdict::is_judged(*status);
}

/// "9.14.0 or 9.19.0"
std::string versions_text(const std::vector<plan::Version>& versions) {
  std::vector<std::string> texts;
  for (const plan::Version& version : versions) {
    texts.push_back(fmt::format("{}", fmt::join(version, ".")));
  }
  return fmt::format("{}", fmt::join(texts, " or "));
}

PlanPromises promises_of(const json& report) {
  const json& machine = report.at("machine");
  PlanPromises promises{.plan = report.at("plan").at("name").get<std::string>(),
                        .digest = report.at("plan").at("digest").get<std::string>(),
                        .device = machine.at("device").at("name").get<std::string>(),
                        .libraries = {},
                        .cases = {}};
  for (const auto& [name, version] : machine.at("libraries").items()) {
    if (std::ranges::find(kNotPromised, name) == kNotPromised.end()) {
      std::vector<plan::Version>& versions = promises.libraries[name];
      if (plan::Version known = plan::leading_version(version.get_ref<const std::string&>()); !known.empty()) {
        versions.push_back(std::move(known));
      }
    }
  }
  for (const json& record : report.at("cases")) {
    if (is_judged_record(record)) {
      promises.cases.insert(record.at("id").get<std::string>());
    }
  }
  return promises;
}

/// A run of several plans has all their names, in any order, joined by "+".
bool is_about(const PlanPromises& promises, std::string_view plan) {
  const std::vector<std::string> run = core::split(plan, '+'), promised = core::split(promises.plan, '+');
  return std::ranges::all_of(promised,
                             [&run](const std::string& part) { return std::ranges::find(run, part) != run.end(); });
}

std::string setting_name(int sm, bool simulated) {
  return fmt::format("{}sm_{}", simulated ? "a simulated " : "", sm);
}

std::set<std::string> promised_cases(const Contract& contract, std::string_view plan) {
  std::set<std::string> cases;
  for (const PlanPromises& promises : contract.plans) {
    if (is_about(promises, plan)) {
      cases.insert(promises.cases.begin(), promises.cases.end());
    }
  }
  return cases;
}

/// The fourth part of op/params/mode/backend.
std::string backend_in(const std::string& id) {
  constexpr std::size_t kBackend = 3;
  const std::vector<std::string> parts = core::split(id, '/');
  return parts.size() > kBackend ? parts[kBackend] : "";
}

/// One promise, and the record that keeps or breaks it.
json broken_promise(const std::string& id, const json* record) {
  if (record == nullptr) {
    return {{"id", id}, {"status", "missing"}, {"reason", "the run has no such case"}};
  }
  return {{"id", id}, {"status", record->at("status")}, {"reason", record->value("reason", "")}};
}

}  // namespace

Contract contract_of(std::span<const json* const> reports) {
  Contract contract;
  try {
    for (const json* report : reports) {
      const ContractSetting setting = setting_of(*report);
      if (setting.sm == 0) {
        throw core::IoError("a report of a run without a device promises nothing");
      }
      if (!contract.plans.empty() && (setting.sm != contract.sm || setting.simulated != contract.simulated)) {
        throw core::IoError(fmt::format("a contract is about one architecture, not {} and {}",
                                        setting_name(contract.sm, contract.simulated),
                                        setting_name(setting.sm, setting.simulated)));
      }
      contract.sm = setting.sm;
      contract.simulated = setting.simulated;
      contract.plans.push_back(promises_of(*report));
      if (contract.plans.back().cases.empty()) {
        throw core::IoError(
            fmt::format("no case of {} ran, so that there is nothing to promise", contract.plans.back().plan));
      }
    }
  } catch (const json::exception& error) {
    throw core::IoError(fmt::format("a report lacks what a contract is made of: {}", missing_text(error)));
  }
  return contract;
}

std::string render_contract_file(const json& report) {
  return contract_text(contract_of(std::array{&report}));
}

std::string plan_problem(const Contract& contract, std::string_view plan) {
  if (std::ranges::any_of(contract.plans, [plan](const PlanPromises& one) { return is_about(one, plan); })) {
    return "";
  }
  std::set<std::string_view> names;
  for (const PlanPromises& one : contract.plans) {
    names.insert(one.plan);
  }
  return fmt::format("it promises nothing about the plan {}, only about {}", plan, fmt::join(names, ", "));
}

ContractSetting setting_of(const json& report) {
  const json& machine = report.at("machine");
  ContractSetting setting;
  if (const json& device = machine.at("device"); !device.is_null()) {
    setting.sm = device.at("sm").get<int>();
    setting.simulated = device.at("simulated").get<bool>();
  }
  for (const auto& [name, version] : machine.at("libraries").items()) {
    setting.libraries.emplace_back(name, version.get<std::string>());
  }
  return setting;
}

std::string setting_problem(const Contract& contract, std::string_view plan, const ContractSetting& setting) {
  if (contract.sm != setting.sm || contract.simulated != setting.simulated) {
    return fmt::format("it is about {}, and this is {}", setting_name(contract.sm, contract.simulated),
                       setting_name(setting.sm, setting.simulated));
  }
  for (const PlanPromises& promises : contract.plans) {
    for (const auto& [name, text] : setting.libraries) {
      const auto promised = promises.libraries.find(name);
      if (!is_about(promises, plan) || promised == promises.libraries.end() || promised->second.empty()) {
        continue;
      }
      const plan::Version version = plan::leading_version(text);
      if (std::ranges::find(promised->second, version) == promised->second.end()) {
        return fmt::format("it is about {} {}, and here is {}", name, versions_text(promised->second),
                           version.empty() ? text : versions_text({version}));
      }
    }
  }
  return "";
}

json check_contract(const Contract& contract, const json& report, const std::set<std::string>& left_out) {
  // A plan may have an identifier twice, with different seeds: the worse one counts.
  std::map<std::string_view, const json*> records;
  for (const json& record : report.at("cases")) {
    const auto [at, is_new] = records.emplace(record.at("id").get_ref<const std::string&>(), &record);
    at->second = is_new || is_judged_record(*at->second) ? &record : at->second;
  }
  const json& libraries = report.at("machine").at("libraries");
  const auto& plan = report.at("plan").at("name").get_ref<const std::string&>();
  std::set<std::string> absent;
  for (const PlanPromises& promises : contract.plans) {
    if (is_about(promises, plan)) {
      for (const auto& [name, versions] : promises.libraries) {
        if (!libraries.contains(name)) {
          absent.insert(versions.empty() ? name : name + " " + versions_text(versions));
        }
      }
    }
  }
  const auto is_left_out = [&](const std::string& id) {
    const std::string backend = backend_in(id);
    return left_out.contains(id) || (!plan::version_of(backend).empty() && !libraries.contains(backend));
  };
  std::size_t kept = 0, not_selected = 0;
  json broken = json::array();
  const std::set<std::string> promised = promised_cases(contract, plan);
  for (const std::string& id : promised) {
    const auto record = records.find(id);
    if (record == records.end() && is_left_out(id)) {
      ++not_selected;
    } else if (record != records.end() && is_judged_record(*record->second)) {
      ++kept;
    } else {
      broken.push_back(broken_promise(id, record == records.end() ? nullptr : record->second));
    }
  }
  json checked = {{"digest", contract.digest},    {"promised", promised.size()}, {"kept", kept},
                  {"not_selected", not_selected}, {"absent_libraries", absent},  {"broken", std::move(broken)}};
  if (!contract.derived.empty()) {
    checked["derived"] = contract.derived;
  }
  return checked;
}

std::set<std::string> left_out_of_shards(const Contract& contract, std::string_view plan,
                                         std::span<const json> checked) {
  std::set<std::string> left_out = promised_cases(contract, plan);
  for (const json& one : checked) {
    if (one.is_null()) {
      return {};
    }
    for (const json& broken : one.at("broken")) {
      left_out.erase(broken.at("id").get_ref<const std::string&>());
    }
  }
  return left_out;
}

bool breaks_contract(const json& report) {
  const auto contract = report.find("contract");
  return contract != report.end() && !contract->at("broken").empty();
}

}  // namespace numcheck::report
