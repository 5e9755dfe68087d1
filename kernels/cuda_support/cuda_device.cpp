#include "kernels/cuda_support/cuda_device.hpp"

#include <fmt/format.h>

#include "kernels/cuda_support/check.hpp"
#include "kernels/cuda_support/driver_files.hpp"

namespace numcheck::kernels::cuda_support {
namespace {

/// "GPU-1b2c3d4e-...", as nvidia-smi writes it.
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                        static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
  }
  return text;
}

machine::Device query_and_select(int index) {
  machine::Device device = query_device(index);
  // Threads that wait for the device let others run: there may be a worker for each processor beside the judges.
  check(cudaInitDevice(index, cudaDeviceScheduleYield, cudaInitDeviceFlagsAreValid), "cudaInitDevice");
  check(cudaSetDevice(index), "cudaSetDevice");
  return device;
}

}  // namespace

machine::Device query_device(int index) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  machine::Device device;
  device.name = properties.name;
  device.sm = 10 * properties.major + properties.minor;
  device.index = index;
  device.uuid = uuid_text(properties.uuid);
  device.driver = driver_version();
  device.memory_bytes = properties.totalGlobalMem;
  device.multiprocessors = properties.multiProcessorCount;
  return device;
}

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

CudaDevice::CudaDevice(int index) : info_(query_and_select(index)), memory_(index, stream_.get()) {}

void CudaDevice::use() const {
  check(cudaSetDevice(info_.index), "cudaSetDevice");
}

cudaStream_t CudaDevice::stream() {
  memory_.flush();
  return stream_.get();
}

DeviceSeconds CudaDevice::timed(const std::function<void()>& enqueue) {
  memory_.flush();
  check(cudaEventRecord(ready_.get(), stream_.get()), "cudaEventRecord");
  check(cudaStreamWaitEvent(cudaStreamLegacy, ready_.get(), 0), "cudaStreamWaitEvent");
  StreamTimer& timer = timers_.at(launches_++ % timers_.size());
  timer.bracket(stream_.get(), enqueue);
  check(cudaEventRecord(default_stream_done_.get(), cudaStreamLegacy), "cudaEventRecord");
  check(cudaStreamWaitEvent(stream_.get(), default_stream_done_.get(), 0), "cudaStreamWaitEvent");
  return [&timer] { return timer.seconds(); };
}

}  // namespace numcheck::kernels::cuda_support
