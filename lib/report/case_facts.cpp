#include "report/case_facts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/counted.hpp"
#include "core/strings.hpp"
#include "report/number.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

std::string text_of(const json& object, const char* member) {
  const auto found = object.find(member);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// The place of an identifier's part: op/params/mode/backend.
enum Part : std::uint8_t { kOp = 0, kMode = 2, kBackend = 3, kParts = 4 };

}  // namespace

Outcome outcome_of(std::string_view status) noexcept {
  constexpr std::array<std::string_view, 3> kBroken = {"error", "crashed", "timeout"};
  constexpr std::array<std::string_view, 3> kSkipped = {"unsupported", "skipped", "xfail"};
  return std::ranges::find(kBroken, status) != kBroken.end()     ? Outcome::broken
         : std::ranges::find(kSkipped, status) != kSkipped.end() ? Outcome::skipped
         : status == "fail" || status == "xpass"                 ? Outcome::failed
                                                                 : Outcome::passed;
}

double ratio_of_criterion(const json& criterion) {
  const double measured = number_value(criterion.at("measured")), limit = number_value(criterion.at("limit"));
  const bool has_ratio = limit > 0 && !std::isnan(measured);
  return has_ratio ? measured / limit : measured == limit ? 0 : HUGE_VAL;
}

namespace {

std::string first_cause(const json& record) {
  for (const json& run : record.at("runs")) {
    for (const json& output : run.at("outputs")) {
      for (const json& finding : output.value("findings", json::array())) {
        if (finding.contains("cause")) {
          return finding.at("cause").get<std::string>();
        }
      }
    }
  }
  return "";
}

}  // namespace

CaseFacts facts_of(const json& record) {
  CaseFacts facts;
  facts.id = text_of(record, "id");
  facts.digest = text_of(record, "digest");
  facts.status = text_of(record, "status");
  facts.reason = text_of(record, "reason");
  facts.cause = first_cause(record);
  facts.reproduce = text_of(record, "reproduce");
  if (const std::vector<std::string> parts = core::split(facts.id, '/'); parts.size() >= kParts) {
    facts.op = parts[kOp];
    facts.mode = parts[kMode];
    facts.backend = parts[kBackend];
  }
  if (const auto times = record.find("time_s"); times != record.end()) {
    for (const auto& [stage, seconds] : times->items()) {
      facts.seconds += number_value(seconds);
    }
  }
  facts.ratio = facts.rounding = facts.others = std::numeric_limits<double>::quiet_NaN();
  for (const json& run : record.at("runs")) {
    for (const auto& [port, output] : run.at("outputs").items()) {
      for (const json& criterion : output.at("criteria")) {
        const double ratio = ratio_of_criterion(criterion);
        double& of_kind = text_of(criterion, "about") == "rounding" ? facts.rounding : facts.others;
        of_kind = ratio <= of_kind ? of_kind : ratio;
        if (!(ratio <= facts.ratio)) {
          facts.ratio = ratio;
          facts.tightest = port + ": " + text_of(criterion, "name");
        }
      }
    }
  }
  return facts;
}

std::vector<std::string> caveats_of(const json& report) {
  const json given = report.value("settings", json());
  const json settings = given.is_object() ? given : json::object();
  std::vector<std::string> caveats;
  if (const std::string fault = text_of(settings, "inject"); !fault.empty()) {
    caveats.push_back("fault planted: " + fault);
  }
  if (settings.value("repeat", json()) == 1) {
    caveats.emplace_back("one run each: repeatable bits are not tested");
  }
  return caveats;
}

std::string unseen_fault_text(const json& report) {
  const auto is_unseen = [](const json& record) {
    const json& runs = record.at("runs");
    return outcome_of(text_of(record, "status")) == Outcome::passed && !runs.empty() &&
           std::ranges::all_of(runs, [](const json& run) { return run.value("fault_changed_nothing", false); });
  };
  const json& cases = report.at("cases");
  const auto count = std::ranges::count_if(cases, is_unseen);
  return count == 0 ? ""
                    : fmt::format("the planted fault changed nothing in {}, as in {}",
                                  core::counted(static_cast<double>(count), "case"),
                                  text_of(*std::ranges::find_if(cases, is_unseen), "id"));
}

std::string machine_line(const json& report) {
  const json given = report.value("machine", json());
  const json machine = given.is_object() ? given : json::object();
  const json device = machine.value("device", json());
  std::string line = device.is_object() ? text_of(device, "name") : "no device";
  if (device.is_object() && device.value("simulated", false)) {
    line += " (simulated: no hardware evidence)";
  }
  if (const std::string driver = text_of(machine, "driver"); !driver.empty()) {
    line += " · driver " + driver;
  }
  const json libraries = machine.value("libraries", json::object());
  for (const auto& [name, version] : libraries.items()) {
    line += fmt::format(" · {} {}", name, version.is_string() ? version.get<std::string>() : version.dump());
  }
  return line;
}

}  // namespace numcheck::report
