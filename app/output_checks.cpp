#include "output_checks.hpp"

#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "reproduce.hpp"

namespace numcheck::app {
namespace {

namespace fs = std::filesystem;

/// A file that a run writes, and the option that requests it.
struct Output {
  std::string option;
  fs::path path;
};

std::vector<Output> outputs_of(const OutputOptions& options) {
  std::vector<Output> outputs;
  const auto add = [&outputs](const char* option, const fs::path& path) {
    outputs.push_back({fmt::format("{} {}", option, path.string()), path});
  };
  for (const auto& [view, path] : options.files()) {
    if (path != "-") {
      add(view->flag, path);
    }
  }
  if (!options.jsonl.empty() && !options.lines_on_stdout()) {
    add("--jsonl", options.jsonl);
  }
  if (!options.trace.empty()) {
    add("--trace", options.trace);
  }
  for (const auto& [option, folder] : {std::pair("--out", options.out), std::pair("--resume", options.resume)}) {
    for (const char* name : {"report.json", "results.jsonl"}) {
      if (!folder.empty()) {
        outputs.push_back({fmt::format("{} {}", option, folder), fs::path(folder) / name});
      }
    }
  }
  return outputs;
}

/// Whether a link in the path leads to an open file (/dev/stdout, /proc/self/fd/1). Such a file must not be replaced, and
/// output that reaches it in two ways would get mixed up.
bool leads_to_open_file(fs::path path) {
  constexpr int kMaxLinks = 40;
  std::error_code failure;
  for (int links = 0; links < kMaxLinks && fs::is_symlink(fs::symlink_status(path, failure)); ++links) {
    const fs::path folder = fs::weakly_canonical(fs::absolute(path, failure).parent_path(), failure);
    struct statfs facts{};
    if (::statfs(folder.c_str(), &facts) == 0 && facts.f_type == PROC_SUPER_MAGIC) {
      return true;
    }
    path = folder / fs::read_symlink(path, failure);
  }
  return false;
}

bool is_special(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status there = fs::status(path, ignored);
  return fs::exists(there) && !fs::is_regular_file(there) && !fs::is_directory(there);
}

/// The same name in the same folder, links followed.
bool same_name(const fs::path& one, const fs::path& other) {
  const auto folder = [](const fs::path& path) {
    std::error_code ignored;
    const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
    return fs::weakly_canonical(parent, ignored);
  };
  const fs::path left = core::written_path(one), right = core::written_path(other);
  return left.filename() == right.filename() && folder(left) == folder(right);
}

void require_different(const std::vector<Output>& outputs) {
  for (auto one = outputs.begin(); one != outputs.end(); ++one) {
    for (auto other = std::next(one); other != outputs.end(); ++other) {
      if (same_name(one->path, other->path) && !is_special(one->path)) {
        throw core::UsageError(
            fmt::format("{} and {} are the same file; name two different ones", one->option, other->option));
      }
    }
  }
}

/// No file may be one of the sources, even through links.
void require_untouched(const std::vector<Output>& outputs, const std::vector<std::string>& sources,
                       std::string_view why) {
  for (const Output& output : outputs) {
    const std::optional<core::FileIdentity> target = core::identity_of_file(output.path);
    const auto source = std::ranges::find_if(sources, [&target](const std::string& file) {
      return target.has_value() && core::identity_of_file(file) == target;
    });
    if (source != sources.end()) {
      throw core::UsageError(
          fmt::format("{}: this would overwrite {}, {}; name another file", output.option, *source, why));
    }
  }
}

/// No file may take the place of a folder that is about to be created, nor of one above it.
void require_no_folder_there(const std::vector<Output>& outputs, const std::string& option, const fs::path& folder) {
  std::error_code ignored;
  const fs::path made = fs::weakly_canonical(fs::absolute(folder, ignored), ignored);
  for (const Output& output : outputs) {
    const fs::path file = fs::weakly_canonical(fs::absolute(output.path, ignored), ignored);
    if (std::ranges::mismatch(file, made).in1 == file.end()) {
      throw core::UsageError(
          fmt::format("{} is a file, but {} {} needs a folder there", output.option, option, folder.string()));
    }
  }
}

/// Tries to create the file; `option` is what the user typed.
void require_new_file(std::string_view option, const fs::path& path) {
  try {
    core::try_new_file(path);
  } catch (const core::IoError& error) {
    throw core::UsageError(fmt::format("{}: {}", option, error.what()));
  }
}

void require_writable_file(const char* option, const fs::path& path) {
  const std::string argument = fmt::format("{} {}", option, path.string());
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw core::UsageError(fmt::format("{}: there is no folder {}", argument, folder.string()));
  }
  if (fs::is_directory(path, ignored)) {
    throw core::UsageError(fmt::format("{}: that is a folder; name a file in it", argument));
  }
  if (!is_special(path) && leads_to_open_file(path)) {
    throw core::UsageError(fmt::format("{}: that file is already open; --json - writes to stdout", argument));
  }
  if (!is_special(path)) {
    require_new_file(argument, path);
  } else if (fs::is_socket(path, ignored) || ::access(path.c_str(), W_OK) != 0) {
    throw core::UsageError(fmt::format("{}: it cannot be written to", argument));
  }
}

/// Checks the folder, or the nearest existing one above it: missing ones are created when the run begins.
void require_writable_folder(const char* option, const fs::path& folder) {
  const std::string argument = fmt::format("{} {}", option, folder.string());
  std::error_code failure;
  fs::path above = fs::absolute(folder, failure).lexically_normal();
  fs::path longest = "results.jsonl";
  while (!fs::exists(fs::status(above, failure))) {
    if (failure && failure != std::errc::no_such_file_or_directory && failure != std::errc::not_a_directory) {
      throw core::UsageError(fmt::format("{}: {}", argument, failure.message()));
    }
    longest = std::max(longest, above.filename(), [](const fs::path& one, const fs::path& other) {
      return one.native().size() < other.native().size();
    });
    above = above.parent_path();
  }
  if (!fs::is_directory(above, failure)) {
    throw core::UsageError(fmt::format("{}: {} is not a folder", argument, above.string()));
  }
  require_new_file(argument, above / longest);
}

/// That --resume, if given, names a folder.
void require_run_folder(const std::string& resumed) {
  std::error_code ignored;
  const fs::path path = resumed;
  if (resumed.empty() || fs::is_directory(path, ignored)) {
    return;
  }
  if (!fs::exists(path, ignored)) {
    throw core::UsageError(fmt::format("--resume {}: there is no such folder", resumed));
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const bool is_run = fs::exists(folder / "results.jsonl", ignored);
  throw core::UsageError(
      fmt::format("--resume {}: that is a file; name the folder of a run{}", resumed,
                  is_run ? fmt::format(": --resume {}", shell_word(folder.string())) : ", with results.jsonl in it"));
}

}  // namespace

void check_output_options(const OutputOptions& options) {
  if (options.keep_tensors.empty() && !(options.keep_only.empty() && options.keep_bytes.empty())) {
    throw core::UsageError("--keep-only and --keep-bytes say what --keep-tensors keeps; name its folder, too");
  }
  const bool saves = !options.out.empty() || !options.resume.empty();
  if (options.no_save && saves) {
    throw core::UsageError(fmt::format("--no-save contradicts {}", options.out.empty() ? "--resume" : "--out"));
  }
  if (!options.out.empty() && !options.resume.empty()) {
    throw core::UsageError("--out contradicts --resume: a resumed run writes to its own folder");
  }
  for (const auto& [view, path] : options.files()) {
    if (path != "-") {
      require_writable_file(view->flag, path);
    } else if (!view->is_record) {
      throw core::UsageError(fmt::format("{} -: name a file; --json - writes the whole report to stdout", view->flag));
    }
  }
  if (options.lines_on_stdout() && options.record_on_stdout()) {
    throw core::UsageError("--jsonl - and --json -: only one of them can have stdout");
  }
  if (!options.jsonl.empty() && !options.lines_on_stdout()) {
    require_writable_file("--jsonl", options.jsonl);
  }
  if (options.trace == "-") {
    throw core::UsageError("--trace -: name a file");
  }
  if (!options.trace.empty()) {
    require_writable_file("--trace", options.trace);
  }
  std::error_code ignored;
  if (!options.out.empty() && fs::exists(fs::path(options.out) / "report.json", ignored)) {
    throw core::UsageError(fmt::format("--out {0}: it already has a report.json; choose another folder", options.out));
  }
  if (!options.out.empty() && fs::exists(options.out, ignored) && !fs::is_directory(options.out, ignored)) {
    throw core::UsageError(fmt::format("--out {}: that is not a folder", options.out));
  }
  require_run_folder(options.resume);
  for (const auto& [option, folder] : {std::pair("--out", options.out), std::pair("--resume", options.resume),
                                       std::pair("--keep-tensors", options.keep_tensors)}) {
    if (!folder.empty()) {
      require_writable_folder(option, folder);
    }
  }
  if (options.uses_default_folder()) {
    require_new_file("the working folder (name another with --out, or use --no-save)", "te-numcheck-TIME");
  }
  const std::vector<Output> outputs = outputs_of(options);
  require_different(outputs);
  for (const auto& [option, folder] :
       {std::pair("--out", options.out), std::pair("--keep-tensors", options.keep_tensors)}) {
    if (!folder.empty()) {
      require_no_folder_there(outputs, option, folder);
    }
  }
}

void check_requested_files(const std::vector<RequestedFile>& files, const std::vector<std::string>& reports) {
  std::vector<Output> outputs;
  const RequestedFile* on_stdout = nullptr;
  for (const RequestedFile& file : files) {
    if (file.path != "-") {
      require_writable_file(file.option, file.path);
      outputs.push_back({fmt::format("{} {}", file.option, file.path), file.path});
    } else if (on_stdout != nullptr) {
      throw core::UsageError(
          fmt::format("{} - and {} -: only one of them can have stdout", on_stdout->option, file.option));
    } else {
      on_stdout = &file;
    }
  }
  require_different(outputs);
  require_untouched(outputs, reports, "which is read");
}

void require_sources_untouched(const OutputOptions& options, const std::vector<std::string>& files,
                               std::string_view why) {
  require_untouched(outputs_of(options), files, why);
}

}  // namespace numcheck::app
