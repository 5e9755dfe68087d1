// Devices that this machine lacks, in the form that cuDNN's device-property descriptors accept.
#pragma once

#include <string>

namespace numcheck::kernels::cudnn::test {

/// Properties of an A100 (sm 80) or an H200 (sm 90). The keys are those that cuDNN 9.19 writes itself; values are
/// NVIDIA's published ones.
[[nodiscard]] inline std::string device_json(int sm) {
  const bool ampere = sm == 80;
  const std::string own = ampere ? R"("deviceName":"NVIDIA A100-SXM4-80GB","deviceVer":800,"multiProcessorCount":108,
                  "maxSharedMemoryPerBlockOptin":166912,"smClockRateKHz":1410000,"memClockRateKHz":1593000,
                  "l2CacheSize":41943040,"totalGlobalMem":85029158912,)"
                                 : R"("deviceName":"NVIDIA H200","deviceVer":900,"multiProcessorCount":132,
                  "maxSharedMemoryPerBlockOptin":232448,"smClockRateKHz":1980000,"memClockRateKHz":3201000,
                  "l2CacheSize":62914560,"totalGlobalMem":150754820096,)";
  return "{" + own + R"("cudaDeviceId":0,"driverVer":13000,"maxGridSize":[2147483647,65535,65535],
      "maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"warpSize":32,"maxSharedMemoryPerBlock":49152,
      "reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,
      "maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1})";
}

}  // namespace numcheck::kernels::cudnn::test
