#include "view_files.hpp"

#include <cstdlib>

#include <CLI/CLI.hpp>

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

void add_view_options(CLI::App& cli, ViewOptions& options) {
  for (std::size_t i = 0; i < options.paths.size(); ++i) {
    const report::views::View& view = report::views::all_views()[i];
    cli.add_option(view.flag, options.paths[i], view.doc)->type_name("PATH")->allow_extra_args(false)->group("Output");
  }
}

void write_view_file(const std::string& path, const std::string& text) {
  const char* summary = std::getenv("GITHUB_STEP_SUMMARY");
  summary != nullptr&& path == summary ? core::append_file(path, text) : core::write_file(path, text);
}

}  // namespace numcheck::app
