#include "kernels/cuda_support/cuda_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/strings.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cuda_support {
namespace {

constexpr std::size_t kSlotBytes = std::size_t{16} << 20;
/// Below this the driver's own staging is as fast as ours.
constexpr std::size_t kStagedFrom = std::size_t{1} << 20;
/// Host copies to and from staging are split among threads: one core copies about 10 GB/s, the bus carries 50.
constexpr std::size_t kCopyPiece = std::size_t{2} << 20;

/// Sizes are rounded up to eight steps per power of two, so that cached blocks fit the next case.
std::size_t size_class(std::size_t bytes) {
  const std::size_t step = std::max<std::size_t>(512, std::bit_floor(std::max<std::size_t>(bytes, 1)) / 8);
  return (std::max<std::size_t>(bytes, 1) + step - 1) / step * step;
}

void copy_in_parallel(std::byte* to, const std::byte* from, std::size_t bytes) {
  core::parallel_chunks(bytes, kCopyPiece, [&](std::size_t, std::size_t begin, std::size_t end) {
    std::memcpy(to + begin, from + begin, end - begin);
  });
}

}  // namespace

CudaMemory::CudaMemory(int device, cudaStream_t stream) : device_(device), stream_(stream) {
  use_device();
  std::size_t available = 0, total = 0;
  check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
  cache_limit_ = total / 4;
}

CudaMemory::~CudaMemory() {
  cudaSetDevice(device_);
  cudaStreamSynchronize(stream_);  // copies of staging memory may still be in flight
  free_cached();
}

void CudaMemory::use_device() const {
  check(cudaSetDevice(device_), "cudaSetDevice");
}

void CudaMemory::free_cached() noexcept {
  for (auto& [size, blocks] : cached_) {
    for (std::byte* block : blocks) {
      sizes_.erase(block);
      cudaFree(block);
    }
  }
  cached_.clear();
  cached_bytes_ = 0;
}

std::byte* CudaMemory::allocate(std::size_t bytes) {
  use_device();
  const std::size_t size = size_class(bytes);
  if (const auto found = cached_.find(size); found != cached_.end() && !found->second.empty()) {
    std::byte* block = found->second.back();
    found->second.pop_back();
    cached_bytes_ -= size;
    return block;
  }
  void* block = nullptr;
  cudaError_t status = cudaMalloc(&block, size);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // not sticky: clear it and retry without the cache
    free_cached();
    status = cudaMalloc(&block, size);
  }
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t available = 0, total = 0;
    check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    throw core::EnvironmentError(fmt::format("not enough device memory: {} needed, {} of {} free",
                                             core::human_bytes(size), core::human_bytes(available),
                                             core::human_bytes(total)));
  }
  check(status, "cudaMalloc");
  auto* bytes_of_block = static_cast<std::byte*>(block);
  sizes_.emplace(bytes_of_block, size);
  return bytes_of_block;
}

void CudaMemory::release(std::byte* pointer) noexcept {
  const auto found = sizes_.find(pointer);
  if (found == sizes_.end()) {
    return;
  }
  const std::size_t size = found->second;
  if (cached_bytes_ + size > cache_limit_) {
    sizes_.erase(found);
    cudaSetDevice(device_);
    cudaFree(pointer);
    return;
  }
  cached_[size].push_back(pointer);
  cached_bytes_ += size;
}

CudaMemory::Slot& CudaMemory::slot(std::size_t index) {
  Slot& slot = slots_.at(index % slots_.size());
  if (!slot.memory) {
    void* pinned = nullptr;
    check(cudaHostAlloc(&pinned, kSlotBytes, cudaHostAllocDefault), "cudaHostAlloc");
    slot.memory.reset(static_cast<std::byte*>(pinned));
    slot.done = std::make_unique<Event>();
  }
  return slot;
}

void CudaMemory::upload(std::byte* device, std::span<const std::byte> host) {
  use_device();
  if (host.size() < kStagedFrom) {
    check(cudaMemcpyAsync(device, host.data(), host.size(), cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    return;
  }
  std::size_t index = 0;
  for (std::size_t begin = 0; begin < host.size(); begin += kSlotBytes, ++index) {
    const std::size_t bytes = std::min(kSlotBytes, host.size() - begin);
    Slot& staging = slot(index);
    check(cudaEventSynchronize(staging.done->get()), "cudaEventSynchronize");  // its previous copy is done
    copy_in_parallel(staging.memory.get(), host.data() + begin, bytes);
    check(cudaMemcpyAsync(device + begin, staging.memory.get(), bytes, cudaMemcpyHostToDevice, stream_),
          "cudaMemcpyAsync");
    check(cudaEventRecord(staging.done->get(), stream_), "cudaEventRecord");
  }
}

void CudaMemory::download(std::span<std::byte> host, const std::byte* device) {
  use_device();
  if (host.size() < kStagedFrom) {
    check(cudaMemcpyAsync(host.data(), device, host.size(), cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    return;
  }
  const std::size_t pieces = (host.size() + kSlotBytes - 1) / kSlotBytes;
  const auto bytes_of = [&](std::size_t piece) { return std::min(kSlotBytes, host.size() - piece * kSlotBytes); };
  const auto start = [&](std::size_t piece) {
    Slot& staging = slot(piece);
    check(cudaMemcpyAsync(staging.memory.get(), device + piece * kSlotBytes, bytes_of(piece), cudaMemcpyDeviceToHost,
                          stream_),
          "cudaMemcpyAsync");
    check(cudaEventRecord(staging.done->get(), stream_), "cudaEventRecord");
  };
  start(0);
  for (std::size_t piece = 0; piece < pieces; ++piece) {
    if (piece + 1 < pieces) {
      start(piece + 1);
    }
    Slot& staging = slot(piece);
    check(cudaEventSynchronize(staging.done->get()), "cudaEventSynchronize");
    copy_in_parallel(host.data() + piece * kSlotBytes, staging.memory.get(), bytes_of(piece));
  }
}

void CudaMemory::fill(std::byte* device, std::uint8_t pattern, std::size_t bytes) {
  use_device();
  check(cudaMemsetAsync(device, pattern, bytes, stream_), "cudaMemsetAsync");
}

void CudaMemory::synchronize() {
  use_device();
  // Not only our stream: libraries also launch on their own.
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  check(cudaGetLastError(), "kernel launch");
}

}  // namespace numcheck::kernels::cuda_support
