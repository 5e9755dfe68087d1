// Launcher of a series of updates of delayed scaling. Plain C++17: included by nvcc.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace numcheck::kernels::cuda {

constexpr std::int64_t kMostModules = 65535;  ///< blocks along a grid's y

/// See op::Fp8RecipeParams.
struct Fp8RecipeLaunch {
  std::int64_t steps = 0;
  std::int64_t modules = 1;
  std::int64_t history_length = 1;
  std::int64_t tensors = 0;        ///< of each module
  float target = 0;                ///< what the chosen amax is scaled to
  bool most_recent = false;        ///< the chosen amax is the most recent one, not the largest
  bool leaves_idle_alone = false;  ///< a tensor whose most recent amax is 0 keeps its history
  const float* amaxes = nullptr;
  const float* reduced = nullptr;  ///< null: none
  const float* history = nullptr;
  const float* scale = nullptr;
  float* scales = nullptr;  ///< a row more than steps
  float* scale_invs = nullptr;
  float* new_history = nullptr;
  float* other_history = nullptr;  ///< room for as many numbers as the history has
};

/// The modules' histories are updated by one kernel per step.
cudaError_t launch_fp8_recipe(const Fp8RecipeLaunch& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
