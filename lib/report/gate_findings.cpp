#include "report/gate_findings.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/counted.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

constexpr std::string_view kMissing = "missing";

std::string_view text_at(const json& object, const char* member) {
  return object.at(member).get_ref<const std::string&>();
}

GateFinding finding_of_promise(const json& promise) {
  const std::string_view status = text_at(promise, "status");
  return {std::string(text_at(promise, "id")), std::string(status),
          fmt::format("promised, but {}: {}", status, text_at(promise, "reason"))};
}

GateFinding finding_of_change(const json& change) {
  const auto status = [&change](const char* side) {
    const std::string_view name = text_at(change.at(side), "status");
    return name.empty() ? std::string_view("not there") : name;
  };
  const std::string_view kind = text_at(change, "change");
  return {std::string(text_at(change, "id")), std::string(kind),
          fmt::format("against the baseline: {}, {} -> {}", kind, status("base"), status("new"))};
}

}  // namespace

void record_gates(json& report, const GatePolicy& policy) {
  if (policy.fail_on.empty()) {
    return;
  }
  json words = json::array();
  for (const verdict::Status status : policy.fail_on) {
    words.push_back(verdict::status_name(status));
  }
  report["gates"] = {{"fail_on", std::move(words)}};
}

GateFindings::GateFindings(const json& report) {
  if (const auto gates = report.find("gates"); gates != report.end()) {
    for (const json& status : gates->at("fail_on")) {
      fail_on_.insert(status.get_ref<const std::string&>());
    }
  }
  if (const auto contract = report.find("contract"); contract != report.end()) {
    add_contract(*contract);
  }
  if (const auto comparison = report.find("comparison"); comparison != report.end()) {
    std::set<std::string_view> digests;
    for (const json& record : report.at("cases")) {
      digests.insert(text_at(record, "digest"));
    }
    add_comparison(*comparison, digests);
  }
}

void GateFindings::add_contract(const json& contract) {
  for (const json& promise : contract.at("broken")) {
    if (text_at(promise, "status") == kMissing) {
      elsewhere_.push_back(finding_of_promise(promise));
    } else {
      promises_.emplace(text_at(promise, "id"), &promise);
    }
  }
}

void GateFindings::add_comparison(const json& comparison, const std::set<std::string_view>& digests) {
  const json& listed = comparison.at("regressions");
  for (const json& change : listed) {
    if (digests.contains(text_at(change, "digest"))) {
      regressions_.emplace(text_at(change, "digest"), &change);
    } else {
      elsewhere_.push_back(finding_of_change(change));
    }
  }
  if (const auto all = comparison.at("summary").at("regressions").get<std::size_t>(); all > listed.size()) {
    const auto more = static_cast<double>(all - listed.size());
    elsewhere_.push_back({core::counted(more, "more regression"), "baseline",
                          fmt::format("{} against the baseline {}: compare the reports to see all",
                                      core::counted(more, "more regression"), text_at(comparison, "baseline"))});
  }
}

std::vector<GateFinding> GateFindings::of(const json& record) const {
  std::vector<GateFinding> findings;
  const std::string_view id = text_at(record, "id"), status = text_at(record, "status");
  if (const auto promise = promises_.find(id);
      promise != promises_.end() && text_at(*promise->second, "status") == status) {
    findings.push_back(finding_of_promise(*promise->second));
  }
  if (const auto change = regressions_.find(text_at(record, "digest")); change != regressions_.end()) {
    findings.push_back(finding_of_change(*change->second));
  }
  if (fail_on_.contains(status)) {
    const std::string reason = record.value("reason", "");
    findings.push_back({std::string(id), std::string(status),
                        fmt::format("--fail-on {}{}{}", status, reason.empty() ? "" : ": ", reason)});
  }
  return findings;
}

}  // namespace numcheck::report
