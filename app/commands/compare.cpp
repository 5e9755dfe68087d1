// te-numcheck compare: a regression verdict between two reports; needs no device.
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "arguments.hpp"
#include "command.hpp"
#include "commands/commands.hpp"
#include "core/file.hpp"
#include "files.hpp"
#include "output_checks.hpp"
#include "report/comparison.hpp"
#include "report/views/comparison_views.hpp"
#include "view_files.hpp"

namespace numcheck::app::commands {
namespace {

const CommandInfo kInfo{
    .name = "compare",
    .summary = "what changed between two reports, full or brief; exit code 1 for a regression",
    .usage = "[OPTIONS] BASE NEW",
    .examples = {"compare baselines/h200.json report.json",
                 "compare old.json new.json --allow-worse 1.5 --markdown changes.md"},
    .exit_codes = {0, 1, 2, 3, 4},
    .takes_files = true,
};

class CompareCommand : public Command {
 public:
  [[nodiscard]] const CommandInfo& info() const override { return kInfo; }

  void add_options(CLI::App& cli) override {
    cli.add_option("reports", reports_, "the base report, then the new one")->type_name("REPORT");
    cli.add_option("--allow-worse", allow_worse_, "growth of error/limit that is no regression [1.1]")
        ->type_name("RATIO");
    cli.add_flag("--allow-missing", options_.allow_missing, "cases that do not run any more are no regression");
    cli.add_option("--json", json_, "write the comparison to this file; - writes it, and nothing else, to stdout")
        ->type_name("PATH")
        ->group("Output");
    cli.add_option("--markdown", markdown_,
                   "write a summary for a pull request to this file; $GITHUB_STEP_SUMMARY is appended to")
        ->type_name("PATH")
        ->group("Output");
  }

  [[nodiscard]] core::ExitCode run(Context& context) override {
    if (reports_.size() != 2) {
      throw core::UsageError(fmt::format("compare needs two reports, BASE and NEW, not {}", reports_.size()));
    }
    if (!allow_worse_.empty()) {
      constexpr double kMost = 1e6;
      options_.allow_worse = parse_number(allow_worse_, "--allow-worse", 1, kMost);
    }
    check_requested_files(requested_files(), reports_);
    const nlohmann::json base = read_brief(reports_[0]), now = read_brief(reports_[1]);
    const report::Comparison comparison = report::compare_reports(base, now, options_);
    write(context, comparison);
    return comparison.regressions > 0 ? core::ExitCode::numerics_differ
           : comparison.verified == 0 ? core::ExitCode::nothing_verified
                                      : core::ExitCode::success;
  }

 private:
  [[nodiscard]] std::vector<RequestedFile> requested_files() const {
    if (markdown_ == "-") {
      throw core::UsageError("--markdown -: name a file; --json - writes the comparison to stdout");
    }
    std::vector<RequestedFile> files;
    for (const auto& [option, path] : {std::pair("--json", json_), std::pair("--markdown", markdown_)}) {
      if (!path.empty()) {
        files.push_back({option, path});
      }
    }
    return files;
  }

  void write(Context& context, const report::Comparison& comparison) const {
    Attempts attempts;
    if (!json_.empty()) {
      const std::string json =
          report::comparison_json(comparison).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
      attempts.attempt([&] { json_ == "-" ? context.terminal.data(json) : core::write_file(json_, json); });
    }
    if (!markdown_.empty()) {
      attempts.attempt([&] { write_view_file(markdown_, report::views::comparison_markdown(comparison)); });
    }
    if (json_ != "-") {
      context.terminal.out(report::views::render_comparison(
          comparison, {context.terminal.colour_on_stdout(), context.terminal.width(), context.common.verbosity(), ""}));
    }
    attempts.finish();
  }

  std::vector<std::string> reports_;
  report::ComparisonOptions options_;
  std::string allow_worse_, json_, markdown_;
};

}  // namespace

std::unique_ptr<Command> make_compare_command() {
  return std::make_unique<CompareCommand>();
}

}  // namespace numcheck::app::commands
