#include "tolerance/gemm_overflow.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/codec.hpp"
#include "tolerance/alpha_first.hpp"

namespace numcheck::tolerance {
namespace {

/// True if the product of the scales is infinite in FP32.
bool scales_overflow(const model::ModelRequest& request, const op::GemmParams& p) {
  const auto is_infinite = [](double x) { return std::isinf(core::round_to(x, core::Dtype::fp32)); };
  const double scales = request.first_scale * request.second_scale;
  return is_infinite(scales) || is_infinite(scales * p.alpha);
}

/// The largest operand that stays finite when it is rounded to a shorter format or multiplied by alpha (algorithm 11 of
/// cuBLASLt 13.1 does so first).
double largest_operand(const model::ModelRequest& request, const op::GemmParams& p, core::Dtype format) {
  const bool alpha_first = request.arithmetic == model::MatrixArithmetic::by_mode_alpha_first;
  return core::dtype_info(format).max_finite / (alpha_first ? std::max(1.0, std::abs(p.alpha)) : 1);
}

}  // namespace

void add_overflow(const model::ModelRequest& request, const op::GemmParams& p, std::string_view port,
                  const OverflowFacts& facts, model::ErrorModel& model) {
  const double margin = p.epilogue == "gelu" ? 0.495 : 0.99;  // z (1 + tanh) is up to twice gelu(z)
  const double limit = margin * (facts.fp16_sums ? 65520.0 : 0x1p128);
  const bool has_addend = p.beta != 0 || p.bias;
  if (port == "d") {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr double kGelu = 10;  // gelu(z) = z in FP32
    model.sum_above = p.epilogue == "none" ? -kInfinity : p.epilogue == "relu" ? 0 : kGelu;
    model.minus_infinity_is_nan = p.epilogue == "gelu";
  }
  const double finite = largest_operand(request, p, facts.operands);
  if (facts.fp32_storage && std::max(request.first_max, request.second_max) > finite) {
    model.operand_limit = finite;
  }
  const auto k = static_cast<double>(p.k);
  if (scales_overflow(request, p) || (port == "d_amax" && p.alpha != 0 && std::isfinite(model.operand_limit))) {
    model.overflow_magnitude = 0;
    model.overflow_possible = true;
    model.sum_above = std::numeric_limits<double>::infinity();
    return;
  }
  if (p.alpha == 0) {
    model.overflow_magnitude = limit;
    model.overflow_possible = true;
    model.zero_times_product = true;
    model.reach = k / limit;
    return;
  }
  const double most = k * request.first_max * request.second_max;
  const bool reaches = most * std::max(1.0, facts.scale) >= limit;
  // Sums that a small alpha makes finite may overflow before it is applied. C and bias are never multiplied by it.
  const double before = most * facts.scale / std::min(1.0, facts.unit);
  const double unit = has_addend && before < limit ? 1 : std::min(1.0, facts.unit);
  model.overflow_magnitude = limit * unit / facts.enlargement;
  const bool shortened = facts.fp32_storage && facts.operands != core::Dtype::fp32;
  // C and bias may be arbitrarily large, and an FP32 subnormal may become zero when it is shortened (inf * 0).
  const double vanishes = vanishes_below(request, p.alpha);
  model.overflow_possible = shortened || has_addend || reaches || vanishes > 0 || std::isfinite(model.operand_limit);
  if (!has_addend) {
    model.reach = k * std::max(1.0, facts.scale) / limit;
    model.operand_least = std::max(vanishes, shortened ? std::ldexp(1.0, core::dtype_info(facts.operands).emin) : 0);
  }
}

}  // namespace numcheck::tolerance
