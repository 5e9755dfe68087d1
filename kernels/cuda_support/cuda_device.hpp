// What the backends for CUDA devices share: one GPU with its identity, stream, memory and timer.
#pragma once

#include <array>
#include <cstddef>

#include <cuda_runtime_api.h>

#include "kernels/cuda_support/cuda_memory.hpp"
#include "kernels/cuda_support/stream.hpp"
#include "machine/device.hpp"

namespace numcheck::kernels::cuda_support {

/// Identity of device `index`; throws CudaError.
[[nodiscard]] machine::Device query_device(int index);

/// A version number of the CUDA runtime or driver as text: "13.0".
[[nodiscard]] std::string cuda_version_text(int version);

class CudaDevice {
 public:
  /// Initialises the device; throws CudaError if that fails.
  explicit CudaDevice(int index);

  [[nodiscard]] const machine::Device& info() const noexcept { return info_; }
  [[nodiscard]] CudaMemory& memory() noexcept { return memory_; }
  /// Comes with all that memory() has been asked for, so ask for it each time. Throws CudaError.
  [[nodiscard]] cudaStream_t stream();
  /// Makes the device current on this thread. Launches call it, because a case may come from any thread.
  void use() const;
  /// Starts what `enqueue` puts on stream(); the result says how long it took, as Algorithm::launch promises. The
  /// default stream, where a library may put a part of the work, waits for what comes before, and what comes next waits for
  /// it. Throws CudaError.
  [[nodiscard]] DeviceSeconds timed(const std::function<void()>& enqueue);

 private:
  machine::Device info_;
  Stream stream_;
  std::array<StreamTimer, kLaunchesAtOnce> timers_;  ///< used in turn
  std::size_t launches_ = 0;
  Event ready_;                ///< all that a launch may work on is there
  Event default_stream_done_;  ///< and what it has put on the default stream
  CudaMemory memory_;
};

}  // namespace numcheck::kernels::cuda_support
