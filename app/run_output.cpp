#include "run_output.hpp"

#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/strings.hpp"
#include "facts.hpp"
#include "machine/environment.hpp"

namespace numcheck::app {
namespace {

namespace fs = std::filesystem;

/// Creates a folder and its parents.
void create_folder(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) {
    throw core::IoError(fmt::format("cannot create the folder {}: {}", folder.string(), failure.message()));
  }
}

/// Creates te-numcheck-20250131-120000; if other runs of the same second have taken it, with -2, -3, ... appended.
fs::path create_default_folder() {
  constexpr int kMaxNumber = 10'000;
  const std::string base = "te-numcheck-" + utc_stamp();
  for (int number = 1; number <= kMaxNumber; ++number) {
    fs::path folder = number == 1 ? base : fmt::format("{}-{}", base, number);
    std::error_code failure;
    if (fs::create_directory(folder, failure)) {
      return folder;
    }
    if (failure && failure != std::errc::file_exists) {
      throw core::IoError(fmt::format("cannot create the folder {}: {}", folder.string(), failure.message()));
    }
  }
  throw core::IoError(
      fmt::format("{} and its variants up to {}-{} exist; name another folder with --out", base, base, kMaxNumber));
}

}  // namespace

fs::path write_report(const fs::path& folder, const std::function<void(const core::TakeText&)>& produce) {
  create_folder(folder);
  fs::path path = folder / "report.json";
  core::write_file(path, produce);
  return path;
}

fs::path write_report(const fs::path& folder, const std::string& report) {
  return write_report(folder, [&report](const core::TakeText& take) { take(report); });
}

bool OutputOptions::record_on_stdout() const {
  return std::ranges::any_of(files(), [](const ViewFile& file) { return file.view->is_record && file.path == "-"; });
}

bool OutputOptions::uses_default_folder() const {
  const bool has_record = std::ranges::any_of(files(), [](const ViewFile& file) { return file.view->is_record; });
  return out.empty() && resume.empty() && !no_save && !has_record;
}

void add_output_options(CLI::App& cli, OutputOptions& options) {
  const char* group = "Output";
  add_view_options(cli, options);
  cli.add_option(
         "--jsonl", options.jsonl,
         "write JSON Lines to this file as the run goes on: a header, each case when it ends (as in report.json), "
         "a summary; - writes them, and nothing else, to stdout")
      ->type_name("PATH")
      ->group(group);
  cli.add_option("--trace", options.trace,
                 "write what ran when, on which thread or worker, to this file, for Perfetto or chrome://tracing")
      ->type_name("PATH")
      ->group(group);
  cli.add_option("--out", options.out, "folder for report.json and results.jsonl [te-numcheck-TIME]")
      ->type_name("DIR")
      ->group(group);
  cli.add_flag("--no-save", options.no_save, "do not create a folder for the report")->group(group);
  cli.add_option("--resume", options.resume, "continue the run in DIR; cases with a verdict do not run again")
      ->type_name("DIR")
      ->group(group);
  cli.add_option("--keep-tensors", options.keep_tensors,
                 "write inputs, outputs and references of every run to DIR as safetensors; select few cases")
      ->type_name("DIR")
      ->group(group);
  cli.add_option("--keep-only", options.keep_only, "which runs --keep-tensors keeps: failed, or all [all]")
      ->type_name("WHICH")
      ->group(group);
  cli.add_option("--keep-bytes", options.keep_bytes,
                 "keep no more tensors once the files have this size, such as 20GiB [no limit]")
      ->type_name("BYTES")
      ->group(group);
  cli.add_flag("--maps", options.maps,
               "keep maps of errors in the report for all outputs, not only for those that fail or warn")
      ->group(group);
  cli.add_flag("--include-host", options.include_host, "include the host name in the report")->group(group);
  cli.add_flag("--wide", options.wide, "do not cut identifiers to fit the terminal")->group(group);
  add_slowest_option(cli, options.slowest);
}

run::JournalHeader journal_header(const report::RunFacts& facts, const worker::WorkerHello& hello) {
  return {.plan_digest = facts.plan.digest,
          .tool_version = version_text(facts.tool),
          .device = hello.device,
          .libraries = hello.libraries,
          .shard = fmt::format("{}/{}", facts.plan.shard.index, facts.plan.shard.count),
          .environment = machine::numeric_environment(),
          .settings = {{"repeat", std::to_string(facts.settings.repeat)},
                       {"inject", facts.settings.inject},
                       {"inject_case", fmt::format("{}", fmt::join(facts.settings.inject_cases, " "))},
                       {"reference_flops", core::shortest(facts.settings.reference_flops)}}};
}

RunFolder::RunFolder(const OutputOptions& options)
    : folder_(options.resume.empty() ? options.out : options.resume),
      resumes_(!options.resume.empty()),
      is_default_(options.uses_default_folder()) {}

EarlierRun RunFolder::resume(const run::JournalHeader& header, std::span<const CaseName> cases) {
  run::ResumedJournal resumed = run::Journal::open_for_resume(folder_.string(), header);
  journal_.emplace(std::move(resumed.journal));
  EarlierRun earlier{.finished = {}, .unfinished = {}, .notes = std::move(resumed.notes)};
  std::map<core::Digest, std::string_view> names;
  for (const CaseName& c : cases) {
    names.emplace(c.digest, c.id);
  }
  const auto take = [&](const std::vector<run::JournalEntry>& entries, std::vector<EarlierRun::Record>& records) {
    for (const run::JournalEntry& entry : entries) {
      const auto name = names.find(entry.digest);
      if (name != names.end() && name->second == entry.id) {
        records.emplace_back(entry.digest, nlohmann::json::parse(entry.record));
      } else if (name != names.end()) {
        earlier.notes.push_back(fmt::format("{}: case #{} has another identifier there, so it runs again",
                                            journal_->path(), entry.digest.short_hex()));
      }
    }
  };
  take(resumed.finished, earlier.finished);
  take(resumed.unfinished, earlier.unfinished);
  return earlier;
}

std::vector<nlohmann::json> with_earlier_records(std::vector<nlohmann::json> own, std::span<const plan::Case> selected,
                                                 std::span<const CaseName> whole_plan, EarlierRun earlier) {
  std::map<core::Digest, nlohmann::json> records;
  for (std::vector<EarlierRun::Record>* list : {&earlier.finished, &earlier.unfinished}) {
    for (auto& [digest, record] : *list) {
      records.insert_or_assign(digest, std::move(record));
    }
  }
  for (std::size_t i = 0; i < selected.size(); ++i) {
    records.insert_or_assign(selected[i].digest, std::move(own[i]));
  }
  std::vector<nlohmann::json> all;
  all.reserve(records.size());
  for (const CaseName& c : whole_plan) {
    if (const auto found = records.find(c.digest); found != records.end()) {
      all.push_back(std::move(found->second));
      records.erase(found);
    }
  }
  return all;
}

void RunFolder::start(const run::JournalHeader& header) {
  if (resumes_ || journal_.has_value() || (folder_.empty() && !is_default_)) {
    return;
  }
  if (!is_default_) {
    create_folder(folder_);
    journal_.emplace(run::Journal::create(folder_.string(), header));
    return;
  }
  folder_ = create_default_folder();
  try {
    journal_.emplace(run::Journal::create(folder_.string(), header));
  } catch (const core::Error&) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);  // this run has just created it, so the user does not expect it
    throw;
  }
}

std::filesystem::path RunFolder::rescue(const std::string& report) {
  const fs::path path = create_default_folder() / "report.json";
  try {
    core::write_file(path, report);
  } catch (const core::IoError&) {
    std::error_code ignored;
    fs::remove_all(path.parent_path(), ignored);  // as in start()
    throw;
  }
  return path;
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

std::optional<fs::path> RunFolder::finish(const std::function<const std::string&()>& report) {
  if (folder_.empty()) {
    return std::nullopt;  // nothing ran, and the user named no folder
  }
  fs::path path = write_report(folder_, report());
  if (!failure_.empty()) {
    throw core::IoError(failure_);
  }
  return path;
}

}  // namespace numcheck::app
