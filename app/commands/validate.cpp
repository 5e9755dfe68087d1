// te-numcheck validate: parse, check and count; needs no device.
#include <algorithm>
#include <map>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "baseline.hpp"
#include "catalog.hpp"
#include "command.hpp"
#include "commands/commands.hpp"
#include "core/counted.hpp"
#include "core/printable.hpp"
#include "core/strings.hpp"
#include "plans.hpp"
#include "prepare/group.hpp"
#include "prepare/grouping.hpp"

namespace numcheck::app::commands {
namespace {

const CommandInfo kInfo{
    .name = "validate",
    .summary = "parse and check plans, count their cases; needs no device",
    .usage = "[OPTIONS] PLAN...",
    .examples = {"validate configs/plans/quick.json", "validate my-plan.json --max-cases 1000"},
    .exit_codes = {0, 2, 4},
    .takes_files = true,
};

class ValidateCommand : public Command {
 public:
  [[nodiscard]] const CommandInfo& info() const override { return kInfo; }

  void add_options(CLI::App& cli) override { add_plan_options(cli, options_); }

  [[nodiscard]] core::ExitCode run(Context& context) override {
    options_.reports_known_issues = true;
    const plan::Plan plan = load_plans(context, options_, "validate");
    static_cast<void>(Baseline::load("", plan));
    if (plan.cases.empty()) {
      context.terminal.err(
          fmt::format("{}: no case is left to run: \"exclude\" drops all of them\n", core::printable(plan.name)));
      return core::ExitCode::nothing_verified;
    }
    std::map<std::string, std::size_t> by_kind;
    std::uint64_t largest = 0;
    double flops = 0;
    for (const plan::Case& c : plan.cases) {
      ++by_kind[fmt::format("{} {} {}", c.op->name, c.mode->name, c.backend)];
      const bool streams = prepare::may_stream(c, *prepare::find_row(catalog(), c.op->name));
      largest = std::max(largest, prepare::estimate_case_bytes(c, streams));
      flops += c.op->flops(c.params);
    }
    const std::size_t groups = prepare::count_groups(plan.cases);
    std::string text;
    if (!context.common.quiet) {
      for (const auto& [kind, count] : by_kind) {
        text += fmt::format("{:>6}  {}\n", count, core::printable(kind));
      }
      text +=
          fmt::format("largest case needs {} of host memory; all cases together are {:.3g} floating-point operations\n",
                      core::human_bytes(largest), flops);
    }
    text += fmt::format("{}: {} in {}; the plan is valid\n", core::printable(plan.name),
                        core::counted(static_cast<double>(plan.cases.size()), "case"),
                        groups == 1 ? "one group" : fmt::format("{} groups that share inputs and references", groups));
    context.terminal.out(text);
    return core::ExitCode::success;
  }

 private:
  PlanOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_validate_command() {
  return std::make_unique<ValidateCommand>();
}

}  // namespace numcheck::app::commands
