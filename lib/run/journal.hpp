// results.jsonl: what a run has finished so far, one line a case, so that an interrupted run can go on.
//
//   {"xxh128":"<32 hex digits>","facts":{"plan digest":"...",...},"journal":"te-numcheck/results","version":2}
//   {"xxh128":"<32 hex digits>","digest":"<32 hex digits>","id":"gemm/m=...","record":{...}}
//
// The checksum of the first line is that of the bytes after `",`; that of any other line is that of the first line's
// checksum (its 32 digits) and the bytes after `",`. So a changed byte, a line under another case's name and a line of
// another journal are seen; such a line's case runs again. Of a damaged first line nothing can be resumed.
//
// Lines are written with one write(2) each, so that they survive the end of this process at any moment; they are synced
// to the disk every few seconds and at the end, so that a crash of the machine costs a few cases.
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

/// What a run's numbers depend on besides its cases. All of it must be equal when the run is resumed.
struct JournalHeader {
  std::string plan_digest;
  std::string tool_version;
  machine::Device device;  ///< name, sm, uuid and driver count; the index does not
  std::vector<std::pair<std::string, std::string>> libraries;
  std::string shard;  ///< "0/1"
  /// Variables that change numbers, as the coordinator had them.
  std::vector<machine::VariableState> environment;
  /// Options that change numbers or verdicts: {"repeat", "2"}, {"inject", ""}.
  std::vector<std::pair<std::string, std::string>> settings;
};

struct ResumedJournal;

/// Not thread-safe.
class Journal {
 public:
  /// Starts `folder`/results.jsonl. Throws core::UsageError if there is one already, core::IoError if it cannot be
  /// written.
  [[nodiscard]] static Journal create(const std::string& folder, const JournalHeader& header);

  /// Opens it to go on. Throws core::UsageError if there is none, if `header` differs from that of the run (naming
  /// every difference) or if another process is writing to it; core::IoError if it is not a journal or its first line
  /// is damaged.
  [[nodiscard]] static ResumedJournal open_for_resume(const std::string& folder, const JournalHeader& header);

  Journal(Journal&&) noexcept = default;
  Journal& operator=(Journal&&) = delete;
  ~Journal();

  /// Adds a finished case. Throws core::IoError that names the file and says what is kept; the file then ends with the
  /// last whole line.
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
  /// Cases with a verdict: pass, warn, fail, inconclusive, unsupported, xfail, xpass. Those that ended error, crashed,
  /// timeout or skipped are not among them: they run again. Of a case that was recorded twice the last record counts.
  std::vector<JournalEntry> finished;
  std::vector<std::string> notes;  ///< lines that cannot be used, as sentences; their cases run again
};

}  // namespace numcheck::run
