// Files that the program reads and writes.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace numcheck::app {

/// Whole file; throws core::IoError.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

/// Writes beside the target and renames, so that a reader never sees half a file; what is no regular file (a device, a
/// pipe) is written to as it is. Throws core::IoError.
void write_file(const std::filesystem::path& path, std::string_view content);

/// A report.json with at least the fields that selection and views need; throws core::IoError if it is none.
[[nodiscard]] nlohmann::json read_report(const std::filesystem::path& path);

}  // namespace numcheck::app
