#include "report/parse_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json_depth.hpp"
#include "report/record_shape.hpp"
#include "report/report.hpp"
#include "report/report_checks.hpp"
#include "report/summary.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

/// Whether this program reads a report of that version.
bool is_known(const json& version) {
  return version.is_string() && version.get_ref<const std::string&>().starts_with("1.");
}

/// The first number of the summary that the cases contradict, as a sentence; empty if there is none. A gate must not
/// believe a summary.
std::string contradiction(const json& report) {
  const auto stored = report.find("summary");
  if (stored == report.end() || !stored->is_object()) {
    return "";
  }
  const json summary = summarise(report.at("cases").get_ref<const json::array_t&>());
  for (const auto& [name, count] : summary.items()) {
    if (const json said = stored->value(name, json(0)); said != count) {
      return fmt::format("summary/{} is {}, but its cases make it {}", name, said.dump(), count.dump());
    }
  }
  return "";
}

}  // namespace

bool is_case(const json& record) {
  const auto has_text = [&record](const char* key) { return record.contains(key) && record.at(key).is_string(); };
  return record.is_object() && has_text("id") && has_text("digest") && has_text("status") &&
         verdict::parse_status(record.at("status").get_ref<const std::string&>()).has_value();
}

std::string not_a_report(const std::string& name) {
  return fmt::format("{} is not a report of te-numcheck", name);
}

std::string too_deep(const std::string& name) {
  return fmt::format("{}: it nests deeper than {} levels", not_a_report(name), core::kMaxJsonDepth);
}

std::string not_a_case(const std::string& name) {
  return fmt::format("{}: a case has no valid id, digest or status", name);
}

void require_report(const json& report, const std::string& name) {
  if (!report.is_object() || report.value("schema", json()) != kReportSchemaName || !report.contains("cases") ||
      !report.at("cases").is_array()) {
    throw core::IoError(not_a_report(name));
  }
  if (const json version = report.value("schema_version", json()); !is_known(version)) {
    throw core::IoError(fmt::format("{} has report version {}, but this program reads only 1.x", name,
                                    version.dump(-1, ' ', false, json::error_handler_t::replace)));
  }
}

void require_types(const json& report, const std::string& name) {
  if (const std::string problem = type_error(report); !problem.empty()) {
    throw core::IoError(fmt::format("{} is not a valid report: {}", name, problem));
  }
}

void require_true_summary(const json& report, const std::string& name) {
  if (const std::string problem = contradiction(report); !problem.empty()) {
    throw core::IoError(fmt::format("{}: {}", name, problem));
  }
}

nlohmann::json parse_report(std::string_view text, const std::string& name) {
  if (core::nests_deeper(text)) {
    throw core::IoError(too_deep(name));
  }
  json report = json::parse(text, nullptr, false);
  require_report(report, name);
  for (const json& record : report.at("cases")) {
    if (!is_case(record)) {
      throw core::IoError(not_a_case(name));
    }
  }
  require_types(report, name);
  require_true_summary(report, name);
  return report;
}

std::string missing_text(const std::exception& error) {
  const std::string_view text = error.what();
  const std::size_t end = text.starts_with("[json.exception") ? text.find("] ") : std::string_view::npos;
  return std::string(end == std::string_view::npos ? text : text.substr(end + 2));
}

}  // namespace numcheck::report
