// What it means to run one case on a device: shared by the coordinator, the worker and the backends.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/hash.hpp"
#include "machine/device.hpp"
#include "model/declared_rounding.hpp"
#include "op/op.hpp"
#include "plan/case.hpp"

namespace numcheck::worker {

/// One port with its host buffer of Port::extent_bytes() bytes: inputs hold the data, outputs receive it.
struct HostPort {
  const op::Port* port = nullptr;
  std::span<std::byte> bytes;
};

struct OutputDigest {
  std::string port;
  core::Digest digest;  ///< of the logical elements, padding excluded
};

/// What one algorithm did.
struct RunReport {
  std::string backend;                                       ///< that ran: never "auto", and without a version
  std::string label;                                         ///< "cublasLt algo 67, split-k 4, workspace 33554432 B"
  std::vector<std::pair<std::string, std::string>> details;  ///< id, tile, stages, split_k, reduction, flags, ...
  std::size_t workspace_bytes = 0;
  model::DeclaredRounding rounding;
  std::string observed_class;  ///< model::class_name of what ran; empty if not classified
  bool deterministic = true;
  bool guards_intact = true;
  bool inputs_intact = true;
  std::string guard_detail;  ///< which guard was hit, and where
  double device_s = 0;
  std::vector<OutputDigest> outputs;
  std::string error;  ///< this algorithm failed with this text; then there are no outputs
};

struct ExecuteOptions {
  int repeats = 2;       ///< runs per algorithm, compared bit for bit
  std::string inject;    ///< planted fault; empty: none
  bool classify = true;  ///< run the classification product (probe G6) per algorithm
};

/// Whether a device can run a case: yes, or no with a sentence that says why.
struct Support {
  bool yes = true;
  std::string reason;
};

/// How a case ended on its device.
struct Outcome {
  enum class Kind { done, unsupported, error, crashed, timeout } kind = Kind::done;
  std::string reason;  ///< a sentence; empty when done
  double device_s = 0;
};

/// A device that no longer answers: what it says, and what it followed.
struct DeviceLoss {
  std::string error;     ///< "CudaError: cudaDeviceSynchronize failed: cudaErrorIllegalAddress (...)"
  std::string followed;  ///< "it followed the launch of cublasLt algo 67, run 2"
};

/// Called after each algorithm, with its outputs in the host buffers; they are overwritten once it returns.
using RunSink = std::function<void(const RunReport&)>;

/// Runs cases on one device in this process.
class Executor {
 public:
  virtual ~Executor() = default;
  [[nodiscard]] virtual const machine::Device& device() const = 0;
  /// Facts about the libraries in use: "cublaslt" -> "13.1.0 (path)".
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> libraries() const = 0;
  /// Asked before the case's inputs are made, so without buffers and without running anything. A yes is no promise:
  /// execute may still find the case unsupported.
  [[nodiscard]] virtual Support supports(const plan::Case& /*c*/, const ExecuteOptions& /*options*/) { return {}; }
  [[nodiscard]] virtual Outcome execute(const plan::Case& c, std::span<const HostPort> ports,
                                        const ExecuteOptions& options, const RunSink& sink) = 0;
  /// Waits for the device and asks whether it still answers: nothing if it does. A CUDA fault is asynchronous, poisons
  /// its process and surfaces in any later call, so this is asked around everything above and not left to those who
  /// happen to meet the fault.
  [[nodiscard]] virtual std::optional<DeviceLoss> device_loss() noexcept { return std::nullopt; }
};

/// Makes the executor of a device; throws core::EnvironmentError if the device is not usable. Provided by `app`, which
/// alone knows the backends.
using ExecutorFactory = std::function<std::unique_ptr<Executor>(const machine::DeviceChoice&)>;

}  // namespace numcheck::worker
