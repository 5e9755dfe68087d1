// Devices that this machine lacks, in the form that cuDNN's device-property descriptors accept.
#pragma once

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace numcheck::kernels::cudnn::test {

/// What differs between devices; sizes in bytes, clocks in kHz.
struct KnownDevice {
  int sm;
  std::string_view name;
  int multiprocessors;
  int shared_per_block_optin;
  int threads_per_multiprocessor;
  int blocks_per_multiprocessor;
  int sm_clock;
  int memory_clock;
  long l2_cache;
  long memory;
};

/// NVIDIA's published values.
inline constexpr std::array<KnownDevice, 5> kKnownDevices = {{
    {80, "NVIDIA A100-SXM4-80GB", 108, 166912, 2048, 32, 1410000, 1593000, 41943040, 85029158912},
    {89, "NVIDIA L40S", 142, 101376, 1536, 24, 2520000, 9001000, 100663296, 47810936832},
    {90, "NVIDIA H200", 132, 232448, 2048, 32, 1980000, 3201000, 62914560, 150754820096},
    {100, "NVIDIA B200", 148, 232448, 2048, 32, 1965000, 3996000, 132644864, 191514214400},
    {120, "NVIDIA RTX PRO 6000 Blackwell Server Edition", 188, 101376, 1536, 24, 2430000, 12481000, 134217728,
     101974016000},
}};

/// Properties of the device of kKnownDevices with that architecture. The keys are those that cuDNN 9.19 writes itself.
[[nodiscard]] inline std::string device_json(int sm) {
  const auto device = std::ranges::find(kKnownDevices, sm, &KnownDevice::sm);
  if (device == kKnownDevices.end()) {
    throw std::invalid_argument(fmt::format("no known device has sm_{}", sm));
  }
  return fmt::format(
      R"({{"deviceName":"{}","deviceVer":{},"multiProcessorCount":{},"maxSharedMemoryPerBlockOptin":{},)"
      R"("maxThreadsPerSM":{},"maxCtasPerSM":{},"smClockRateKHz":{},"memClockRateKHz":{},"l2CacheSize":{},)"
      R"("totalGlobalMem":{},"cudaDeviceId":0,"driverVer":13000,"maxGridSize":[2147483647,65535,65535],)"
      R"("maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
      R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxThreadsPerBlock":1024,"pciDeviceId":0,)"
      R"("isTccDriver":0,"supportCoopLaunch":1}})",
      device->name, device->sm * 10, device->multiprocessors, device->shared_per_block_optin,
      device->threads_per_multiprocessor, device->blocks_per_multiprocessor, device->sm_clock, device->memory_clock,
      device->l2_cache, device->memory);
}

}  // namespace numcheck::kernels::cudnn::test
