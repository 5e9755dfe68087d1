// te-numcheck compare: a regression verdict between two reports; needs no device.
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

double parse_ratio(const std::string& text) {
  constexpr double kMost = 1e6;
  char* end = nullptr;
  const double ratio = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(ratio >= 1 && ratio <= kMost)) {
    throw core::UsageError(fmt::format("--allow-worse {}: a number from 1 to 1e6 is expected", text));
  }
  return ratio;
}

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
    options_.allow_worse = allow_worse_.empty() ? options_.allow_worse : parse_ratio(allow_worse_);
    for (const auto& [option, path] : {std::pair("--json", json_), std::pair("--markdown", markdown_)}) {
      if (path == "-" && std::string_view(option) == "--markdown") {
        throw core::UsageError("--markdown -: name a file; --json - writes the comparison to stdout");
      }
      if (!path.empty() && path != "-") {
        require_writable_file(option, path);
        require_not_a_source(option, path);
      }
    }
    const nlohmann::json base = read_report(reports_[0]), now = read_report(reports_[1]);
    const report::Comparison comparison = report::compare_reports(base, now, options_);
    write(context, comparison);
    return comparison.regressions > 0 ? core::ExitCode::numerics_differ
           : comparison.joined == 0   ? core::ExitCode::nothing_verified
                                      : core::ExitCode::success;
  }

 private:
  void require_not_a_source(const char* option, const std::string& path) const {
    for (const std::string& report : reports_) {
      const auto source = core::identity_of_file(report);
      if (source.has_value() && source == core::identity_of_file(path)) {
        throw core::UsageError(fmt::format("{} {}: this would overwrite a report that is compared", option, path));
      }
    }
  }

  void write(Context& context, const report::Comparison& comparison) const {
    const std::string json =
        report::comparison_json(comparison).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (!json_.empty() && json_ != "-") {
      core::write_file(json_, json);
    }
    if (!markdown_.empty()) {
      write_view_file(markdown_, report::views::comparison_markdown(comparison));
    }
    if (json_ == "-") {
      context.terminal.data(json);
    } else {
      context.terminal.out(report::views::render_comparison(
          comparison, {context.terminal.colour_on_stdout(), context.terminal.width(), context.common.verbosity(), ""}));
    }
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
