#include "run_output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "facts.hpp"
#include "files.hpp"

namespace numcheck::app {
namespace {

namespace fs = std::filesystem;

void require_writable_file(const std::string& option, const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw core::UsageError(fmt::format("{} {}: there is no folder {}", option, path.string(), folder.string()));
  }
  if (fs::is_directory(path, ignored)) {
    throw core::UsageError(fmt::format("{} {}: that is a folder; name a file in it", option, path.string()));
  }
  if (::access(folder.c_str(), W_OK) != 0) {
    throw core::UsageError(fmt::format("{} {}: {} cannot be written to", option, path.string(), folder.string()));
  }
}

/// te-numcheck-20250131-120000, with -2, -3, ... where that exists.
fs::path default_folder() {
  const std::string base = "te-numcheck-" + utc_stamp();
  fs::path folder = base;
  for (int number = 2; fs::exists(folder); ++number) {
    folder = fmt::format("{}-{}", base, number);
  }
  return folder;
}

}  // namespace

bool OutputOptions::json_on_stdout() const {
  return std::ranges::find(json, "-") != json.end();
}

void add_output_options(CLI::App& cli, OutputOptions& options) {
  const char* group = "Output";
  cli.add_option("--json", options.json, "write the report there; - puts it, and nothing else, on stdout")
      ->type_name("PATH")
      ->allow_extra_args(false)
      ->group(group);
  cli.add_option("--brief-json", options.brief_json,
                 "write a brief report there, one case a line: digests and tightest gates, as for a baseline")
      ->type_name("PATH")
      ->allow_extra_args(false)
      ->group(group);
  cli.add_option("--out", options.out, "folder for report.json and results.jsonl [te-numcheck-TIME]")
      ->type_name("DIR")
      ->group(group);
  cli.add_flag("--no-save", options.no_save, "leave no folder behind")->group(group);
  cli.add_option("--resume", options.resume, "go on with the run in that folder: cases with a verdict do not run again")
      ->type_name("DIR")
      ->group(group);
  cli.add_option("--keep-tensors", options.keep_tensors,
                 "write inputs, outputs and reference of every run there, as safetensors; select few cases")
      ->type_name("DIR")
      ->group(group);
  cli.add_flag("--include-host", options.include_host, "name this host in the report")->group(group);
}

void check_output_options(const OutputOptions& options) {
  const bool saves = !options.out.empty() || !options.resume.empty();
  if (options.no_save && saves) {
    throw core::UsageError(fmt::format("--no-save contradicts {}", options.out.empty() ? "--resume" : "--out"));
  }
  if (!options.out.empty() && !options.resume.empty()) {
    throw core::UsageError("--out contradicts --resume: a resumed run writes to its own folder");
  }
  for (const std::string& path : options.json) {
    if (path != "-") {
      require_writable_file("--json", path);
    }
  }
  for (const std::string& path : options.brief_json) {
    if (path == "-") {
      throw core::UsageError("--brief-json -: name a file; --json - puts the whole report on stdout");
    }
    require_writable_file("--brief-json", path);
  }
  std::error_code ignored;
  if (!options.out.empty() && fs::exists(fs::path(options.out) / "report.json", ignored)) {
    throw core::UsageError(fmt::format("--out {0}: it has a report.json already; take another folder", options.out));
  }
  if (!options.out.empty() && fs::exists(options.out, ignored) && !fs::is_directory(options.out, ignored)) {
    throw core::UsageError(fmt::format("--out {}: that is no folder", options.out));
  }
  if (!options.resume.empty() && !fs::is_directory(options.resume, ignored)) {
    throw core::UsageError(fmt::format("--resume {}: there is no such folder", options.resume));
  }
}

RunFolder::RunFolder(const OutputOptions& options) : resumes_(!options.resume.empty()) {
  if (resumes_) {
    folder_ = options.resume;
  } else if (!options.out.empty()) {
    folder_ = options.out;
  } else if (!options.no_save && options.json.empty()) {
    folder_ = default_folder();
    is_default_ = true;
  }
}

std::vector<std::pair<core::Digest, nlohmann::json>> RunFolder::resume(const run::JournalHeader& header,
                                                                       std::vector<std::string>& notes) {
  run::ResumedJournal resumed = run::Journal::open_for_resume(folder_.string(), header);
  journal_.emplace(std::move(resumed.journal));
  std::ranges::copy(resumed.notes, std::back_inserter(notes));
  std::vector<std::pair<core::Digest, nlohmann::json>> done;
  done.reserve(resumed.finished.size());
  for (const run::JournalEntry& entry : resumed.finished) {
    done.emplace_back(entry.digest, nlohmann::json::parse(entry.record));
  }
  return done;
}

void RunFolder::start(const run::JournalHeader& header) {
  if (folder_.empty() || resumes_) {
    return;
  }
  std::error_code failure;
  fs::create_directories(folder_, failure);
  if (failure) {
    throw core::IoError(fmt::format("cannot make the folder {}: {}", folder_.string(), failure.message()));
  }
  journal_.emplace(run::Journal::create(folder_.string(), header));
}

void RunFolder::keep(const core::Digest& digest, const std::string& id, const nlohmann::json& record) {
  if (!journal_.has_value() || !failure_.empty()) {
    return;
  }
  try {
    journal_->append(digest, id, record);
  } catch (const core::Error& error) {
    failure_ = error.what();
  }
}

std::optional<fs::path> RunFolder::finish(const std::string& report) {
  if (folder_.empty() || (is_default_ && !journal_.has_value())) {
    return std::nullopt;  // nothing ran: no folder for it unless the user named one
  }
  std::error_code ignored;
  fs::create_directories(folder_, ignored);
  fs::path path = folder_ / "report.json";
  write_file(path, report);
  if (!failure_.empty()) {
    throw core::IoError(failure_);
  }
  return path;
}

std::string report_text(const nlohmann::json& report) {
  return report.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace numcheck::app
