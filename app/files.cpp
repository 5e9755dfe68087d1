#include "files.hpp"

#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file.hpp"
#include "report/brief.hpp"
#include "report/parse_report.hpp"

namespace numcheck::app {

void refuse_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    const std::filesystem::path inside = path / "report.json";
    throw core::IoError(fmt::format("cannot read {}: it is a folder; name {}", path.string(),
                                    std::filesystem::exists(inside, ignored) ? inside.string() : "a report in it"));
  }
}

nlohmann::json read_report(const std::filesystem::path& path) {
  refuse_folder(path);
  const core::FileText content = core::read_regular_file(path, kMaxReportBytes);
  if (!content.problem.empty()) {
    throw core::IoError(fmt::format("cannot read {}: {}", path.string(), content.problem));
  }
  return report::parse_report(content.text, path.string());
}

nlohmann::json read_brief(const std::filesystem::path& path) {
  nlohmann::json report = read_report(path);
  if (report.value("brief", false)) {
    return report;
  }
  try {
    return report::brief_report(report);
  } catch (const nlohmann::json::exception& error) {
    throw core::IoError(fmt::format("{} lacks what is compared: {}", path.string(), report::missing_text(error)));
  }
}

}  // namespace numcheck::app
