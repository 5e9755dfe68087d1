#include "model/schedule.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/arithmetic.hpp"
#include "model/instruction_table.hpp"

namespace numcheck::model {
namespace {

// The slices measured on an H200 are consistent with these multiples; a kernel may use smaller ones.
constexpr std::int64_t kFmaGranularity = 8;
constexpr std::int64_t kTf32Granularity = 32;
constexpr std::int64_t kFp8Granularity = 128;
constexpr std::int64_t kGranularity16 = 64;

std::int64_t granularity_of(const op::Mode& mode) {
  if (mode.first == core::Dtype::fp32) {
    return kTf32Granularity;
  }
  return mode.scaled ? kFp8Granularity : kGranularity16;
}

}  // namespace

std::vector<KRange> slices_of(const Schedule& schedule, std::int64_t k) {
  std::vector<KRange> slices;
  if (k == 0) {
    return slices;
  }
  const std::int64_t even = (k + schedule.split_k - 1) / schedule.split_k;
  const std::int64_t step = schedule.split_granularity;
  const std::int64_t length = schedule.split_k == 1 ? k : (even + step - 1) / step * step;
  for (std::int64_t begin = 0; begin < k; begin += length) {
    slices.push_back({begin, std::min(begin + length, k)});
  }
  return slices;
}

Schedule gemm_schedule(int sm, const op::Mode& mode, bool promotes, bool tf32_class, int split_k) {
  const Arithmetic arithmetic = gemm_arithmetic(sm, mode, promotes, tf32_class);
  Schedule s;
  s.split_k = split_k;
  s.split_granularity = kFmaGranularity;
  if (arithmetic.kind != Arithmetic::Kind::fma_chain) {
    s.chain = Schedule::Chain::fused;
    s.step = gemm_instruction(sm, mode)->step;
    s.promotion_interval = arithmetic.promotion_interval;
    s.split_granularity = granularity_of(mode);
  }
  s.text = arithmetic.description + (split_k == 1 ? ", unsplit" : fmt::format(", split-K {}", split_k));
  return s;
}

}  // namespace numcheck::model
