// Device memory of one GPU: pooled, with pinned staging for copies.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include <cuda_runtime_api.h>

#include "kernels/contract/backend.hpp"
#include "kernels/cuda_support/copy_batch.hpp"
#include "kernels/cuda_support/stream.hpp"

namespace numcheck::kernels::cuda_support {

/// DeviceMemory on cudaMalloc. Everything is ordered on one stream, which launches share: a fill or an upload may still
/// be waiting or running when the call returns, but no later call can tell. Released blocks are kept for the next case,
/// because allocation dominates small cases. May be used from any thread, by one at a time.
class CudaMemory : public DeviceMemory {
 public:
  CudaMemory(int device, cudaStream_t stream);
  ~CudaMemory() override;
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  /// Throws core::EnvironmentError with the needed and free sizes when the device is full.
  [[nodiscard]] std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* pointer) noexcept override;
  void upload(std::byte* device, std::span<const std::byte> host) override;
  void download(std::span<std::byte> host, const std::byte* device) override;
  void download_at_sync(std::span<const DeviceRead> reads) override;
  void fill(std::byte* device, std::uint8_t pattern, std::size_t bytes) override;
  [[nodiscard]] std::byte* keep(const std::byte* device, std::size_t bytes) override;
  [[nodiscard]] bool is_same(const std::byte* a, const std::byte* b, std::size_t bytes) override;
  void synchronize() override;
  void poll() override;
  /// Puts gathered copies and fills on the stream; to be called before anything else is put there. Throws CudaError.
  void flush();

 private:
  struct FreePinned {
    void operator()(std::byte* pointer) const noexcept { cudaFreeHost(pointer); }
  };
  struct Slot {
    std::unique_ptr<std::byte, FreePinned> memory;
    std::unique_ptr<Event> done;
  };

  void use_device() const;
  void free_cached() noexcept;
  Slot& slot(std::size_t index);
  /// Part of the staging for small copies; waits for the stream if it is full. Precondition: bytes < kStagedFrom.
  [[nodiscard]] std::byte* staging_for(std::size_t bytes);
  void wait_for_stream();
  /// Copies what small downloads left in the staging to where it belongs, and frees the staging. Precondition: the
  /// stream has been waited for.
  void deliver();
  void download_large(std::span<std::byte> host, const std::byte* device);

  int device_;
  cudaStream_t stream_;
  CopyBatch small_copies_;
  std::unordered_map<std::byte*, std::size_t> sizes_;
  std::map<std::size_t, std::vector<std::byte*>> cached_;
  std::size_t cached_bytes_ = 0;
  std::size_t cache_limit_ = 0;
  std::array<Slot, 2> slots_;
  std::unique_ptr<std::byte, FreePinned> small_;
  std::size_t small_used_ = 0;
  bool has_compare_ = false;                        ///< this build has the kernel for this device
  std::unique_ptr<std::byte, FreePinned> differs_;  ///< an unsigned, of is_same()
  struct Staged {
    std::span<std::byte> host;
    const std::byte* staging = nullptr;
  };
  std::vector<Staged> staged_;  ///< small downloads that are not delivered yet
};

}  // namespace numcheck::kernels::cuda_support
