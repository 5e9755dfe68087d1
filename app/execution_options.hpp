// Options of commands that run cases: run and exec.
#pragma once

#include <string>
#include <vector>

#include "cli_forward.hpp"
#include "run/pipeline.hpp"

namespace numcheck::app {

struct ExecutionOptions {
  std::string device = "auto";
  std::string lib_dir;
  std::vector<std::string> te_libs;
  std::string jobs;
  std::string timeout;
  std::string memory;
  std::string reference_flops;
  std::string repeat;
  std::string inject;
  std::vector<std::string> inject_cases;  ///< identifiers or prefixes of digests; only for `run`
  bool in_process = false;
};

void add_device_options(CLI::App& cli, ExecutionOptions& options);
void add_execution_options(CLI::App& cli, ExecutionOptions& options);

/// Workers, memory and injection from the options; throws core::UsageError.
[[nodiscard]] run::PipelineOptions pipeline_options(const ExecutionOptions& options);

}  // namespace numcheck::app
