#include "report/parse_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json_depth.hpp"
#include "report/report.hpp"
#include "report/summary.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

bool is_case(const json& record) {
  const auto has_text = [&record](const char* key) { return record.contains(key) && record.at(key).is_string(); };
  return record.is_object() && has_text("id") && has_text("digest") && has_text("status") &&
         verdict::parse_status(record.at("status").get_ref<const std::string&>()).has_value();
}

/// "1.1.0", or whatever the member contains.
std::string version_of(const json& report) {
  const json version = report.value("schema_version", json());
  return version.is_string() ? version.get<std::string>() : version.dump();
}

}  // namespace

nlohmann::json parse_report(std::string_view text, const std::string& name) {
  if (core::nests_deeper(text)) {
    throw core::IoError(
        fmt::format("{} is not a report of te-numcheck: it nests deeper than {} levels", name, core::kMaxJsonDepth));
  }
  json report = json::parse(text, nullptr, false);
  if (!report.is_object() || report.value("schema", json()) != kReportSchemaName || !report.contains("cases") ||
      !report.at("cases").is_array()) {
    throw core::IoError(fmt::format("{} is not a report of te-numcheck", name));
  }
  if (const std::string version = version_of(report); !version.starts_with("1.")) {
    throw core::IoError(fmt::format("{} has report version \"{}\", but this program reads only 1.x", name, version));
  }
  for (const json& record : report.at("cases")) {
    if (!is_case(record)) {
      throw core::IoError(fmt::format("{}: a case has no valid id, digest or status", name));
    }
  }
  return report;
}

}  // namespace numcheck::report
