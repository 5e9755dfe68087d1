// What `te-numcheck doctor` finds on this machine, as facts, and what it makes of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "execution_options.hpp"
#include "kernels/cuda_support/inspect.hpp"
#include "kernels/loader/probe.hpp"
#include "machine/device.hpp"
#include "machine/environment.hpp"
#include "machine/search_path.hpp"

namespace numcheck::app {

/// The device that a run with the same options would use.
struct DeviceFacts {
  std::string requested;  ///< "auto", "cuda:1", "sim:sm_90"
  std::optional<machine::Device> device;
  std::string problem;  ///< why there is none
  /// The CUDA versions of the driver and of the linked runtime, by name; none on a simulated device.
  std::vector<std::pair<std::string, std::string>> cuda_versions;
};

struct LibraryFacts {
  std::string name;       ///< of the backend that needs it: "cublaslt"
  bool required = false;  ///< without it, a run with these options could not do what it should
  kernels::cuda_support::Inspection inspection;
};

struct HostFacts {
  unsigned threads = 0;
  std::string isa;
  std::string reference;  ///< what multiplies matrices for references
  std::uint64_t memory_bytes = 0;
  std::uint64_t default_memory_bytes = 0;  ///< what --memory is if it is not given
};

/// One finding: what it is about, and a sentence.
struct Finding {
  enum class Kind { ok, note, bad } kind = Kind::ok;
  std::string subject;
  std::string sentence;
};

/// "ok", "note", "bad".
[[nodiscard]] std::string_view word_of(Finding::Kind kind) noexcept;

struct DoctorFacts {
  bool cuda_build = false;  ///< this program has the CUDA backends
  kernels::loader::DriverState driver;
  DeviceFacts device;
  std::vector<LibraryFacts> libraries;  ///< none in a build without CUDA
  HostFacts host;
  std::vector<machine::IgnoredEntry> ignored;  ///< entries of search paths
  std::vector<machine::VariableState> variables;
};

/// Opens the device; loads every library in a process of its own.
[[nodiscard]] DoctorFacts doctor_facts(const ExecutionOptions& options);

/// In the order in which they are shown.
[[nodiscard]] std::vector<Finding> doctor_findings(const DoctorFacts& facts);

/// Whether a finding is bad: a run would end in exit code 3.
[[nodiscard]] bool is_unusable(const std::vector<Finding>& findings) noexcept;

}  // namespace numcheck::app
