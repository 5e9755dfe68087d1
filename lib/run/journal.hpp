// results.jsonl: the cases that a run has finished, one per line, so that an interrupted run can be resumed.
//
//   {"xxh128":"<32 hex digits>","facts":{"plan digest":"...",...},"journal":"te-numcheck/results","version":2}
//   {"xxh128":"<32 hex digits>","digest":"<32 hex digits>","id":"gemm/m=...","record":{...}}
//
// The first line's checksum covers the bytes after `",`. Every other line's covers the 32 digits of the first line's
// checksum followed by the bytes after `",`. This detects changed bytes, a record under another case's name, and lines
// from another journal; the cases of such lines run again. If the first line is damaged, nothing can be resumed.
//
// Each line is written with a single write(2), so that it survives if this process dies. Lines are synced to disk every
// few seconds and at the end, so that a machine crash costs only a few cases.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/file_descriptor.hpp"
#include "core/hash.hpp"
#include "machine/device.hpp"
#include "machine/environment.hpp"
#include "run/journal_text.hpp"

namespace numcheck::run {

/// What a run's numbers depend on besides its cases. Must be unchanged when the run is resumed.
struct JournalHeader {
  std::string plan_digest;
  std::string tool_version;
  machine::Device device;  ///< name, sm, uuid and driver matter; the index does not
  std::vector<std::pair<std::string, std::string>> libraries;
  std::string shard;  ///< "0/1"
  /// Variables that affect numbers, as set for the coordinator.
  std::vector<machine::VariableState> environment;
  /// Options that affect numbers or verdicts: {"repeat", "2"}, {"inject", ""}.
  std::vector<std::pair<std::string, std::string>> settings;
};

struct ResumedJournal;

/// Not thread-safe.
class Journal {
 public:
  /// Creates `folder`/results.jsonl. Throws core::UsageError if it exists, core::IoError if it cannot be written.
  [[nodiscard]] static Journal create(const std::string& folder, const JournalHeader& header);

  /// Opens it for appending. Throws core::UsageError if it does not exist, if `header` differs from the recorded one
  /// (listing every difference) or if another process is writing to it; core::IoError if it is not a journal or its
  /// first line is damaged.
  [[nodiscard]] static ResumedJournal open_for_resume(const std::string& folder, const JournalHeader& header);

  Journal(Journal&&) noexcept = default;
  Journal& operator=(Journal&&) = delete;
  ~Journal();

  /// Appends a finished case. Throws a core::IoError that names the file and says what is saved; the file then ends
  /// after the last complete line.
  void append(const core::Digest& digest, const std::string& id, const nlohmann::json& record);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  Journal(std::string path, core::FileDescriptor file, std::uint64_t size, std::uint64_t cases);
  void lock();
  void write_line(const std::string& line);

  std::string path_;
  std::string head_checksum_;
  core::FileDescriptor file_;
  std::uint64_t size_;
  std::uint64_t cases_;
  std::chrono::steady_clock::time_point synced_;
};

struct ResumedJournal {
  Journal journal;
  /// Cases with a verdict: pass, warn, fail, inconclusive, unsupported, xfail, xpass. If a case was recorded twice, the
  /// last record counts.
  std::vector<JournalEntry> finished;
  std::vector<JournalEntry> unfinished;  ///< cases that ended as error, crashed, timeout or skipped, which run again
  std::vector<std::string> notes;        ///< about unusable lines, whose cases run again
};

}  // namespace numcheck::run
