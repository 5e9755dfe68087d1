// A full report in a file, whose records are read one at a time: parsed, those of a large run take five times the memory of
// their text, which may be a gigabyte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/file_descriptor.hpp"
#include "report/case_ranges.hpp"

namespace numcheck::report {

class StoredReport {
 public:
  /// Finds the cases of a report that was written by this program. Throws core::IoError if the file cannot be read, is
  /// larger than `max_bytes`, or is not a report, with the words of parse_report.
  StoredReport(const std::filesystem::path& path, std::uint64_t max_bytes);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::size_t size() const noexcept { return cases_.size(); }

  /// The whole report with records as `reduced` leaves them, each checked in full before: parse_report, but for the
  /// memory. Throws core::IoError like it.
  [[nodiscard]] nlohmann::json read(const std::function<void(nlohmann::json&)>& reduced) const;

  /// The record of a case as it was read. Throws core::IoError if the file has changed since. Thread-safe.
  [[nodiscard]] nlohmann::json record(std::size_t index) const;

 private:
  [[nodiscard]] std::string text(TextRange range) const;

  std::string name_;
  core::FileDescriptor file_;
  std::string head_;  ///< the text without its cases: "cases": []
  std::vector<TextRange> cases_;
};

/// Leaves in a record what the console, the other views and the tables of a report read: without certificates and what other
/// tools' comparisons say, and of a case that passed without its worst elements, the sources of its gates and most metrics.
/// It takes a third of the memory.
void keep_what_views_read(nlohmann::json& record);

}  // namespace numcheck::report
