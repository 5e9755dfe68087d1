// Running one case on a device: types shared by the coordinator, the worker and the backends.
#pragma once

#include <algorithm>
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
#include "model/error_model.hpp"
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
  bool repeats = true;  ///< all runs gave the same bits
};

/// What one algorithm did.
struct RunReport {
  std::string backend;                                       ///< the one that ran: never "auto", no version
  std::string label;                                         ///< "cublasLt algo 67, split-k 4, workspace 33554432 B"
  std::vector<std::pair<std::string, std::string>> details;  ///< id, tile, stages, split_k, reduction, flags, ...
  std::size_t workspace_bytes = 0;
  model::DeclaredRounding rounding;
  std::optional<model::PrecisionClass> observed;  ///< what ran; nothing if it was not classified
  std::optional<model::Conversion> conversion;    ///< of its FP32 operands; nothing if it is not known
  std::vector<std::string> unordered;             ///< outputs of which the backend declares that runs may differ
  bool guards_intact = true;
  bool inputs_intact = true;
  std::string guard_detail;  ///< which guard was hit, and where
  double device_s = 0;
  std::vector<OutputDigest> outputs;
  bool fault_unseen = false;  ///< a fault was planted, and nothing is other than without it
  std::string error;          ///< why this algorithm failed; there are no outputs then

  /// All runs gave the same bits.
  [[nodiscard]] bool deterministic() const noexcept { return std::ranges::all_of(outputs, &OutputDigest::repeats); }
};

struct ExecuteOptions {
  int repeats = 2;              ///< runs per algorithm, compared bit for bit
  std::string inject;           ///< planted fault; empty: none
  bool classify = true;         ///< run the classification product (probe G6) per algorithm
  bool configurations = false;  ///< of questions: which kernel configurations would run
};

/// Whether a device can run a case: yes, or no with a sentence that says why.
struct Support {
  bool yes = true;
  std::string reason;
  std::vector<std::string> configurations;  ///< keys of those that would run, if the options ask for them
};

/// How a case ended on its device.
struct Outcome {
  enum class Kind { done, unsupported, error, crashed, timeout } kind = Kind::done;
  std::string reason;  ///< a sentence; empty when done
  double device_s = 0;
  std::vector<std::string> configurations = {};  ///< of answers: see Support
};

/// A device that no longer responds: its error, and what preceded it.
struct DeviceLoss {
  std::string error;     ///< "CudaError: cudaDeviceSynchronize failed: cudaErrorIllegalAddress (...)"
  std::string followed;  ///< "it followed the launch of cublasLt algo 67, run 2"
};

/// Called after each algorithm, with its outputs in the host buffers, which are overwritten once the call returns.
using RunSink = std::function<void(const RunReport&)>;

/// Runs cases on one device in this process.
class Executor {
 public:
  virtual ~Executor() = default;
  [[nodiscard]] virtual const machine::Device& device() const = 0;
  /// Facts about the libraries in use: "cublaslt" -> "13.1.0 (path)".
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> libraries() const = 0;
  /// Called before the case's inputs exist; must not run anything. Yes is not a guarantee: execute() may still find the
  /// case unsupported.
  [[nodiscard]] virtual Support supports(const plan::Case& /*c*/, const ExecuteOptions& /*options*/) { return {}; }
  [[nodiscard]] virtual Outcome execute(const plan::Case& c, std::span<const HostPort> ports,
                                        const ExecuteOptions& options, const RunSink& sink) = 0;
  /// Synchronises with the device; nullopt if it still responds. A CUDA fault is asynchronous, poisons its process and
  /// surfaces in any later call, so callers check explicitly around each of the calls above.
  [[nodiscard]] virtual std::optional<DeviceLoss> device_loss() noexcept { return std::nullopt; }
};

/// Makes the executor of a device; throws core::EnvironmentError if the device cannot be used. Provided by `app`, the
/// only layer that knows the backends.
using ExecutorFactory = std::function<std::unique_ptr<Executor>(const machine::DeviceChoice&)>;

}  // namespace numcheck::worker
