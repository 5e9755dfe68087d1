// The lines of a journal, written and read: text in, values out. Journal brings them to the disk and back.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/hash.hpp"

namespace numcheck::run {

inline constexpr int kJournalVersion = 2;

/// What must be equal when a run goes on, by name.
using JournalFacts = std::map<std::string, std::string>;

/// A case that an earlier part of the run has finished.
struct JournalEntry {
  core::Digest digest;
  std::string id;
  std::string record;  ///< JSON text of its object in the report
};

/// A header line and its checksum, which the lines after it are bound to.
struct JournalHead {
  std::string line;  ///< without the line's end
  std::string checksum;
};
[[nodiscard]] JournalHead journal_head(const JournalFacts& facts);

/// The line of a finished case, without its end.
[[nodiscard]] std::string journal_line(std::string_view head_checksum, const core::Digest& digest,
                                       const std::string& id, const nlohmann::json& record);

struct JournalText {
  JournalFacts facts;
  std::string checksum;  ///< of the header line
  /// Cases with a verdict: pass, warn, fail, inconclusive, unsupported, xfail, xpass. Of a case that was recorded twice
  /// the last intact record counts.
  std::vector<JournalEntry> finished;
  std::vector<std::string> notes;  ///< lines that cannot be used, as sentences; the first few, and how many more
  std::uint64_t whole_bytes = 0;   ///< up to the end of the last whole line
};

/// Reads a journal; `path` is for messages. A line is taken if its checksum is right, if its record is a case of a
/// report (report::record_mistake), and if digest and identifier of the record are those of the line. Throws
/// core::IoError if the header line is damaged or none, core::UsageError if it is that of another version.
[[nodiscard]] JournalText parse_journal(std::string_view text, const std::string& path);

}  // namespace numcheck::run
