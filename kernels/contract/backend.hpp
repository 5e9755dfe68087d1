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

/// Bytes of device memory to be read.
struct DeviceRead {
  std::span<std::byte> host;
  const std::byte* device = nullptr;
};

/// Device memory as plain bytes; host memory for simulated devices. Host memory that is passed is no longer used when a
/// call returns, and calls and launches act in their order; a fault on the device may surface in any later call.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  [[nodiscard]] virtual std::byte* allocate(std::size_t bytes) = 0;  ///< 256-byte aligned; throws on exhaustion
  virtual void release(std::byte* pointer) noexcept = 0;
  virtual void upload(std::byte* device, std::span<const std::byte> host) = 0;
  virtual void download(std::span<std::byte> host, const std::byte* device) = 0;
  /// Downloads that are complete after the next synchronize(), until when the host memory must live: on a GPU they cost
  /// no wait of their own, and waiting is what small cases spend their time on.
  virtual void download_at_sync(std::span<const DeviceRead> reads) {
    for (const DeviceRead& read : reads) {
      download(read.host, read.device);
    }
  }
  virtual void fill(std::byte* device, std::uint8_t pattern, std::size_t bytes) = 0;
  /// A copy on the device of what is there now, to be released like any block; null where there is no is_same(), or the
  /// copy would leave others too little memory. Comparing on the device spares large tensors the way to the host.
  [[nodiscard]] virtual std::byte* keep(const std::byte* /*device*/, std::size_t /*bytes*/) { return nullptr; }
  /// Whether two places hold the same bytes; waits for the device. Precondition: keep() has given a copy.
  [[nodiscard]] virtual bool is_same(const std::byte* /*a*/, const std::byte* /*b*/, std::size_t /*bytes*/) {
    return false;
  }
  /// Waits for all work on the device, on every stream; throws if any of it failed.
  virtual void synchronize() = 0;
  /// Throws if the device is known to be lost, without waiting where that is possible.
  virtual void poll() { synchronize(); }
};

/// One port in device memory. `data` is where the port's buffer starts (its offset_bytes are inside).
struct PortMemory {
  const op::Port* port = nullptr;
  std::byte* data = nullptr;
};

/// Launches between two waits for the device at most, if the time of each is asked.
inline constexpr int kLaunchesAtOnce = 8;

/// Device seconds of a launch, to be asked once the device has been synchronized, before kLaunchesAtOnce further
/// launches; 0 if not measured.
using DeviceSeconds = std::function<double()>;

inline DeviceSeconds not_measured() {
  return [] { return 0.0; };
}

/// What only a launch shows of an algorithm.
struct Shown {
  std::vector<std::pair<std::string, std::string>> details;
  int slices = 1;                      ///< as model::DeclaredRounding::slices
  std::vector<int> group_slices = {};  ///< as model::DeclaredRounding::group_slices
};

/// One way to compute the case.
struct Algorithm {
  std::string label;                                         ///< "cublasLt algo 67, tile 128x128, split-k 4"
  std::vector<std::pair<std::string, std::string>> details;  ///< id, tile, stages, split_k, reduction, flags, ...
  std::size_t workspace_bytes = 0;
  /// Starts one run on the given memory, in order with the calls of DeviceMemory. Throws on a device error; one that
  /// happens later surfaces when the device is synchronized.
  std::function<DeviceSeconds(std::span<const PortMemory>, std::byte* workspace)> launch;
  model::DeclaredRounding rounding = {};  ///< what verdicts use; `details` say the same for people
  std::vector<std::string> unordered =
      {};                             ///< outputs that are sums in no fixed order: repeated runs may differ in bits
  int launches = 1;                   ///< that `launch` consists of, each with device seconds of its own
  std::function<Shown()> shown = {};  ///< what the last launch showed; null: nothing
};

/// What a backend is asked to compute: the case, its ports, and a fault to plant.
struct Call {
  const plan::Case* c = nullptr;
  std::span<const op::Port> ports;
  std::string inject;  ///< name of a planted fault for `sim`; empty: none
  bool chained =
      false;  ///< the backend's earlier passes (op::Op::passes) compute the inputs that they leave, just before
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
