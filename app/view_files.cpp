#include "view_files.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arguments.hpp"
#include "core/file.hpp"

namespace numcheck::app {

std::vector<ViewFile> ViewOptions::files() const {
  std::vector<ViewFile> files;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    for (const std::string& path : paths[i]) {
      files.push_back({&report::views::all_views()[i], path});
    }
  }
  return files;
}

void refuse_brief(const std::string& name) {
  std::vector<std::string_view> flags;
  for (const report::views::View& view : report::views::all_views()) {
    if (view.of_brief) {
      flags.emplace_back(view.flag);
    }
  }
  throw core::UsageError(fmt::format("{} is a brief report, which has only {}", name, fmt::join(flags, ", ")));
}

void require_views_of_brief(const std::vector<ViewFile>& files, const std::string& name) {
  if (std::ranges::any_of(files, [](const ViewFile& file) { return !file.view->of_brief; })) {
    refuse_brief(name);
  }
}

void add_view_options(CLI::App& cli, ViewOptions& options) {
  for (std::size_t i = 0; i < options.paths.size(); ++i) {
    const report::views::View& view = report::views::all_views()[i];
    cli.add_option(view.flag, options.paths[i], view.doc)->type_name("PATH")->allow_extra_args(false)->group("Output");
  }
}

void add_slowest_option(CLI::App& cli, std::string& slowest) {
  cli.add_option("--slowest", slowest, "list the N cases that took longest, with the times of their stages")
      ->type_name("N")
      ->group("Output");
}

std::size_t slowest_count(const std::string& slowest) {
  return slowest.empty() ? 0 : parse_count(slowest, "--slowest", 1, UINT32_MAX);
}

void write_view_file(const std::string& path, const std::function<void(const core::TakeText&)>& produce) {
  const char* summary = std::getenv("GITHUB_STEP_SUMMARY");
  std::error_code ignored;  // of a file that does not exist yet
  const bool appends = summary != nullptr && (path == summary || std::filesystem::equivalent(path, summary, ignored));
  if (appends) {
    produce([&path](std::string_view piece) { core::append_file(path, piece); });
  } else {
    core::write_file(path, produce);
  }
}

void write_view_file(const std::string& path, const std::string& text) {
  write_view_file(path, [&text](const core::TakeText& take) { take(text); });
}

}  // namespace numcheck::app
