#include "failed_in.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/counted.hpp"
#include "core/error.hpp"
#include "files.hpp"

namespace numcheck::app {
namespace {

nlohmann::json report_at(const std::string& path) {
  try {
    return read_report(path);
  } catch (const core::IoError& error) {
    throw core::UsageError(fmt::format("--failed-in: {}", error.what()));
  }
}

/// Digests of the cases that made the run fail.
std::set<std::string> failures_in(const nlohmann::json& report) {
  std::set<std::string> failed;
  for (const nlohmann::json& record : report.at("cases")) {
    const std::string status = record.at("status").get<std::string>();
    if (status == "fail" || status == "xpass" || status == "error" || status == "crashed" || status == "timeout") {
      failed.insert(record.at("digest").get<std::string>());
    }
  }
  return failed;
}

}  // namespace

std::vector<std::string> keep_failed(std::vector<plan::Case>& cases, const std::string& path) {
  const nlohmann::json report = report_at(path);
  const std::set<std::string> failed = failures_in(report);
  std::erase_if(cases, [&failed](const plan::Case& c) { return !failed.contains(c.digest.hex()); });
  std::vector<std::string> notes;
  if (cases.size() < failed.size()) {
    const std::size_t lost = failed.size() - cases.size();
    notes.push_back(fmt::format("--failed-in: {} of {} of {} {} not in the plan, or not selected", lost,
                                core::counted(static_cast<double>(failed.size()), "failed case"), path,
                                lost == 1 ? "is" : "are"));
  }
  if (report.value("interrupted", false)) {
    notes.push_back(
        fmt::format("--failed-in: the run of {} was interrupted; cases that it did not come to are left out", path));
  }
  return notes;
}

}  // namespace numcheck::app
