// What a run writes: the folder with journal and report, and --json files.
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
#include "report/views/view.hpp"
#include "run/journal.hpp"
#include "worker/workers.hpp"

namespace numcheck::app {

/// A file that a run is to write, and what of the report.
struct ViewFile {
  const report::views::View* view;
  std::string path;  ///< "-": stdout, for the record alone
};

struct OutputOptions {
  std::vector<std::vector<std::string>> paths =
      std::vector<std::vector<std::string>>(report::views::all_views().size());  ///< parallel to all_views()
  std::string out;
  std::string resume;
  bool no_save = false;
  std::string keep_tensors;
  bool include_host = false;

  [[nodiscard]] std::vector<ViewFile> files() const;
  /// --json -: nothing but JSON may appear on stdout.
  [[nodiscard]] bool record_on_stdout() const;
  /// Nobody said where the report goes.
  [[nodiscard]] bool makes_default_folder() const;
};

void add_output_options(CLI::App& cli, OutputOptions& options);

/// Where a run keeps its journal and its report; without a folder it keeps nothing.
class RunFolder {
 public:
  /// The folder that the options ask for; by default te-numcheck-TIME in the working folder, which start() makes.
  explicit RunFolder(const OutputOptions& options);

  [[nodiscard]] bool resumes() const noexcept { return resumes_; }
  /// Continues the journal; returns the finished records of `cases`. Throws as run::Journal::open_for_resume.
  [[nodiscard]] std::vector<std::pair<core::Digest, nlohmann::json>> resume(const run::JournalHeader& header,
                                                                            std::span<const plan::Case> cases,
                                                                            std::vector<std::string>& notes);
  /// Creates folder and journal, unless the run is resumed or keeps nothing.
  void start(const run::JournalHeader& header);
  /// Appends to the journal. A failure does not stop the run: it is told at the end.
  void keep(const core::Digest& digest, const std::string& id, const nlohmann::json& record);
  /// Writes report.json; returns its path, or nothing. Throws core::IoError, also for an earlier failure of keep().
  [[nodiscard]] std::optional<std::filesystem::path> finish(const std::string& report);

 private:
  std::filesystem::path folder_;  ///< empty: keep nothing, or a default folder that is not made yet
  bool resumes_ = false;
  bool is_default_ = false;
  std::optional<run::Journal> journal_;
  std::string failure_;
};

}  // namespace numcheck::app
