#include <cfloat>

#include "kernels/cuda/fp8_recipe_kernel.hpp"

namespace numcheck::kernels::cuda {
namespace {

constexpr int kTensors = 32;  // of a block, along x: what a warp reads lies side by side
constexpr int kLanes = 16;    // threads that share the history of a tensor, along y

/// One step of some modules. Reads one history and writes the other, so that no thread waits for what another one moves.
struct Step {
  const float* amaxes;
  const float* reduced;
  const float* history;
  const float* scale;
  float* scales;
  float* scale_invs;
  float* new_history;
  float* new_scale;
};

__device__ float scale_for(float amax, float previous, float target) {
  const float scale = isfinite(amax) && amax > 0 ? __fdiv_rn(target, amax) : previous;
  return isinf(scale) ? FLT_MAX : scale;
}

__global__ void __launch_bounds__(kTensors* kLanes)
    update_step(Step step, std::int64_t length, std::int64_t tensors, float target, bool most_recent,
                bool leaves_idle_alone) {
  __shared__ float shared[kLanes][kTensors];
  const std::int64_t tensor = std::int64_t{blockIdx.x} * kTensors + threadIdx.x;
  const bool is_there = tensor < tensors;
  const std::int64_t number = std::int64_t{blockIdx.y} * tensors + tensor;
  const std::int64_t first = std::int64_t{blockIdx.y} * length * tensors + tensor;
  float last = 0, most = 0;
  bool idle = false;
  if (is_there) {
    const float own = step.amaxes[number];
    last = step.reduced != nullptr && step.reduced[number] != 0 ? step.reduced[number] : own;
    idle = leaves_idle_alone && last == 0;
    for (std::int64_t i = threadIdx.y; i < length; i += kLanes) {
      const float next = i + 1 < length ? step.history[first + (i + 1) * tensors] : last;
      const float kept = i == 0 ? own : step.history[first + i * tensors];
      step.new_history[first + i * tensors] = idle ? kept : i == 0 ? 0 : next;
      most = fmaxf(most, next);
    }
  }
  shared[threadIdx.y][threadIdx.x] = most;
  __syncthreads();
  if (is_there && threadIdx.y == 0) {
    for (int lane = 1; lane < kLanes; ++lane) {
      most = fmaxf(most, shared[lane][threadIdx.x]);
    }
    const float used = step.scale[number];
    step.scales[number] = used;
    step.scale_invs[number] = __frcp_rn(used);
    step.new_scale[number] = scale_for(idle ? 0 : most_recent ? last : most, used, target);
  }
}

/// Without steps the state stays.
cudaError_t copy_state(const Fp8RecipeLaunch& p, cudaStream_t stream) {
  const auto scales = static_cast<std::size_t>(p.modules * p.tensors);
  const cudaError_t error =
      cudaMemcpyAsync(p.new_history, p.history, scales * static_cast<std::size_t>(p.history_length) * sizeof(float),
                      cudaMemcpyDeviceToDevice, stream);
  return error != cudaSuccess
             ? error
             : cudaMemcpyAsync(p.scales, p.scale, scales * sizeof(float), cudaMemcpyDeviceToDevice, stream);
}

}  // namespace

cudaError_t launch_fp8_recipe(const Fp8RecipeLaunch& p, cudaStream_t stream) {
  const std::int64_t scales = p.modules * p.tensors;
  if (p.modules > kMostModules) {
    return cudaErrorInvalidConfiguration;
  }
  if (scales == 0) {
    return cudaSuccess;
  }
  if (p.steps == 0) {
    return copy_state(p, stream);
  }
  const dim3 grid(static_cast<unsigned>((p.tensors + kTensors - 1) / kTensors), static_cast<unsigned>(p.modules));
  for (std::int64_t t = 0; t < p.steps; ++t) {
    const bool to_output = (p.steps - 1 - t) % 2 == 0;  // the last step is
    const Step step = {p.amaxes + t * scales,
                       p.reduced == nullptr ? nullptr : p.reduced + t * scales,
                       t == 0      ? p.history
                       : to_output ? p.other_history
                                   : p.new_history,
                       t == 0 ? p.scale : p.scales + t * scales,
                       p.scales + t * scales,
                       p.scale_invs + t * scales,
                       to_output ? p.new_history : p.other_history,
                       p.scales + (t + 1) * scales};
    update_step<<<grid, dim3(kTensors, kLanes), 0, stream>>>(step, p.history_length, p.tensors, p.target, p.most_recent,
                                                             p.leaves_idle_alone);
  }
  return cudaGetLastError();
}

}  // namespace numcheck::kernels::cuda
