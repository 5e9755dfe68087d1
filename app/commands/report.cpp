// te-numcheck report: views of a report that was written earlier; needs no device.
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "commands/commands.hpp"
#include "files.hpp"
#include "output_checks.hpp"
#include "report/parse_report.hpp"
#include "report/views/console.hpp"
#include "view_files.hpp"

namespace numcheck::app::commands {
namespace {

const CommandInfo kInfo{
    .name = "report",
    .summary = "show a report again, or write other views of it",
    .usage = "[OPTIONS] REPORT",
    .examples = {"report te-numcheck-20250131-120000/report.json -v",
                 "report report.json --junit junit.xml --csv results.csv"},
    .exit_codes = {0, 2, 3},
    .takes_files = true,
};

class ReportCommand : public Command {
 public:
  [[nodiscard]] const CommandInfo& info() const override { return kInfo; }

  void add_options(CLI::App& cli) override {
    cli.add_option("report", reports_, "a full or a brief report")->type_name("REPORT");
    add_view_options(cli, views_);
    add_slowest_option(cli, slowest_);
  }

  [[nodiscard]] core::ExitCode run(Context& context) override {
    if (reports_.size() != 1) {
      throw core::UsageError(fmt::format("report needs one report, not {}", reports_.size()));
    }
    const std::vector<ViewFile> files = views_.files();
    (void)slowest_count(slowest_);
    std::vector<RequestedFile> requested;
    for (const auto& [view, path] : files) {
      requested.push_back({view->flag, path});
    }
    check_requested_files(requested, reports_);
    const nlohmann::json report = read_report(reports_[0]);
    if (report.value("brief", false)) {
      require_views_of_brief(files, reports_[0]);
      if (files.empty()) {
        refuse_brief(reports_[0]);
      }
    }
    try {
      write(context, report, files);
    } catch (const nlohmann::json::exception& error) {
      throw core::IoError(fmt::format("{} lacks what is shown: {}", reports_[0], report::missing_text(error)));
    }
    return core::ExitCode::success;
  }

 private:
  void write(Context& context, const nlohmann::json& report, const std::vector<ViewFile>& files) const {
    Attempts attempts;
    for (const auto& [view, path] : files) {
      const std::string text = view->render(report);
      attempts.attempt([&, path = path] { path == "-" ? context.terminal.data(text) : write_view_file(path, text); });
    }
    attempts.finish();
    if (files.empty()) {
      context.terminal.out(report::views::render_console(report, {.colour = context.terminal.colour_on_stdout(),
                                                                  .width = context.terminal.width(),
                                                                  .verbosity = context.common.verbosity(),
                                                                  .slowest = slowest_count(slowest_)}));
    }
  }

  std::vector<std::string> reports_;
  ViewOptions views_;
  std::string slowest_;
};

}  // namespace

std::unique_ptr<Command> make_report_command() {
  return std::make_unique<ReportCommand>();
}

}  // namespace numcheck::app::commands
