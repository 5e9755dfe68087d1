#include "kernels/sim/gemm_scale_faults.hpp"

#include <algorithm>
#include <vector>

#include "core/codec.hpp"
#include "op/gemm_scaling.hpp"

namespace numcheck::kernels::sim {

void misindex_blocks(const SimGemm&, model::GemmTask& task) {
  std::vector<float>& a = task.scales.a;
  for (auto line = a.begin(); line != a.end(); line += task.scales.parts) {
    std::rotate(line, line + task.scales.parts - 1, line + task.scales.parts);
  }
}

void misindex_columns(const SimGemm& gemm, model::GemmTask& task) {
  const std::int64_t block = op::scales_of_b(gemm.params).block_rows;
  std::vector<float>& b = task.scales.b;
  std::rotate(b.begin(), b.begin() + block * task.scales.parts, b.end());
}

void transpose_scales(const SimGemm& gemm, model::GemmTask& task) {
  const std::vector<float> right = task.scales.a;
  const std::int64_t m = gemm.params.m, parts = task.scales.parts;
  for (std::int64_t at = 0; at < m * parts; ++at) {
    task.scales.a[static_cast<std::size_t>(at)] = right[static_cast<std::size_t>(at % m * parts + at / m)];
  }
}

void leave_scales_out(const SimGemm&, model::GemmTask& task) {
  std::ranges::fill(task.scales.b, 1.0F);
}

void round_scales(const SimGemm&, model::GemmTask& task) {
  std::ranges::transform(task.scales.a, task.scales.a.begin(), [](float scale) {
    return static_cast<float>(core::round_to(static_cast<double>(scale), core::Dtype::bf16));
  });
}

}  // namespace numcheck::kernels::sim
