#include "kernels/cuda_support/cuda_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/strings.hpp"
#include "kernels/cuda_support/check.hpp"
#include "kernels/cuda_support/compare_kernel.hpp"

namespace numcheck::kernels::cuda_support {
namespace {

constexpr std::size_t kSlotBytes = std::size_t{16} << 20;
/// Smaller copies are gathered in a staging area of their own, so that many of them need one wait.
constexpr std::size_t kStagedFrom = std::size_t{1} << 20;
constexpr std::size_t kSmallStagingBytes = std::size_t{4} << 20;
constexpr std::size_t kSmallAlignment = 64;
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

CudaMemory::CudaMemory(int device, cudaStream_t stream) : device_(device), stream_(stream), small_copies_(stream) {
  use_device();
  std::size_t available = 0, total = 0;
  check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
  cache_limit_ = total / 4;
  has_compare_ = find_compare_kernel() == cudaSuccess;
  cudaGetLastError();  // a missing kernel is no error that a later call should find
}

CudaMemory::~CudaMemory() {
  cudaSetDevice(device_);
  cudaStreamSynchronize(stream_);  // copies of staging memory may still be in flight
  free_cached();
}

void CudaMemory::use_device() const {
  check(cudaSetDevice(device_), "cudaSetDevice");
}

void CudaMemory::flush() try {
  use_device();
  small_copies_.flush();
} catch (...) {
  staged_.clear();  // the host memory may be gone before the next call
  throw;
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
    flush();
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
    try {
      flush();
    } catch (const CudaError&) {  // the device is lost: whatever comes next reports it
    }
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

std::byte* CudaMemory::staging_for(std::size_t bytes) {
  if (!small_) {
    void* pinned = nullptr;
    check(cudaHostAlloc(&pinned, kSmallStagingBytes, cudaHostAllocDefault), "cudaHostAlloc");
    small_.reset(static_cast<std::byte*>(pinned));
  }
  const std::size_t size = (bytes + kSmallAlignment - 1) / kSmallAlignment * kSmallAlignment;
  if (size > kSmallStagingBytes - small_used_) {
    wait_for_stream();
  }
  return small_.get() + std::exchange(small_used_, small_used_ + size);
}

void CudaMemory::deliver() {
  for (const Staged& part : staged_) {
    std::memcpy(part.host.data(), part.staging, part.host.size());
  }
  staged_.clear();
  small_used_ = 0;
}

void CudaMemory::wait_for_stream() {
  flush();
  if (const cudaError_t status = cudaStreamSynchronize(stream_); status != cudaSuccess) {
    staged_.clear();
    check(status, "cudaStreamSynchronize");
  }
  deliver();
}

void CudaMemory::upload(std::byte* device, std::span<const std::byte> host) {
  use_device();
  if (host.size() < kStagedFrom) {
    std::byte* staging = staging_for(host.size());
    std::memcpy(staging, host.data(), host.size());
    small_copies_.copy(device, staging, host.size());
    return;
  }
  flush();
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
  const DeviceRead read{host, device};
  download_at_sync({&read, 1});
  if (!staged_.empty()) {
    wait_for_stream();
  }
}

void CudaMemory::download_at_sync(std::span<const DeviceRead> reads) try {
  use_device();
  for (const DeviceRead& read : reads) {
    if (read.host.empty()) {
      continue;
    }
    if (read.host.size() >= kStagedFrom) {
      download_large(read.host, read.device);
      continue;
    }
    std::byte* staging = staging_for(read.host.size());
    small_copies_.copy(staging, read.device, read.host.size());
    staged_.push_back({read.host, staging});
  }
} catch (...) {
  staged_.clear();  // the host memory may be gone before the next call
  throw;
}

void CudaMemory::download_large(std::span<std::byte> host, const std::byte* device) {
  flush();
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
  if (bytes < kStagedFrom) {
    small_copies_.fill(device, pattern, bytes);
    return;
  }
  flush();
  check(cudaMemsetAsync(device, pattern, bytes, stream_), "cudaMemsetAsync");
}

std::byte* CudaMemory::keep(const std::byte* device, std::size_t bytes) {
  constexpr std::size_t kShare = 4;  // of what is free: libraries allocate for themselves
  use_device();
  const auto cached = cached_.find(size_class(bytes));
  if (!has_compare_ || bytes == 0) {
    return nullptr;
  }
  if (cached == cached_.end() || cached->second.empty()) {
    std::size_t available = 0, total = 0;
    check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    if (bytes > available / kShare) {
      return nullptr;
    }
  }
  flush();
  std::byte* copy = allocate(bytes);
  try {
    check(cudaMemcpyAsync(copy, device, bytes, cudaMemcpyDeviceToDevice, stream_), "cudaMemcpyAsync");
  } catch (const CudaError&) {
    release(copy);
    throw;
  }
  return copy;
}

bool CudaMemory::is_same(const std::byte* a, const std::byte* b, std::size_t bytes) {
  use_device();
  if (!differs_) {
    void* pinned = nullptr;
    check(cudaHostAlloc(&pinned, sizeof(unsigned), cudaHostAllocDefault), "cudaHostAlloc");
    differs_.reset(static_cast<std::byte*>(pinned));
  }
  auto* differs = reinterpret_cast<unsigned*>(differs_.get());
  *differs = 0;
  flush();
  check(launch_compare(a, b, bytes, differs, stream_), "te-numcheck's comparison kernel");
  wait_for_stream();
  return *differs == 0;
}

void CudaMemory::synchronize() {
  flush();
  // Not only our stream: libraries also launch on their own.
  cudaError_t status = cudaDeviceSynchronize();
  const char* where = "cudaDeviceSynchronize";
  if (status == cudaSuccess) {
    status = cudaGetLastError();
    where = "kernel launch";
  }
  if (status != cudaSuccess) {
    staged_.clear();
    check(status, where);
  }
  deliver();
}

void CudaMemory::poll() {
  use_device();
  cudaGetLastError();  // what a library left behind is cleared; the loss of the device stays
  const cudaError_t status = cudaStreamQuery(stream_);
  cudaGetLastError();  // "not ready" is no error that a later call should find
  if (status != cudaErrorNotReady) {
    check(status, "cudaStreamQuery");
  }
}

}  // namespace numcheck::kernels::cuda_support
