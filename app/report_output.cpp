#include "report_output.hpp"

#include <nlohmann/json.hpp>

#include "report/views/console.hpp"
#include "screen_text.hpp"

namespace numcheck::app {

void write_view_files(Attempts& attempts, const ViewOptions& options, const nlohmann::json& report) {
  for (const auto& [view, path] : options.files()) {
    if (path != "-") {
      attempts.attempt([&, view = view, path = path] { write_view_file(path, view->render(report)); });
    }
  }
}

void show_report(Context& context, const OutputOptions& options, const nlohmann::json& report,
                 const std::string& path) {
  report::views::ConsoleOptions view{.colour = context.terminal.colour_on_stdout(),
                                     .width = options.wide ? 0 : context.terminal.width(),
                                     .verbosity = context.common.verbosity(),
                                     .report_path = path,
                                     .slowest = slowest_count(options.slowest)};
  if (options.record_on_stdout() || options.lines_on_stdout()) {
    if (options.record_on_stdout()) {
      context.terminal.data(stdout_json(report, 1));
    }
    view.colour = false;
    context.terminal.err(report::views::render_summary(report, view));
  } else {
    context.terminal.out(report::views::render_console(report, view));
  }
}

}  // namespace numcheck::app
