// Reads reports.
#pragma once

#include <cstdint>
#include <filesystem>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::app {

/// A report on 100 000 cases takes 300 MiB in simple runs, and a GiB where all of it ran.
inline constexpr std::uint64_t kMaxReportBytes = std::uint64_t{1} << 30;

/// Throws core::IoError for a folder, and names the report in it.
void refuse_folder(const std::filesystem::path& path);

/// A report.json with at least the fields that selection needs; throws core::IoError if the file is not one. Only a
/// regular file of at most 1 GiB is read.
[[nodiscard]] nlohmann::json read_report(const std::filesystem::path& path);

/// The same in brief form, which takes a tenth of the memory: gigabytes, for a full report on 100 000 cases.
[[nodiscard]] nlohmann::json read_brief(const std::filesystem::path& path);

}  // namespace numcheck::app
