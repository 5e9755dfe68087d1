// te-numcheck doctor: what this machine offers, what is missing and how to get it.
#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "catalog.hpp"
#include "command.hpp"
#include "commands/commands.hpp"
#include "core/isa.hpp"
#include "core/parallel.hpp"
#include "core/printable.hpp"
#include "core/strings.hpp"
#include "execution_options.hpp"
#include "inspect_apart.hpp"
#include "kernels/loader/probe.hpp"
#include "kernels/transformer_engine/versions.hpp"
#include "machine/build_info.hpp"
#include "machine/environment.hpp"
#include "machine/memory.hpp"
#include "machine/search_path.hpp"
#include "plan/backend_name.hpp"
#include "reference/matmul.hpp"
#include "report/views/text_table.hpp"

namespace numcheck::app::commands {
namespace {

using report::views::Colour;

const CommandInfo kInfo{
    .name = "doctor",
    .summary = "check device, driver, libraries and every variable that changes numbers",
    .usage = "[OPTIONS]",
    .examples = {"doctor", "doctor --device cuda:0"},
    .exit_codes = {0, 2, 3},
};

/// One finding: a word, what it is about, a sentence.
struct Finding {
  enum class Kind { good, note, bad } kind = Kind::good;
  std::string subject;
  std::string sentence;
};

Finding driver_finding(const kernels::loader::DriverState& driver) {
  using Kind = kernels::loader::DriverState::Kind;
  switch (driver.kind) {
    case Kind::works:
      return {Finding::Kind::good, "driver", driver.sentence};
    case Kind::absent:
      return {Finding::Kind::note, "driver",
              driver.sentence +
                  "; --device auto simulates (sim:sm_90). For a GPU: install NVIDIA's driver, or give the "
                  "container access to it (docker run --gpus all)"};
    case Kind::broken:
      break;
  }
  return {Finding::Kind::bad, "driver", driver.sentence};
}

Finding build_finding() {
  const machine::BuildInfo& build = machine::build_info();
  if (!kernels::loader::built_with_cuda()) {
    return {Finding::Kind::note, "CUDA backends",
            "not in this build: cublaslt and cuda are unsupported. Install a CUDA toolkit (12.0 or newer), set "
            "CUDAToolkit_ROOT if CMake does not find it, and rebuild"};
  }
  return {Finding::Kind::good, "CUDA backends", "built with toolkit " + build.cuda_toolkit};
}

std::string device_sentence(const machine::Device& device) {
  if (device.simulated) {
    return fmt::format("{}: modelled on the host, no hardware evidence", device.name);
  }
  return fmt::format("{}, sm_{}, {} multiprocessors, {}, driver {}, {}", device.name, device.sm, device.multiprocessors,
                     core::human_bytes(device.memory_bytes), device.driver, device.uuid);
}

/// The device that a run with these options would use, and its libraries.
std::vector<Finding> device_findings(const ExecutionOptions& options) {
  std::vector<Finding> findings;
  const run::PipelineOptions pipeline = pipeline_options(options);
  const machine::DeviceChoice& choice = pipeline.workers.device;
  try {
    const std::unique_ptr<worker::Executor> executor = pipeline.workers.factory(choice);
    findings.push_back({Finding::Kind::good, "device " + choice.text(), device_sentence(executor->device())});
    const auto libraries = executor->libraries();
    const bool has_cudnn =
        std::ranges::count(libraries, "cudnn", [](const auto& library) { return library.first; }) > 0;
    if (!executor->device().simulated && !has_cudnn) {
      findings.push_back({Finding::Kind::note, "cudnn",
                          "not found, so its cases would be unsupported; name its folder with --lib-dir"});
    }
    for (const auto& [name, version] : libraries) {
      if (plan::backend_of(name) == kernels::transformer_engine::kBackend) {
        continue;  // it is loaded and examined more closely below
      }
      findings.push_back({Finding::Kind::good, name, version});
    }
  } catch (const core::EnvironmentError& error) {
    findings.push_back({Finding::Kind::bad, "device " + choice.text(), error.what()});
  }
  return findings;
}

/// Nobody needs TransformerEngine to check other backends: its absence is bad only if it was requested.
std::vector<Finding> transformer_engine_findings(const ExecutionOptions& options) {
  if (!kernels::loader::built_with_cuda()) {
    return {};
  }
  const Finding::Kind otherwise = options.te_libs.empty() ? Finding::Kind::note : Finding::Kind::bad;
  std::vector<Finding> findings;
  for (const std::string& path : options.te_libs.empty() ? std::vector<std::string>{""} : options.te_libs) {
    const auto [usable, sentence] = inspect_apart(path, options.lib_dir);
    findings.push_back(
        {usable ? Finding::Kind::good : otherwise, std::string(kernels::transformer_engine::kBackend), sentence});
  }
  return findings;
}

std::vector<Finding> host_findings() {
  return {{Finding::Kind::good, "processor",
           fmt::format("{} threads, instruction set {}", core::thread_count(), core::isa_name(core::active_isa()))},
          {Finding::Kind::good, "reference", std::string(reference::matmul_implementation())},
          {Finding::Kind::good, "memory",
           fmt::format("{} available, --memory defaults to {}", core::human_bytes(machine::memory_limit_bytes()),
                       core::human_bytes(machine::default_memory_bytes()))}};
}

std::vector<Finding> search_path_findings() {
  std::vector<Finding> findings;
  for (const machine::IgnoredEntry& ignored : machine::ignored_entries()) {
    // The system's loader reads this variable before the program runs.
    const bool loaders_own = ignored.variable == "LD_LIBRARY_PATH";
    findings.push_back({Finding::Kind::note, ignored.variable,
                        fmt::format("its entry \"{}\" is relative: te-numcheck does not look for libraries there{}",
                                    ignored.entry, loaders_own ? ", but the system's loader does; remove it" : "")});
  }
  return findings;
}

std::string finding_line(const Finding& finding, bool colour) {
  const auto [word, paint] = finding.kind == Finding::Kind::good   ? std::pair("ok  ", Colour::green)
                             : finding.kind == Finding::Kind::note ? std::pair("note", Colour::yellow)
                                                                   : std::pair("BAD ", Colour::red);
  return fmt::format("{}  {:<18} {}\n", report::views::paint(word, paint, colour), core::printable(finding.subject),
                     core::printable(finding.sentence));
}

std::string variables_text(bool colour) {
  std::string text = "\nvariables that change numbers\n";
  for (const machine::VariableState& variable : machine::numeric_environment()) {
    const std::string value = variable.value.has_value()
                                  ? report::views::paint(core::printable(*variable.value), Colour::yellow, colour)
                                  : "unset";
    text += fmt::format(
        "  {:<48} {}{}\n", core::printable(variable.name), value,
        variable.listed ? "" : "   (unknown to te-numcheck, but its name suggests that it may change numbers)");
  }
  return text;
}

class DoctorCommand : public Command {
 public:
  [[nodiscard]] const CommandInfo& info() const override { return kInfo; }

  void add_options(CLI::App& cli) override {
    add_device_options(cli, options_);
    cli.add_flag("--inspect", inspect_, "")->group("");
  }

  [[nodiscard]] core::ExitCode run(Context& context) override {
    if (inspect_) {
      answer_inspection(options_.te_libs.empty() ? "" : options_.te_libs.front(), options_.lib_dir);
      return core::ExitCode::success;
    }
    std::vector<Finding> findings = {build_finding(), driver_finding(kernels::loader::probe_driver())};
    for (const auto& more :
         {device_findings(options_), transformer_engine_findings(options_), host_findings(), search_path_findings()}) {
      findings.insert(findings.end(), more.begin(), more.end());
    }
    const bool colour = context.terminal.colour_on_stdout();
    std::string text = "te-numcheck " + machine::version_text() + "\n";
    bool bad = false;
    for (const Finding& finding : findings) {
      bad = bad || finding.kind == Finding::Kind::bad;
      if (!context.common.quiet || finding.kind == Finding::Kind::bad) {
        text += finding_line(finding, colour);
      }
    }
    if (!context.common.quiet) {
      text += variables_text(colour);
    }
    context.terminal.out(text);
    return bad ? core::ExitCode::environment : core::ExitCode::success;
  }

 private:
  ExecutionOptions options_;
  bool inspect_ = false;  ///< this process inspects one library for another doctor
};

}  // namespace

std::unique_ptr<Command> make_doctor_command() {
  return std::make_unique<DoctorCommand>();
}

}  // namespace numcheck::app::commands
