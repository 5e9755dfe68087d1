// A contract as JSON.
#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/json_depth.hpp"
#include "report/contract.hpp"
#include "report/schema_check.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

constexpr std::string_view kArchitecture = "sm_";

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// null, one version, or a list of them.
json versions_json(const std::vector<plan::Version>& versions) {
  json texts = json::array();
  for (const plan::Version& version : versions) {
    texts.push_back(fmt::format("{}", fmt::join(version, ".")));
  }
  return texts.empty() ? json() : texts.size() == 1 ? texts.front() : texts;
}

std::vector<plan::Version> parse_versions(const json& versions) {
  std::vector<plan::Version> list;
  const auto add = [&](const json& text) {
    if (plan::Version version = plan::leading_version(text.get_ref<const std::string&>()); !version.empty()) {
      list.push_back(std::move(version));
    }
  };
  if (versions.is_array()) {
    std::ranges::for_each(versions, add);
  } else if (!versions.is_null()) {
    add(versions);
  }
  return list;
}

json libraries_json(const PlanPromises& promises) {
  json libraries = json::object();
  for (const auto& [name, versions] : promises.libraries) {
    libraries[name] = versions_json(versions);
  }
  return libraries;
}

std::string promises_text(const PlanPromises& promises) {
  std::string text = fmt::format(
      "{{\n\"plan\": {},\n\"digest\": {},\n\"device\": {},\n\"libraries\": {},\n\"cases\": [", dumped(promises.plan),
      dumped(promises.digest), dumped(promises.device), dumped(libraries_json(promises)));
  const char* before = "\n";
  for (const std::string& id : promises.cases) {
    text += before + dumped(id);
    before = ",\n";
  }
  return text + "\n]\n}";
}

PlanPromises parse_promises(const json& plan) {
  PlanPromises promises{.plan = plan.at("plan").get<std::string>(),
                        .digest = plan.at("digest").get<std::string>(),
                        .device = plan.at("device").get<std::string>(),
                        .libraries = {},
                        .cases = {}};
  for (const auto& [name, versions] : plan.at("libraries").items()) {
    promises.libraries[name] = parse_versions(versions);
  }
  for (const json& id : plan.at("cases")) {
    promises.cases.insert(id.get<std::string>());
  }
  return promises;
}

Contract parsed(const json& document) {
  Contract contract;
  const auto& architecture = document.at("architecture").get_ref<const std::string&>();
  const plan::Version number = plan::leading_version(architecture.substr(kArchitecture.size()));
  if (number.size() != 1) {
    throw core::IoError("architecture is not like sm_90");
  }
  contract.sm = number.front();
  contract.simulated = document.at("simulated").get<bool>();
  contract.derived = document.value("derived", "");
  for (const json& plan : document.at("plans")) {
    contract.plans.push_back(parse_promises(plan));
  }
  return contract;
}

}  // namespace

std::string contract_text(const Contract& contract) {
  std::string text = fmt::format(
      "{{\n\"schema\": \"{}\",\n\"schema_version\": \"{}\",\n\"architecture\": \"{}{}\",\n\"simulated\": "
      "{},\n{}\"plans\": [",
      kContractSchemaName, kContractSchemaVersion, kArchitecture, contract.sm, contract.simulated,
      contract.derived.empty() ? "" : fmt::format("\"derived\": {},\n", dumped(contract.derived)));
  const char* before = "\n";
  for (const PlanPromises& promises : contract.plans) {
    text += before + promises_text(promises);
    before = ",\n";
  }
  return text + "\n]\n}\n";
}

Contract parse_contract(std::string_view text, const std::string& name) {
  const json document = core::nests_deeper(text) ? json() : json::parse(text, nullptr, false);
  if (!document.is_object() || document.value("schema", json()) != kContractSchemaName) {
    throw core::IoError(fmt::format("{} is not a contract of te-numcheck", name));
  }
  const json version = document.value("schema_version", json());
  if (!version.is_string() || !version.get_ref<const std::string&>().starts_with("1.")) {
    throw core::IoError(
        fmt::format("{} has contract version {}, but this program reads only 1.x", name, dumped(version)));
  }
  static const SchemaChecker checker(contract_schema());
  if (const auto found = checker.check(document, Strictness::everything)) {
    throw core::IoError(fmt::format("{} is not a valid contract: {}", name, found->sentence("it")));
  }
  try {
    Contract contract = parsed(document);
    contract.digest = core::digest_of(text).hex();
    return contract;
  } catch (const core::IoError& error) {
    throw core::IoError(fmt::format("{} is not a valid contract: {}", name, error.what()));
  }
}

}  // namespace numcheck::report
