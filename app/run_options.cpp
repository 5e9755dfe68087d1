#include "run_options.hpp"

#include <CLI/CLI.hpp>

#include "contract_option.hpp"

namespace numcheck::app {

void add_run_options(CLI::App& cli, RunOptions& options) {
  add_plan_options(cli, options.plans);
  add_selection_options(cli, options.selection);
  add_device_options(cli, options.execution);
  add_execution_options(cli, options.execution);
  cli.add_option("--inject-case", options.execution.inject_cases, "plant the fault of --inject only in this case")
      ->type_name("ID|DIGEST")
      ->allow_extra_args(false)
      ->group("Execution");
  cli.add_option("--budget", options.budget,
                 "start no case after this time, such as 90s or 10m; the cheapest cases of each op and mode run "
                 "first")
      ->type_name("TIME")
      ->group("Selection");
  cli.add_flag("-x{1},--fail-fast{1}", options.fail_fast, "stop after the first failure, or the first N")
      ->type_name("N")
      ->group("Execution");
  cli.add_option("--diagnose", options.diagnose,
                 "say why runs failed, as diagnose does: never, failed, or all, which includes those whose cause is "
                 "known already [the first three on a terminal]")
      ->type_name("WHICH")
      ->group("Output");
  add_output_options(cli, options.output);
  add_contract_option(cli, options.contract);
  add_gate_options(cli, options.gates);
  cli.add_option("--baseline", options.baseline,
                 "compare with this report, as compare does, and fail for a regression; only cases that were selected "
                 "count [the plan's \"baseline\"]")
      ->type_name("PATH")
      ->group("Gates");
}

}  // namespace numcheck::app
