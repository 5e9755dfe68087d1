#include "report/failure_groups.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/case_facts.hpp"
#include "report/criterion.hpp"
#include "report/override_sentences.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using tolerance::Criterion;

std::string named_cause(const json& run) {
  for (const json& output : run.at("outputs")) {
    for (const json& finding : output.at("findings")) {
      if (finding.contains("cause")) {
        return finding.at("cause").get<std::string>();
      }
    }
  }
  return {};
}

/// The first failed gate of a run, with its op and output.
std::string failed_gate(const std::string& op, const json& run) {
  for (const auto& [port, output] : run.at("outputs").items()) {
    for (const json& written : output.at("criteria")) {
      const Criterion criterion = criterion_of(written);
      if (!criterion.ok && criterion.name == "class") {
        return fmt::format("{} asked, {} ran", class_label(run.at("expected_class").get<std::string>()),
                           class_label(run.at("observed_class").get<std::string>()));
      }
      if (!criterion.ok) {
        return fmt::format("{}, {}: {}", op, port, criterion.name);
      }
    }
  }
  return {};
}

std::string failure_kind(const json& record) {
  const auto op = record.at("op").get<std::string>(), status = record.at("status").get<std::string>();
  if (status == "xpass") {
    return "known to fail, but passes";
  }
  std::string gate;
  for (const json& run : record.at("runs")) {
    if (run.at("status") != "pass" && run.at("status") != "warn" && status == "fail") {
      if (std::string cause = named_cause(run); !cause.empty()) {
        return cause;
      }
      gate = gate.empty() ? failed_gate(op, run) : gate;
    }
  }
  return gate.empty() ? fmt::format("{}: {}", op, record.at("reason").get<std::string>()) : gate;
}

std::string warning_kind(const json& record) {
  for (const json& run : record.at("runs")) {
    for (const json& output : run.at("outputs")) {
      if (const std::string declared = output.value("declared", std::string()); !declared.empty()) {
        return fmt::format("{}: {}", record.at("op").get<std::string>(), declared);
      }
    }
  }
  return record.at("reason").get<std::string>();
}

template <class Wanted>
std::vector<CaseGroup> groups_of(const json& cases, const Wanted& wanted, std::string (*kind)(const json& record)) {
  std::vector<CaseGroup> groups;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!wanted(cases[i])) {
      continue;
    }
    const auto status = cases[i].at("status").get<std::string>();
    std::string what = kind(cases[i]);
    const auto [place, is_new] = places.try_emplace({status, what}, groups.size());
    if (is_new) {
      groups.push_back({status, std::move(what), {}});
    }
    groups[place->second].cases.push_back(i);
  }
  std::ranges::stable_sort(groups, std::greater(), [](const CaseGroup& group) { return group.cases.size(); });
  return groups;
}

}  // namespace

bool is_failure(const json& record) {
  const Outcome outcome = outcome_of(record.at("status").get<std::string>());
  return outcome == Outcome::failed || outcome == Outcome::broken;
}

std::vector<CaseGroup> failure_groups(const json& cases) {
  return groups_of(cases, &is_failure, &failure_kind);
}

std::vector<CaseGroup> warning_groups(const json& cases) {
  return groups_of(cases, [](const json& record) { return record.at("status") == "warn"; }, &warning_kind);
}

}  // namespace numcheck::report
