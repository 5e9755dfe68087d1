// The options of run.
#pragma once

#include <string>

#include "cli_forward.hpp"
#include "execution_options.hpp"
#include "gate_options.hpp"
#include "plans.hpp"
#include "run_output.hpp"
#include "selection.hpp"

namespace numcheck::app {

struct RunOptions {
  PlanOptions plans;
  SelectionOptions selection;
  ExecutionOptions execution;
  OutputOptions output;
  std::string fail_fast;
  std::string budget;
  std::string diagnose;
  std::string contract;
  GateOptions gates;
  std::string baseline;  ///< of a plan by default
};

void add_run_options(CLI::App& cli, RunOptions& options);

}  // namespace numcheck::app
