#include "execution_options.hpp"

#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arguments.hpp"
#include "catalog.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "core/strings.hpp"
#include "kernels/sim/perturbation.hpp"
#include "machine/device.hpp"
#include "te_libraries.hpp"

namespace numcheck::app {
namespace {

/// The computing thread cannot be freed, so the process ends. Finished cases are in the journal.
[[noreturn]] void end_stuck(const std::string& sentence) {
  fmt::print(stderr, "\nerror: {}; the run ends here, and --resume continues with the rest\n",
             core::printable(sentence));
  ::_exit(static_cast<int>(core::ExitCode::environment));
}

machine::DeviceChoice device_of(const std::string& text) {
  const std::string_view option = set_by(text, "--device", "TE_NUMCHECK_DEVICE");
  if (text.find(',') != std::string::npos) {
    throw core::UsageError(
        fmt::format("{}: \"{}\" names several devices, but a run uses one; start one run for each", option, text));
  }
  try {
    return machine::parse_device(text);
  } catch (const core::UsageError& error) {
    throw core::UsageError(fmt::format("{}: {}", option, error.what()));
  }
}

/// Of --reference-flops: "1.5e12".
double parse_flops(const std::string& text) {
  double flops = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), flops);
  if (error != std::errc() || end != text.data() + text.size() || !(flops >= 1) || std::isinf(flops)) {
    throw core::UsageError(
        fmt::format("--reference-flops: \"{}\" is not a number of operations of at least 1, such as 1.5e12", text));
  }
  return flops;
}

}  // namespace

void add_device_options(CLI::App& cli, ExecutionOptions& options) {
  const char* group = "Device";
  std::vector<std::string> simulated;
  for (const int sm : machine::simulated_architectures()) {
    simulated.push_back(fmt::format("sm_{}", sm));
  }
  cli.add_option("--device", options.device,
                 fmt::format("auto, cuda:N or sim:{}; auto uses sim:sm_90 only if there is no NVIDIA driver",
                             fmt::join(simulated, "|")))
      ->type_name("DEVICE")
      ->envname("TE_NUMCHECK_DEVICE")
      ->group(group);
  cli.add_option("--lib-dir", options.lib_dir, "look for cuBLASLt and cuDNN there first")
      ->type_name("DIR")
      ->envname("TE_NUMCHECK_LIB_DIR")
      ->group(group);
  add_te_lib_option(cli, options.te_libs);
}

void add_execution_options(CLI::App& cli, ExecutionOptions& options) {
  const char* group = "Execution";
  cli.add_option("--jobs", options.jobs, "workers per device and environment [1]")
      ->type_name("N")
      ->envname("TE_NUMCHECK_JOBS")
      ->group(group);
  cli.add_option(
         "--timeout", options.timeout,
         "time limit per case, such as 500ms, 60s or 2m, for its run on the device and for its reference each [120s]")
      ->type_name("TIME")
      ->group(group);
  cli.add_option("--memory", options.memory,
                 "host memory for tensors, such as 8GiB [60 % of what this process may use]")
      ->type_name("BYTES")
      ->group(group);
  cli.add_option(
         "--reference-flops", options.reference_flops,
         "gemm: references of more operations cover a sample of the outputs, and a projection the rest [1.5e12]; "
         "those of other ops are never sampled: --timeout ends them, and what cannot end in time is skipped")
      ->type_name("N")
      ->group(group);
  cli.add_option("--repeat", options.repeat, "runs per algorithm; their outputs must be bit-identical [2]")
      ->type_name("N")
      ->group(group);
  cli.add_flag("--in-process", options.in_process,
               "no worker processes, for debuggers and sanitizers; refuses cases that set environment variables")
      ->group(group);
  cli.add_option("--inject", options.inject, "plant a fault to see that it is caught; see te-numcheck list faults")
      ->type_name("FAULT")
      ->group(group);
}

run::PipelineOptions pipeline_options(const ExecutionOptions& options) {
  constexpr std::uint64_t kMaxJobs = 64;
  constexpr std::uint64_t kMaxRepeats = 10'000;
  constexpr double kMaxTimeout_s = 86'400;                      // as in plans
  constexpr std::uint64_t kMaxMemory = std::uint64_t{1} << 50;  // sums of such sizes do not overflow
  run::PipelineOptions pipeline;
  pipeline.on_stuck = &end_stuck;
  worker::WorkerOptions& workers = pipeline.workers;
  workers.device = device_of(options.device);
  workers.in_process = options.in_process;
  workers.worker_argv = {"exec", "--worker", "--device", workers.device.text()};
  if (!options.lib_dir.empty()) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(options.lib_dir, ignored)) {
      throw core::UsageError(fmt::format("{}: {} is not a folder",
                                         set_by(options.lib_dir, "--lib-dir", "TE_NUMCHECK_LIB_DIR"), options.lib_dir));
    }
    workers.worker_argv.insert(workers.worker_argv.end(), {"--lib-dir", options.lib_dir});
  }
  require_te_libs(options.te_libs);
  if (options.te_libs.size() > 1 && options.in_process) {
    throw core::UsageError("--in-process: one process cannot load two TransformerEngine libraries");
  }
  for (const std::string& path : options.te_libs) {
    // Every worker knows all of them, so that names mean the same everywhere, and loads the one that its cases name.
    workers.worker_argv.insert(workers.worker_argv.end(), {"--te-lib", path});
  }
  if (!options.jobs.empty()) {
    workers.workers_per_environment =
        static_cast<int>(parse_count(options.jobs, set_by(options.jobs, "--jobs", "TE_NUMCHECK_JOBS"), 1, kMaxJobs));
  }
  if (!options.timeout.empty()) {
    workers.timeout_s = parse_time_s(options.timeout, "--timeout", kMaxTimeout_s);
  }
  if (!options.memory.empty()) {
    pipeline.memory_bytes = core::parse_bytes(options.memory, "--memory");
    if (pipeline.memory_bytes == 0 || pipeline.memory_bytes > kMaxMemory) {
      throw core::UsageError(fmt::format("--memory: \"{}\" is not a size from 1 byte to {}", options.memory,
                                         core::human_bytes(kMaxMemory)));
    }
  }
  if (!options.reference_flops.empty()) {
    pipeline.reference_flops_limit = parse_flops(options.reference_flops);
  }
  if (!options.repeat.empty()) {
    workers.execute.repeats = static_cast<int>(parse_count(options.repeat, "--repeat", 1, kMaxRepeats));
  }
  if (!options.inject.empty()) {
    std::vector<std::string_view> names;
    for (const kernels::FaultInfo& fault : faults()) {
      names.push_back(fault.name);
    }
    if (!kernels::sim::perturbation_named(options.inject, 0)) {
      require_known(options.inject, "fault", names);
    }
    workers.execute.inject = options.inject;
  }
  workers.factory = executor_factory(options.lib_dir, options.te_libs);
  return pipeline;
}

}  // namespace numcheck::app
