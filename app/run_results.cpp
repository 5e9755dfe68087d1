#include "run_results.hpp"

#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/report_text.hpp"
#include "report_output.hpp"

namespace numcheck::app {
namespace {

void show(Context& context, const ResultOptions& options, nlohmann::json& report, const std::string& path) {
  if (!options.output.record_on_stdout()) {
    reproduce_as_typed(report, options.command);
  }
  show_report(context, options.output, report, path, record_of(report));
}

/// Where the report went instead, as the end of the sentence about what could not be written.
std::string rescued(const std::string& text) {
  try {
    return fmt::format("; the report is in {} instead", RunFolder::rescue(text).string());
  } catch (const core::IoError& error) {
    return fmt::format("; nor is there a copy of the report: {}", error.what());
  }
}

}  // namespace

void write_results(Context& context, const ResultOptions& options, RunFolder& folder, nlohmann::json& report) {
  const std::string text = report::report_text(report);
  std::optional<std::filesystem::path> saved;
  bool kept = false;
  Attempts attempts;
  attempts.attempt([&] {
    saved = folder.finish(text);
    kept = saved.has_value();
  });
  attempts.attempt(options.finish_lines);
  for (const auto& [view, path] : options.output.files()) {
    if (path != "-") {
      attempts.attempt([&, view = view, path = path] {
        write_view_file(path, view->is_record ? text : view->render(report));
        kept = kept || view->is_record;
      });
    }
  }
  attempts.attempt([&] {
    show(context, options, report, saved.has_value() ? saved->string() : "");
    kept = kept || options.output.record_on_stdout();
  });
  const bool lost = attempts.failed() && !kept && !options.output.no_save;
  attempts.finish(lost ? rescued(text) : "");
}

}  // namespace numcheck::app
