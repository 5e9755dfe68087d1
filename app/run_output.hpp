// What a run writes: the folder with the journal and the report, and files such as --json.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli_forward.hpp"
#include "core/hash.hpp"
#include "plan/case.hpp"
#include "report/report.hpp"
#include "run/journal.hpp"
#include "view_files.hpp"
#include "worker/workers.hpp"

namespace numcheck::app {

struct OutputOptions : ViewOptions {
  std::string out;
  std::string resume;
  bool no_save = false;
  std::string keep_tensors;
  std::string keep_only;   ///< "failed"; empty: all runs
  std::string keep_bytes;  ///< of all files of --keep-tensors; empty: no limit
  std::string jsonl;       ///< JSON Lines while the run goes on; "-": stdout
  std::string trace;       ///< what ran when
  bool include_host = false;
  bool maps = false;
  bool wide = false;
  std::string slowest;

  /// --json -: nothing but JSON may appear on stdout.
  [[nodiscard]] bool record_on_stdout() const;
  /// --jsonl -: the same.
  [[nodiscard]] bool lines_on_stdout() const { return jsonl == "-"; }
  /// No option says where the report goes.
  [[nodiscard]] bool uses_default_folder() const;
};

/// Writes `folder`/report.json and returns its path. Throws core::IoError.
std::filesystem::path write_report(const std::filesystem::path& folder, const std::string& report);
/// The same with a text that `produce` passes on piece by piece.
std::filesystem::path write_report(const std::filesystem::path& folder,
                                   const std::function<void(const core::TakeText&)>& produce);

void add_output_options(CLI::App& cli, OutputOptions& options);

/// What a resumed run must share with this one.
[[nodiscard]] run::JournalHeader journal_header(const report::RunFacts& facts, const worker::WorkerHello& hello);

/// A case of the whole plan, selected or not.
struct CaseName {
  core::Digest digest;
  std::string id;
};

/// What a run takes over from the one that it resumes.
struct EarlierRun {
  using Record = std::pair<core::Digest, nlohmann::json>;
  std::vector<Record> finished;    ///< have a verdict
  std::vector<Record> unfinished;  ///< have none: they run again if they are selected
  std::vector<std::string> notes;
};

/// The records of a resumed run, and of the earlier one those of cases that are not selected this time, in the order of
/// the plan: another selection must not drop results from the report. `own` are the records of `selected`.
[[nodiscard]] std::vector<nlohmann::json> with_earlier_records(std::vector<nlohmann::json> own,
                                                               std::span<const plan::Case> selected,
                                                               std::span<const CaseName> whole_plan,
                                                               EarlierRun earlier);

/// Where a run keeps its journal and its report, if it keeps them.
class RunFolder {
 public:
  /// The folder given by the options; by default te-numcheck-TIME in the working folder, which start() creates.
  explicit RunFolder(const OutputOptions& options);

  [[nodiscard]] bool resumes() const noexcept { return resumes_; }
  /// Continues the journal; returns what it has of `cases`. Throws like run::Journal::open_for_resume.
  [[nodiscard]] EarlierRun resume(const run::JournalHeader& header, std::span<const CaseName> cases);
  /// Creates folder and journal, unless the run is resumed or keeps nothing.
  void start(const run::JournalHeader& header);
  /// Appends to the journal. A failure does not stop the run; finish() reports it.
  void keep(const core::Digest& digest, const std::string& id, const nlohmann::json& record);
  /// Writes report.json and returns its path, if there is a folder. Throws core::IoError, also if keep() failed before.
  [[nodiscard]] std::optional<std::filesystem::path> finish(const std::function<const std::string&()>& report);
  /// Writes a report that could not be written where it was requested to te-numcheck-TIME/report.json; returns its path.
  [[nodiscard]] static std::filesystem::path rescue(const std::string& report);

 private:
  std::filesystem::path folder_;  ///< empty: keep nothing, or the default folder is not created yet
  bool resumes_ = false;
  bool is_default_ = false;
  std::optional<run::Journal> journal_;
  std::string failure_;
};

}  // namespace numcheck::app
