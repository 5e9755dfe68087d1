#include "op/gemm_exact.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "core/strings.hpp"
#include "op/gemm_scaling.hpp"

namespace numcheck::op {
namespace {

using core::Dtype;

constexpr int kPromotionInterval = 128;  // products between promotions of a split FP8 accumulator

int accumulator_bits(const GemmParams& p, const Mode& mode) {
  if (mode.compute == Compute::fp16) {
    return 11;
  }
  return mode.scaled && !gemm_promotes(p, mode) ? 14 : 24;
}

/// A factor as odd * 2^-shift with a small odd part and shift >= 0, so that multiples stay exact.
struct Dyadic {
  std::int64_t odd = 0;
  int shift = 0;
  bool ok = false;
};

Dyadic as_dyadic(double value) {
  constexpr int kMaxShift = 4;
  constexpr double kMaxOdd = 16;
  for (int shift = 0; shift <= kMaxShift; ++shift) {
    const double scaled = std::ldexp(std::fabs(value), shift);
    if (scaled == std::floor(scaled) && scaled <= kMaxOdd) {
      return {static_cast<std::int64_t>(scaled), shift, true};
    }
  }
  return {};
}

/// Largest integer up to which every integer is a value of the format, capped to keep the numbers small.
std::int64_t largest_integer(Dtype dtype) {
  constexpr std::int64_t kCap = 15;
  return std::min(kCap, std::int64_t{1} << (core::dtype_info(dtype).fraction_bits + 1));
}

/// Spreads a budget for the sum of |products| over k products.
ExactPlan spread(std::int64_t budget, std::int64_t k, const Mode& mode) {
  ExactPlan plan;
  const std::int64_t per_product = k == 0 ? budget : budget / k;
  if (per_product >= 1) {
    const auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(per_product)));
    plan.max_first = std::min(largest_integer(mode.first), root);
    plan.max_second = std::min(largest_integer(mode.second), per_product / plan.max_first);
  } else {
    plan.stride = (k + budget - 1) / budget;
  }
  return plan;
}

std::int64_t largest_scales(const GemmParams& p) {
  return has_line_scales(p) ? kLargestExactScales : 1;
}

bool takes_promotion_form(const GemmParams& p, const Mode& mode) {
  constexpr std::int64_t kMaxSum = std::int64_t{1} << 24;
  constexpr std::int64_t kMaxProduct = 15 * 15;
  return gemm_promotes(p, mode) && mode.first == Dtype::fp8_e4m3 && mode.second == Dtype::fp8_e4m3 &&
         gemm_output_dtype(p, mode) == Dtype::fp32 && p.k >= 2 * kPromotionInterval && p.k % kPromotionInterval == 0 &&
         p.k * kMaxProduct * largest_scales(p) <= kMaxSum && p.alpha == 1 && p.beta == 0 && !p.bias;
}

}  // namespace

ExactPlan gemm_exact_plan(const Params& params, const Mode& mode) {
  const auto p = from_params<GemmParams>(params);
  if (p.epilogue == "gelu") {
    return {.reason = "gelu has no exact leg: its values are not rational"};
  }
  const Dyadic alpha = as_dyadic(p.alpha);
  const Dyadic beta = as_dyadic(p.beta);
  if (!alpha.ok || !beta.ok) {
    return {.reason = "alpha = " + core::shortest(p.alpha) + " and beta = " + core::shortest(p.beta) +
                      " must be small integers or multiples of 1/16 up to 1 for the exact leg"};
  }
  if (takes_promotion_form(p, mode)) {
    return {.max_first = 15, .max_second = 15, .positive = true};
  }
  const int output_bits = core::dtype_info(gemm_output_dtype(p, mode)).fraction_bits + 1;
  const int shift = std::max(alpha.shift, beta.shift);
  const std::int64_t addend_units = (beta.odd << (shift - beta.shift)) + (p.bias ? std::int64_t{1} << shift : 0);
  const std::int64_t unit = std::max<std::int64_t>(1, (alpha.odd << (shift - alpha.shift)) * largest_scales(p));
  std::int64_t total = std::int64_t{1} << std::min(accumulator_bits(p, mode), output_bits);
  std::int64_t budget = (total - addend_units) / unit;
  if (gemm_promotes(p, mode)) {
    // A chunk between promotions has the 14-bit accumulator: within it the same density must fit into 2^14.
    const std::int64_t chunk = (std::int64_t{1} << 14) / unit;
    budget = std::min(budget, chunk * std::max<std::int64_t>(1, (p.k + kPromotionInterval - 1) / kPromotionInterval));
  }
  if (budget < 1) {
    return {.reason = "no integers fit: alpha, beta and bias use up the output's " + std::to_string(output_bits) +
                      "-bit significand"};
  }
  return spread(budget, p.k, mode);
}

}  // namespace numcheck::op
