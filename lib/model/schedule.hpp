// The order in which a GEMM kernel adds its products: chains of steps, promotion, split-K.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "model/fused_step.hpp"
#include "op/mode.hpp"

namespace numcheck::model {

/// How one output element is accumulated.
///
///   slices     k is cut into split_k contiguous slices of ceil(k / split_k) products, rounded up to a multiple of
///              split_granularity; empty slices are omitted
///   segments   a slice is cut every promotion_interval products (0: not at all)
///   chain      a segment starts at zero and runs its products in ascending order
///   sum        segments are added to their slice, slices to the result, both ascending, in FP32, to nearest even; with a
///              slice_format every slice is rounded to it first, or, in place, the sum so far before each further slice
///
/// Measured with cuBLASLt 13.1 on an H200: unsplit chains, promotion every 128 products and contiguous slices reproduce
/// whole matrix products bit for bit; some kernels (algorithm 55, stream-K seams) do not follow this pattern.
struct Schedule {
  enum class Chain : std::uint8_t {
    fma,    ///< acc = fma(a_t, b_t, acc) in FP32
    fused,  ///< steps of `step.L` products
  } chain = Chain::fma;
  StepModel step;
  std::int64_t promotion_interval = 0;
  int split_k = 1;
  std::int64_t split_granularity = 1;
  std::optional<core::Dtype> slice_format;
  bool adds_in_place = false;
  bool reduces_slices = true;         ///< false: only the first slice reaches the output
  std::vector<std::int64_t> k_order;  ///< order of the products, as indices along k; empty: 0, 1, ..., k - 1
  std::string text;                   ///< "FP32 fused multiply-add chain, split-K 2"
};

/// Products [begin, end) of one slice or segment.
struct KRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The slices of k products; none if k is 0.
[[nodiscard]] std::vector<KRange> slices_of(const Schedule& schedule, std::int64_t k);

/// The schedule of a library GEMM with these properties (see gemm_arithmetic, whose exceptions it shares).
/// Precondition: split_k >= 1.
[[nodiscard]] Schedule gemm_schedule(int sm, const op::Mode& mode, bool promotes, bool tf32_class, int split_k = 1);

}  // namespace numcheck::model
