#include "doctor_facts.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include "catalog.hpp"
#include "core/error.hpp"
#include "core/isa.hpp"
#include "core/parallel.hpp"
#include "core/strings.hpp"
#include "inspect_apart.hpp"
#include "kernels/loader/backend_set.hpp"
#include "kernels/transformer_engine/versions.hpp"
#include "machine/build_info.hpp"
#include "machine/memory.hpp"
#include "reference/matmul.hpp"
#include "worker/execution.hpp"

namespace numcheck::app {
namespace {

using Kind = Finding::Kind;
using kernels::cuda_support::Inspection;

DeviceFacts device_facts(const ExecutionOptions& options) {
  const run::PipelineOptions pipeline = pipeline_options(options);
  const machine::DeviceChoice& choice = pipeline.workers.device;
  DeviceFacts facts;
  facts.requested = choice.text();
  try {
    const std::unique_ptr<worker::Executor> executor = pipeline.workers.factory(choice);
    facts.device = executor->device();
    for (auto& [name, version] : executor->libraries()) {
      if (name.starts_with("cuda_")) {  // the others are loaded and examined one by one
        facts.cuda_versions.emplace_back(name, version);
      }
    }
  } catch (const core::EnvironmentError& error) {
    facts.problem = error.what();
  }
  return facts;
}

/// Why cuBLASLt, which loads, has no handle on the device; empty if it has one.
std::string handle_problem(const machine::Device& device, const std::string& lib_dir) {
  try {
    const auto backends = kernels::loader::open_cuda_device(device.index, {lib_dir, {}, {}});
    (void)backends->find("cublaslt");
    return {};
  } catch (const core::Error& error) {
    return error.what();
  }
}

std::vector<LibraryFacts> library_facts(const ExecutionOptions& options, const DeviceFacts& chosen) {
  if (!kernels::loader::built_with_cuda()) {
    return {};
  }
  const bool on_gpu = chosen.device.has_value() && !chosen.device->simulated;
  std::vector<LibraryFacts> libraries;
  libraries.push_back({"cublaslt", on_gpu, inspect_apart("cublaslt", "", options.lib_dir)});
  if (Inspection& inspection = libraries.back().inspection; on_gpu && inspection.usable) {
    inspection.remark = handle_problem(*chosen.device, options.lib_dir);
    inspection.usable = inspection.remark.empty();
  }
  libraries.push_back({"cublas", false, inspect_apart("cublas", "", options.lib_dir)});
  libraries.push_back({"cudnn", false, inspect_apart("cudnn", "", options.lib_dir)});
  // Nobody needs TransformerEngine to check other backends: its absence is bad only if it was requested.
  const std::string te(kernels::transformer_engine::kBackend);
  for (const std::string& path : options.te_libs.empty() ? std::vector<std::string>{""} : options.te_libs) {
    libraries.push_back({te, !options.te_libs.empty(), inspect_apart(te, path, options.lib_dir)});
  }
  return libraries;
}

HostFacts host_facts() {
  return {static_cast<unsigned>(core::thread_count()), std::string(core::isa_name(core::active_isa())),
          std::string(reference::matmul_implementation()), machine::memory_limit_bytes(),
          machine::default_memory_bytes()};
}

Finding build_finding(bool cuda_build) {
  if (!cuda_build) {
    return {Kind::note, "CUDA backends",
            "not in this build: cublaslt and cuda are unsupported. Install a CUDA toolkit (12.0 or newer), set "
            "CUDAToolkit_ROOT if CMake does not find it, and rebuild"};
  }
  return {Kind::ok, "CUDA backends", "built with toolkit " + machine::build_info().cuda_toolkit};
}

Finding driver_finding(const kernels::loader::DriverState& driver) {
  using State = kernels::loader::DriverState::Kind;
  switch (driver.kind) {
    case State::works:
      return {Kind::ok, "driver", driver.sentence};
    case State::absent:
      return {Kind::note, "driver",
              driver.sentence +
                  "; --device auto simulates (sim:sm_90). For a GPU: install NVIDIA's driver, or give the "
                  "container access to it (docker run --gpus all)"};
    case State::broken:
      break;
  }
  return {Kind::bad, "driver", driver.sentence};
}

std::string device_sentence(const machine::Device& device) {
  if (device.simulated) {
    return fmt::format("{}: modelled on the host, no hardware evidence", device.name);
  }
  return fmt::format("{}, sm_{}, {} multiprocessors, {}, driver {}, {}", device.name, device.sm, device.multiprocessors,
                     core::human_bytes(device.memory_bytes), device.driver, device.uuid);
}

Finding device_finding(const DeviceFacts& facts) {
  return facts.device.has_value() ? Finding{Kind::ok, "device " + facts.requested, device_sentence(*facts.device)}
                                  : Finding{Kind::bad, "device " + facts.requested, facts.problem};
}

Finding library_finding(const LibraryFacts& library) {
  const Inspection& inspection = library.inspection;
  if (!inspection.usable) {
    return {library.required ? Kind::bad : Kind::note, library.name, inspection.remark};
  }
  return {Kind::ok, library.name,
          fmt::format("{} ({}){}{}", inspection.version.empty() ? "of unknown version" : inspection.version,
                      inspection.file, inspection.remark.empty() ? "" : "; ", inspection.remark)};
}

Finding ignored_finding(const machine::IgnoredEntry& ignored) {
  // The system's loader reads this variable before the program runs.
  const bool loaders_own = ignored.variable == "LD_LIBRARY_PATH";
  return {Kind::note, ignored.variable,
          fmt::format("its entry \"{}\" is relative: te-numcheck does not look for libraries there{}", ignored.entry,
                      loaders_own ? ", but the system's loader does; remove it" : "")};
}

}  // namespace

std::string_view word_of(Finding::Kind kind) noexcept {
  constexpr std::array<std::string_view, 3> kWords = {"ok", "note", "bad"};
  return kWords.at(static_cast<std::size_t>(kind));
}

DoctorFacts doctor_facts(const ExecutionOptions& options) {
  DoctorFacts facts;
  facts.cuda_build = kernels::loader::built_with_cuda();
  facts.driver = kernels::loader::probe_driver();
  facts.device = device_facts(options);
  facts.libraries = library_facts(options, facts.device);
  facts.host = host_facts();
  facts.ignored = machine::ignored_entries();
  facts.variables = machine::numeric_environment();
  return facts;
}

std::vector<Finding> doctor_findings(const DoctorFacts& facts) {
  std::vector<Finding> findings = {build_finding(facts.cuda_build), driver_finding(facts.driver),
                                   device_finding(facts.device)};
  for (const auto& [name, version] : facts.device.cuda_versions) {
    findings.push_back({Kind::ok, name, version});
  }
  std::ranges::transform(facts.libraries, std::back_inserter(findings), &library_finding);
  findings.push_back(
      {Kind::ok, "processor", fmt::format("{} threads, instruction set {}", facts.host.threads, facts.host.isa)});
  findings.push_back({Kind::ok, "reference", facts.host.reference});
  findings.push_back({Kind::ok, "memory",
                      fmt::format("{} available, --memory defaults to {}", core::human_bytes(facts.host.memory_bytes),
                                  core::human_bytes(facts.host.default_memory_bytes))});
  std::ranges::transform(facts.ignored, std::back_inserter(findings), &ignored_finding);
  return findings;
}

bool is_unusable(const std::vector<Finding>& findings) noexcept {
  return std::ranges::any_of(findings, [](const Finding& finding) { return finding.kind == Kind::bad; });
}

}  // namespace numcheck::app
