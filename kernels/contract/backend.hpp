// The backend contract: what computes an op on a device. Bytes in storage formats; no opinion on accuracy.
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

/// Thrown by a launch (or by Backend::algorithms) whose library says that it does not compute the case: the case is
/// then `unsupported`, with these words. For libraries that tell it no earlier.
class NotSupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A fault that can be planted on purpose, to see whether the checks catch it.
struct FaultInfo {
  std::string_view name;
  std::string_view doc;
};

/// Memory of a device: plain bytes. Host memory for simulated devices. All calls look synchronous. A fault on the
/// device is not: it surfaces in any later call.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  [[nodiscard]] virtual std::byte* allocate(std::size_t bytes) = 0;  ///< 256-byte aligned; throws on exhaustion
  virtual void release(std::byte* pointer) noexcept = 0;
  virtual void upload(std::byte* device, std::span<const std::byte> host) = 0;
  virtual void download(std::span<std::byte> host, const std::byte* device) = 0;
  virtual void fill(std::byte* device, std::uint8_t pattern, std::size_t bytes) = 0;
  /// Waits for everything on the device, on whatever stream; throws what has failed there.
  virtual void synchronize() = 0;
};

/// One port in device memory. `data` is where the port's buffer starts (its offset_bytes are inside).
struct PortMemory {
  const op::Port* port = nullptr;
  std::byte* data = nullptr;
};

/// One way in which the backend can compute the case.
struct Algorithm {
  std::string label;                                         ///< "cublasLt algo 67, tile 128x128, split-k 4"
  std::vector<std::pair<std::string, std::string>> details;  ///< id, tile, stages, split_k, reduction, flags, ...
  std::size_t workspace_bytes = 0;
  /// Runs once on the given memory; returns device seconds (0 if not measured). Throws on a device error.
  std::function<double(std::span<const PortMemory>, std::byte* workspace)> launch;
  model::DeclaredRounding rounding = {};  ///< verdicts go by it; `details` say the same to people
};

/// What a backend computes: the case, its ports, and the fault that a simulated device shall have.
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
  /// At least one; as many as the case's AlgorithmSpec asks for and the library has.
  [[nodiscard]] virtual std::vector<Algorithm> algorithms(const Call& call) = 0;
  [[nodiscard]] virtual DeviceMemory& memory() = 0;
};

}  // namespace numcheck::kernels
