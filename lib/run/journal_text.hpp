// Formats and parses the lines of a journal. Files are handled by Journal.
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

/// What must be unchanged when a run is resumed, by name.
using JournalFacts = std::map<std::string, std::string>;

/// A case that was finished before the run was interrupted.
struct JournalEntry {
  core::Digest digest;
  std::string id;
  std::string record;  ///< JSON text of the case's object in the report
};

/// A header line and its checksum, which goes into the checksums of all other lines.
struct JournalHead {
  std::string line;  ///< without line break
  std::string checksum;
};
[[nodiscard]] JournalHead journal_head(const JournalFacts& facts);

/// The line of a finished case, without line break.
[[nodiscard]] std::string journal_line(std::string_view head_checksum, const core::Digest& digest,
                                       const std::string& id, const nlohmann::json& record);

struct JournalText {
  JournalFacts facts;
  std::string checksum;  ///< of the header line
  /// Cases with a verdict: pass, warn, fail, inconclusive, unsupported, xfail, xpass. If a case was recorded twice, the
  /// last intact record counts.
  std::vector<JournalEntry> finished;
  std::vector<JournalEntry> unfinished;  ///< cases without one: error, crashed, timeout, skipped
  std::vector<std::string> notes;        ///< about unusable lines: the first few, and how many more
  std::uint64_t complete_bytes = 0;      ///< up to the end of the last complete line
};

/// Parses a journal; `path` is for messages. A line is accepted if its checksum matches, its record is a valid case of
/// a report (report::record_error), and the record's digest and identifier match the line's. Throws core::IoError if
/// the header line is missing or damaged, core::UsageError if it has another version.
[[nodiscard]] JournalText parse_journal(std::string_view text, const std::string& path);

}  // namespace numcheck::run
