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

/// Made when it is first needed: it takes 0.2 ms per case.
class ReportText {
 public:
  explicit ReportText(const nlohmann::json& report) : report_(report) {}

  const std::string& get() {
    if (!text_.has_value()) {
      text_ = report::report_text(report_);
    }
    return *text_;
  }

 private:
  const nlohmann::json& report_;
  std::optional<std::string> text_;
};

/// Where the report went instead, as the end of the sentence about what could not be written.
std::string rescued(ReportText& text) {
  try {
    return fmt::format("; the report is in {} instead", RunFolder::rescue(text.get()).string());
  } catch (const core::IoError& error) {
    return fmt::format("; nor is there a copy of the report: {}", error.what());
  }
}

}  // namespace

void write_results(Context& context, const ResultOptions& options, RunFolder& folder, nlohmann::json& report) {
  ReportText text(report);
  std::optional<std::filesystem::path> saved;
  bool kept = false;
  Attempts attempts;
  attempts.attempt([&] {
    saved = folder.finish([&text]() -> const std::string& { return text.get(); });
    kept = saved.has_value();
  });
  attempts.attempt(options.finish_lines);
  for (const auto& [view, path] : options.output.files()) {
    if (path != "-") {
      attempts.attempt([&, view = view, path = path] {
        write_view_file(path, view->is_record ? text.get() : view->render(report));
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
