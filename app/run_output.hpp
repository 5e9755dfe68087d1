// What a run writes: the folder with the journal and the report, and files such as --json.
#pragma once

#include <filesystem>
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
  std::string jsonl;  ///< JSON Lines while the run goes on; "-": stdout
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

void add_output_options(CLI::App& cli, OutputOptions& options);

/// Where a run keeps its journal and its report, if it keeps them.
class RunFolder {
 public:
  /// The folder given by the options; by default te-numcheck-TIME in the working folder, which start() creates.
  explicit RunFolder(const OutputOptions& options);

  [[nodiscard]] bool resumes() const noexcept { return resumes_; }
  /// Continues the journal; returns the finished records of `cases`. Throws like run::Journal::open_for_resume.
  [[nodiscard]] std::vector<std::pair<core::Digest, nlohmann::json>> resume(const run::JournalHeader& header,
                                                                            std::span<const plan::Case> cases,
                                                                            std::vector<std::string>& notes);
  /// Creates folder and journal, unless the run is resumed or keeps nothing.
  void start(const run::JournalHeader& header);
  /// Appends to the journal. A failure does not stop the run; finish() reports it.
  void keep(const core::Digest& digest, const std::string& id, const nlohmann::json& record);
  /// Writes report.json and returns its path, if there is a folder. Throws core::IoError, also if keep() failed before.
  [[nodiscard]] std::optional<std::filesystem::path> finish(const std::string& report);

 private:
  std::filesystem::path folder_;  ///< empty: keep nothing, or the default folder is not created yet
  bool resumes_ = false;
  bool is_default_ = false;
  std::optional<run::Journal> journal_;
  std::string failure_;
};

}  // namespace numcheck::app
