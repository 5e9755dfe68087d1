#include "report/brief.hpp"

#include <cmath>
#include <cstdlib>
#include <set>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

json rounded(const json& value) {
  const double whole = number_value(value);
  return std::isfinite(whole) ? number(std::strtod(fmt::format("{:.6g}", whole).c_str(), nullptr)) : value;
}

/// As in tolerance::tightest: a failure without a ratio ranks above all others.
double tightness(const json& criterion) {
  const double measured = number_value(criterion.at("measured")), limit = number_value(criterion.at("limit"));
  if (limit > 0 && !std::isnan(measured)) {
    return measured / limit;
  }
  return criterion.at("ok").get<bool>() ? 0 : HUGE_VAL;
}

bool is_about_rounding(const json& criterion) {
  return criterion.value("about", "") == "rounding";
}

/// The gate closest to its limit, or furthest beyond it, among those in which the output's own rounding takes up to all of the
/// limit, or among the others; null if there is none.
const json* tightest_of(const json& criteria, bool rounding) {
  const json* tightest = nullptr;
  for (const json& criterion : criteria) {
    if (is_about_rounding(criterion) == rounding &&
        (tightest == nullptr || tightness(criterion) > tightness(*tightest))) {
      tightest = &criterion;
    }
  }
  return tightest;
}

json brief_output(const json& output) {
  json criteria = json::array();
  for (const bool rounding : {false, true}) {
    if (const json* tightest = tightest_of(output.at("criteria"), rounding); tightest != nullptr) {
      json& kept = criteria.emplace_back(json{{"name", tightest->at("name")},
                                              {"measured", rounded(tightest->at("measured"))},
                                              {"limit", rounded(tightest->at("limit"))}});
      if (rounding) {
        kept["about"] = "rounding";
      }
    }
  }
  const json& metrics = output.at("metrics");
  return {{"xxh128", output.at("xxh128")},
          {"criteria", std::move(criteria)},
          {"metrics", {{"rel_l2", rounded(metrics.at("rel_l2"))}, {"max_ulp", rounded(metrics.at("max_ulp"))}}}};
}

void copy_nonempty(json& to, const json& from, const char* member) {
  if (!from.at(member).get_ref<const std::string&>().empty()) {
    to[member] = from.at(member);
  }
}

json brief_case(const json& record) {
  json runs = json::array();
  for (const json& run : record.at("runs")) {
    json outputs = json::object();
    for (const auto& [port, output] : run.at("outputs").items()) {
      outputs[port] = brief_output(output);
    }
    json& kept = runs.emplace_back(json{{"implementation", run.at("implementation")}, {"outputs", std::move(outputs)}});
    copy_nonempty(kept, run, "error");
    if (const auto not_told = run.find("not_told"); not_told != run.end() && !not_told->empty()) {
      kept["not_told"] = *not_told;
    }
  }
  json kept = {{"digest", record.at("digest")},
               {"id", record.at("id")},
               {"status", record.at("status")},
               {"runs", std::move(runs)}};
  copy_nonempty(kept, record, "reason");
  for (const char* member : {"xfail", "expired_issues"}) {
    if (const auto known = record.find(member); known != record.end()) {
      kept[member] = *known;
    }
  }
  return kept;
}

std::string dump(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

}  // namespace

nlohmann::json brief_report(const nlohmann::json& report) {
  if (report.value("brief", false)) {
    return report;
  }
  json brief = json::object();
  for (const auto& [name, value] : report.items()) {
    static const std::set<std::string> left_out = {"cases", "override_effect", "library_changes", "precision_map",
                                                   "causes"};
    if (!left_out.contains(name)) {
      brief[name] = value;
    }
  }
  brief["brief"] = true;
  json& cases = brief["cases"] = json::array();
  for (const json& record : report.at("cases")) {
    cases.push_back(brief_case(record));
  }
  return brief;
}

std::string brief_text(const nlohmann::json& brief) {
  std::string text = "{\n";
  for (const auto& [name, value] : brief.items()) {
    if (name != "cases") {
      text += dump(name, -1) + ": " + dump(value, -1) + ",\n";
    }
  }
  text += "\"cases\": [\n";
  const json& cases = brief.at("cases");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    text += dump(cases[i], -1) + (i + 1 < cases.size() ? ",\n" : "\n");
  }
  return text + "]\n}\n";
}

}  // namespace numcheck::report
