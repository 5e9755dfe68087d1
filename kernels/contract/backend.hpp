// What a backend is: algorithms that compute an op on a device, and its memory. It sees bytes, and never judges accuracy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "machine/device.hpp"
#include "model/declared_rounding.hpp"
#include "op/op.hpp"
#include "plan/case.hpp"
#include "worker/execution.hpp"

namespace numcheck::kernels {

using worker::Support;

/// Thrown by a launch (or by Backend::algorithms) if the library refuses the case; the case is then `unsupported` with
/// this message. For libraries that do not say so earlier.
class NotSupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A fault that can be planted on purpose, to test whether the checks catch it.
struct FaultInfo {
  std::string_view name;
  std::string_view doc;
};

/// Device memory as plain bytes; host memory for simulated devices. All calls are synchronous, but a fault on the device
/// may surface in any later call.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  [[nodiscard]] virtual std::byte* allocate(std::size_t bytes) = 0;  ///< 256-byte aligned; throws on exhaustion
  virtual void release(std::byte* pointer) noexcept = 0;
  virtual void upload(std::byte* device, std::span<const std::byte> host) = 0;
  virtual void download(std::span<std::byte> host, const std::byte* device) = 0;
  virtual void fill(std::byte* device, std::uint8_t pattern, std::size_t bytes) = 0;
  /// Waits for all work on the device, on every stream; throws if any of it failed.
  virtual void synchronize() = 0;
};

/// One port in device memory. `data` is where the port's buffer starts (its offset_bytes are inside).
struct PortMemory {
  const op::Port* port = nullptr;
  std::byte* data = nullptr;
};

/// One way to compute the case.
struct Algorithm {
  std::string label;                                         ///< "cublasLt algo 67, tile 128x128, split-k 4"
  std::vector<std::pair<std::string, std::string>> details;  ///< id, tile, stages, split_k, reduction, flags, ...
  std::size_t workspace_bytes = 0;
  /// Runs once on the given memory; returns device seconds (0 if not measured). Throws on a device error.
  std::function<double(std::span<const PortMemory>, std::byte* workspace)> launch;
  model::DeclaredRounding rounding = {};  ///< what verdicts use; `details` say the same for people
};

/// What a backend is asked to compute: the case, its ports, and a fault to plant.
struct Call {
  const plan::Case* c = nullptr;
  std::span<const op::Port> ports;
  std::string inject;  ///< name of a planted fault for `sim`; empty: none
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual const machine::Device& device() const = 0;
  [[nodiscard]] virtual Support supports(const Call& call) = 0;
  /// At least one; at most as many as the case's AlgorithmSpec requests.
  [[nodiscard]] virtual std::vector<Algorithm> algorithms(const Call& call) = 0;
  /// Keys of the kernel configurations that these would be, so that a plan can choose the shapes that show new ones;
  /// none if the backend's choice is not known. Precondition: the case is supported.
  [[nodiscard]] virtual std::vector<std::string> configurations(const Call& /*call*/) { return {}; }
  [[nodiscard]] virtual DeviceMemory& memory() = 0;
};

}  // namespace numcheck::kernels
