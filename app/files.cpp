#include "files.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "report/report.hpp"
#include "report/summary.hpp"

namespace numcheck::app {
namespace {

/// "cannot read out/report.json: No such file or directory".
core::IoError io_error(std::string_view action, const std::filesystem::path& path) {
  const int reason = errno;
  return core::IoError(
      fmt::format("cannot {} {}: {}", action, path.string(), reason == 0 ? "unknown reason" : std::strerror(reason)));
}

bool is_record(const nlohmann::json& record) {
  const auto has_text = [&record](const char* key) { return record.contains(key) && record.at(key).is_string(); };
  return record.is_object() && has_text("id") && has_text("digest") && has_text("status") &&
         report::parse_status(record.at("status").get<std::string>()).has_value();
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  errno = 0;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw core::IoError(fmt::format("cannot read {}: it is a directory", path.string()));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw io_error("read", path);
  }
  std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) {
    throw io_error("read", path);
  }
  return content;
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  errno = 0;
  std::error_code unknown;
  if (const auto there = std::filesystem::status(path, unknown);
      std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
    // A device or a pipe is written to: renaming a file onto it would take its place.
    std::ofstream file(path, std::ios::binary);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    file.flush();
    if (!file) {
      throw io_error("write", path);
    }
    return;
  }
  std::filesystem::path temporary = path;
  temporary += fmt::format(".{}.tmp", ::getpid());
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    file.flush();
    if (!file) {
      const core::IoError error = io_error("write", path);
      std::error_code ignored;
      std::filesystem::remove(temporary, ignored);
      throw error;
    }
  }
  std::error_code failure;
  std::filesystem::rename(temporary, path, failure);
  if (failure) {
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
    throw core::IoError(fmt::format("cannot write {}: {}", path.string(), failure.message()));
  }
}

nlohmann::json read_report(const std::filesystem::path& path) {
  nlohmann::json report = nlohmann::json::parse(read_file(path), nullptr, false);
  if (!report.is_object() || report.value("schema", nlohmann::json()) != report::kReportSchemaName ||
      !report.contains("cases") || !report.at("cases").is_array()) {
    throw core::IoError(fmt::format("{} is no report of te-numcheck", path.string()));
  }
  const std::string version = report.value("schema_version", std::string());
  if (!version.starts_with("1.")) {
    throw core::IoError(fmt::format("{} has report version \"{}\"; this program reads 1.x", path.string(), version));
  }
  for (const nlohmann::json& record : report.at("cases")) {
    if (!is_record(record)) {
      throw core::IoError(fmt::format("{}: a case lacks its id, digest or status", path.string()));
    }
  }
  return report;
}

}  // namespace numcheck::app
