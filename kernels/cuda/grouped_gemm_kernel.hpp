// Launcher of our own FP32 FMA product of several groups. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/storage.hpp"

namespace numcheck::kernels::cuda {

/// As many groups as the parameters of a kernel have room for (4 KiB).
inline constexpr int kGroupsAtOnce = 64;

/// One product; matrices are row-major without padding. c null: no addend.
struct GroupLaunch {
  void* a = nullptr;
  void* b = nullptr;
  void* c = nullptr;
  void* d = nullptr;
  std::int32_t m = 0;
  std::int32_t n = 0;
  std::int32_t k = 0;
};

struct GroupedGemmLaunch {
  GroupLaunch group[kGroupsAtOnce];
  int groups = 0;
  bool trans_a = false;
  bool trans_b = false;
  float alpha = 1;
  float beta = 0;
  Storage input = Storage::fp32;
  Storage output = Storage::fp32;
};

/// Every group as launch_gemm() computes it, bit for bit: one chain of fused multiply-adds per output, k ascending. One
/// launch for all groups; a group without products gets zeros or beta C.
cudaError_t launch_grouped_gemm(const GroupedGemmLaunch& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
