#include "report_output.hpp"

#include <nlohmann/json.hpp>

#include "report/views/console.hpp"
#include "screen_text.hpp"

namespace numcheck::app {

ProduceRecord record_of(const nlohmann::json& report) {
  return [&report](report::Characters characters, const core::TakeText& take) {
    const nlohmann::json& cases = report.at("cases");
    report::write_report_text(
        report, [&](std::size_t i) { return report::record_text(cases[i], characters); }, characters, take);
  };
}

void write_view_files(Attempts& attempts, const ViewOptions& options, const nlohmann::json& report,
                      const ProduceRecord& record) {
  for (const auto& [view, path] : options.files()) {
    if (path == "-") {
      continue;
    }
    attempts.attempt([&, view = view, path = path] {
      if (view->is_record) {
        write_view_file(path, [&](const core::TakeText& take) { record(report::Characters::unicode, take); });
      } else {
        write_view_file(path, view->render(report));
      }
    });
  }
}

void show_report(Context& context, const OutputOptions& options, const nlohmann::json& report, const std::string& path,
                 const ProduceRecord& record) {
  report::views::ConsoleOptions view{.colour = context.terminal.colour_on_stdout(),
                                     .width = options.wide ? 0 : context.terminal.width(),
                                     .verbosity = context.common.verbosity(),
                                     .report_path = path,
                                     .slowest = slowest_count(options.slowest)};
  if (options.record_on_stdout() || options.lines_on_stdout()) {
    if (options.record_on_stdout()) {
      record(report::Characters::ascii,
             [&context](std::string_view piece) { context.terminal.data(stdout_text(std::string(piece))); });
    }
    view.colour = false;
    context.terminal.err(report::views::render_summary(report, view));
  } else {
    context.terminal.out(report::views::render_console(report, view));
  }
}

}  // namespace numcheck::app
