#include "tolerance/gemm_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "model/arithmetic.hpp"
#include "op/gemm.hpp"
#include "op/gemm_scaling.hpp"
#include "tolerance/accumulation.hpp"
#include "tolerance/alpha_first.hpp"
#include "tolerance/few_bits.hpp"
#include "tolerance/gemm_epilogue_errors.hpp"
#include "tolerance/gemm_overflow.hpp"
#include "tolerance/gemm_request.hpp"
#include "tolerance/lost_subnormals.hpp"
#include "tolerance/output_reduction.hpp"
#include "tolerance/product_spacing.hpp"

namespace numcheck::tolerance {
namespace {

using core::Dtype;

constexpr double kRoundingVariance = 0.1803;  // of a log-uniform value rounded to nearest, in units of u^2

model::Arithmetic arithmetic_of(const GemmRequest& g) {
  const op::Mode& mode = *g.request.mode;
  if (g.operands == model::PrecisionClass::bf16_inputs) {
    return model::gemm_arithmetic(g.request.sm, *op::find_mode("bf16"), false, false);
  }
  const bool has_no_instruction = !g.is_fp32_storage && model::gemm_instruction(g.request.sm, mode) == nullptr;
  return g.fp32_chain && has_no_instruction
             ? model::fma_arithmetic(g.request.sm)
             : model::gemm_arithmetic(g.request.sm, mode, op::gemm_promotes(g.p, mode), !g.plain_fp32());
}

Accumulation accumulation_of(const GemmRequest& g, const model::Arithmetic& arithmetic) {
  // If no tensor core suits the shape, libraries multiply the same operands in an FP32 chain.
  if (arithmetic.kind == model::Arithmetic::Kind::fp16_chain && !g.plain_fp32()) {
    return fp16_accumulation(arithmetic, g.products, g.cancels());
  }
  const Accumulation chain = fma_accumulation(g.products, g.drift());
  if (g.plain_fp32()) {
    return chain;
  }
  const int fraction_bits = core::dtype_info(g.first).fraction_bits + core::dtype_info(g.second).fraction_bits;
  return either_of(fused_accumulation(arithmetic, g.products, fraction_bits), chain);
}

/// Products with a subnormal operand are aligned by the format's smallest exponent; those with 0 are not.
struct SubnormalProducts {
  double excess = 0;   ///< by which A* exceeds A at most, per product
  double largest = 0;  ///< of such products, as they are aligned
};

SubnormalProducts subnormal_products(const GemmRequest& g) {
  if (op::has_line_scales(g.p)) {
    return {};  // A has them: the scales of other rows and blocks say nothing of them
  }
  const auto aligned_at = [](core::Dtype format, double least) {
    const double normal = std::ldexp(1.0, core::dtype_info(format).emin);
    return least < normal ? normal : 0;
  };
  const double of_a = aligned_at(g.first, g.request.first_min), of_b = aligned_at(g.second, g.request.second_min);
  const double with_a = of_a * g.request.second_max, with_b = of_b * g.request.first_max;
  return {(with_a + with_b + of_a * of_b) * g.product_scale, std::max(with_a, with_b) * g.product_scale};
}

void add_accumulation(const GemmRequest& g, const Accumulation& sum, model::ErrorModel& model) {
  // The yardsticks are those of the unrounded inputs: rounding them to the storage format may enlarge them.
  const double enlarged = g.enlargement();
  model.bound_magnitude = sum.magnitude * enlarged;
  model.var_second = sum.second * enlarged * enlarged;
  model.var_value = sum.value;
  model.var_coherent = sum.coherent;
  model.slope_low = -sum.slope;
  model.slope_coherent = -sum.slope_coherent;
  model.slope_slack = sum.slope_slack;

  const SubnormalProducts aligned = subnormal_products(g);
  const auto k = static_cast<double>(g.products);
  const double spacing = g.accumulates_fp16() ? 0x1p-24 : 0x1p-149;  // of subnormal partial sums
  // Of the sums that are rounded to it: with their scales, or before they are multiplied by them.
  const bool has_powers_of_two = op::has_scales_in_products(g.p) && !op::has_global_scales(g.p);
  const double scale = std::max(1.0, has_powers_of_two ? std::abs(g.p.alpha) : g.product_scale);
  if (op::has_line_scales(g.p) && (!op::has_scales_in_products(g.p) || g.fp32_chain)) {
    // The product of two scales, the sum multiplied by it, and their sum: three roundings of each block's part, of which
    // none is shared by many.
    const double unit = unit_of(Dtype::fp32);
    model.bound_magnitude += 3 * unit * enlarged;
    model.var_second += unit * unit * enlarged * enlarged;
    model.var_value += unit * unit;
  }
  const double subnormal = (k + 4) * spacing * scale;
  model.slope_absolute = g.accumulates_fp16() ? 0 : subnormal;  // sums in FP16 are hardly ever all below 2^-14
  model.bound_absolute = sum.star * k * aligned.excess + subnormal;
  model.var_absolute = sum.absolute * std::pow(aligned.largest, 2) + (k + 4) / 12 * std::pow(spacing * scale, 2);
}

/// FP8's accumulators keep 14 bits, FP32 addends 24.
void set_addends(const GemmRequest& g, model::ErrorModel& model) {
  const bool has_addends = g.p.beta != 0 || g.p.bias;
  if (!has_addends || !g.request.mode->scaled || g.fp32_chain || g.products == 0 || g.runs || model.exact ||
      core::is_fp8(model.output)) {
    return;
  }
  model.addends =
      model::AddendErrors{.magnitude = model.bound_magnitude, .value = model.var_value, .coherent = model.var_coherent};
  if (g.p.epilogue == "gelu") {
    model.addends->gain = kGeluSteepness;
    model.addends->square_gain = kGeluSteepness * kGeluSteepness;
  }
}

/// Relative error of a constant operand when it is rounded to the format in which it is multiplied.
double constant_error(const data::Pattern& pattern, double value, Dtype to) {
  return pattern.order == data::Order::constant && value > 0 ? (core::round_to(value, to) - value) / value : 0;
}

/// Operands stored as FP32 that are rounded before they are multiplied, where y is the result for the unrounded ones.
///   nearest   V_in = 0.36 v^2 S2
///   toward 0  slope -1.4427 v, rest 0.63 v per rms(y), with v = 2^-11
/// A constant operand has one known rounding error, which all its products share.
/// Source: tensor_core_numerics, section 5.3.
void add_conversion(const GemmRequest& g, model::ErrorModel& model) {
  if (!g.is_fp32_storage || g.first == Dtype::fp32) {
    return;
  }
  const double v = unit_of(g.first);
  if (g.conversion_known()) {
    // Nothing but what subnormals lose, which no probe shows: see below.
  } else if (g.operands == model::PrecisionClass::tf32_truncated) {
    model.bound_magnitude += 4 * v + 4 * v * v;
    model.var_second += std::pow(0.63 * v, 2);
    model.var_value += std::pow(1.4427 * v, 2);
    model.slope_low -= 1.4427 * v;
  } else {
    model.bound_magnitude = model.bound_magnitude * (1 + v) * (1 + v) + 2 * v + v * v;
    model.var_second += 2 * kRoundingVariance * v * v;
  }
  const double shared = g.conversion_known()
                            ? 0
                            : std::abs(constant_error(g.request.first_pattern, g.request.first_max, g.first)) +
                                  std::abs(constant_error(g.request.second_pattern, g.request.second_max, g.first));
  model.var_value += shared * shared;
  model.slope_slack += shared;
  // FP32 subnormals round in steps of 2^-136 to TF32 and of 2^-133 to BF16.
  const core::DtypeInfo& format = core::dtype_info(g.first);
  const double step = std::ldexp(1.0, format.emin - format.fraction_bits) * g.product_scale;
  const double most_a = g.request.first_max * step;
  const double most_b = g.request.second_max * step;
  const auto k = static_cast<double>(g.products);
  model.slope_absolute += k * (most_a + most_b) / 2;
  model.bound_absolute += k * (most_a + most_b) / 2;
  model.var_absolute += k * (most_a * most_a + most_b * most_b) / 12;
}

/// The products of a constant c and numbers on a grid g lie on a grid themselves, which may be misaligned with that of
/// the partial sum: a mean rounding error of at most c g / 2 <= u |p| per step, u sum |p| in all. Measured for k = 128
/// to 2048 and uniform numbers in (0, 1]: 0.68 to 0.84 u y for c = 0.1, 1.6 and 16/9, none for c = 3 and 1.4.
void add_repetition(const GemmRequest& g, model::ErrorModel& model) {
  const data::Pattern& a = g.request.first_pattern;
  const data::Pattern& b = g.request.second_pattern;
  const auto misaligned = [](const data::Pattern& pattern, double value) {
    return pattern.order == data::Order::constant && !is_power_of_two(value);
  };
  if (misaligned(a, g.request.first_max) || misaligned(b, g.request.second_max)) {
    model.slope_slack += unit_of(Dtype::fp32);
  }
  // Rows agree if they are the same sum, or if the rounding errors of B's elements add up alike in all of them: the
  // correlation of two rows is (mean / rms)^2 of A, which is less than the square of the coherence.
  const bool rounds = g.is_fp32_storage && g.first != Dtype::fp32 && !g.conversion_known();
  constexpr double kMostlyOneSign = 0.5;
  const auto repeats = [rounds](const data::Pattern& pattern) {
    return pattern.order == data::Order::constant || (rounds && pattern.coherence > kMostlyOneSign);
  };
  model.rows_agree = repeats(a);
  model.columns_agree = repeats(b);
  // The sum of a_t b_t follows that of a_t mean(b), which may stray far on the way, and not in the end.
  const auto walks = [](const data::Pattern& pattern) {
    return pattern.coherence > kMostlyOneSign || pattern.order == data::Order::signed_runs;
  };
  model.rows_walk_alike = walks(a);
  model.columns_walk_alike = walks(b);
}

/// Operands that repeat: rounding errors need not cancel and partial sums may be much larger than the sum, so only the
/// bound holds. V is chosen so that an element at its bound just meets the limit of G2, and G3 is not gated.
void widen_for_patterns(const GemmRequest& g, model::ErrorModel& model) {
  const data::Order a = g.request.first_pattern.order;
  const data::Order b = g.request.second_pattern.order;
  if (a != data::Order::structured && b != data::Order::structured &&
      (a != data::Order::constant || b != data::Order::constant)) {
    return;
  }
  model.var_magnitude = std::max(model.var_magnitude, std::pow(model.bound_magnitude / model.kappa, 2));
  model.var_absolute = std::max(model.var_absolute, std::pow(model.bound_absolute / model.kappa, 2));
  model.slope_slack = std::numeric_limits<double>::infinity();
}

/// Products of the two scales may be subnormal, or 0, before anything is multiplied by them: so many times 2^-149 are lost.
double lost_by_scales(const GemmRequest& g) {
  const double codes = static_cast<double>(g.products) * g.request.first_max * g.request.second_max;
  return g.request.mode->scaled ? codes * std::max(1.0, std::abs(g.p.alpha)) : 0;
}

/// Share of a tensor of scales that are next to powers of two: they add few bits to what they multiply.
double share_of_short_scales(std::span<const op::Operand> operands, std::string_view port) {
  const op::Operand* scales = op::find_operand(operands, port);
  if (scales == nullptr || scales->elements() == 0) {
    return 1;
  }
  constexpr double kBits = 0x1p10;  // of a significand in [1, 2): FP32 has 2^23
  const auto is_short = [](double scale) {
    int exponent = 0;
    const double significand = 2 * std::frexp(std::fabs(scale), &exponent) * kBits;
    return scale == 0 || !std::isfinite(scale) || significand == std::floor(significand);
  };
  const std::span values(scales->data, scales->elements());
  return static_cast<double>(std::ranges::count_if(values, is_short)) / static_cast<double>(values.size());
}

/// Sums that are multiplied by FP32 numbers of all bits have all bits.
void add_spacing_of_scaled(const GemmRequest& g, model::ErrorModel& model) {
  const double without = share_of_short_scales(g.request.operands, "a_scale_inv") *
                         share_of_short_scales(g.request.operands, "b_scale_inv");
  if (g.p.power_of_two || op::has_scales_in_products(g.p) || without > 0.1) {
    return;
  }
  model.spacing = product_spacing(
      g.request, g.p, {.scale = std::max(g.product_scale, lost_by_scales(g)), .enlargement = g.enlargement()});
  constexpr double kFewCodes = 0.05;  // sums of a few different codes end in zeros more often than by chance
  model.spacing->share.fill(without + kFewCodes);
}

/// What the operands' own rounding leaves of their bits is known only where they are.
void add_spacing(const GemmRequest& g, const model::Arithmetic& arithmetic, model::ErrorModel& model) {
  const bool converts = g.is_fp32_storage && !g.plain_fp32();
  if (model.output == Dtype::fp32 && op::has_line_scales(g.p)) {
    add_spacing_of_scaled(g, model);
    return;
  }
  if (model.output != Dtype::fp32 || (converts && (g.request.first == nullptr || g.request.second == nullptr))) {
    return;
  }
  model.spacing =
      product_spacing(g.request, g.p,
                      {.unit = g.plain_fp32() ? 0 : accumulator_unit(arithmetic),
                       .chains = arithmetic.promoted ? static_cast<double>(g.p.k) / arithmetic.promotion_interval : 1,
                       .subnormal = subnormal_products(g).excess,
                       .scale = std::max(g.product_scale, lost_by_scales(g)),
                       .enlargement = g.enlargement()});
  if (converts) {
    const bool truncates = g.operands == model::PrecisionClass::tf32_truncated;
    model.spacing->share = few_bit_shares(g.p, *g.request.first, *g.request.second, g.first,
                                          truncates ? core::Rounding::toward_zero : core::Rounding::nearest_even);
  }
}

}  // namespace

model::ErrorModel gemm_error_model(const model::ModelRequest& request, std::string_view port) {
  if (port != "d" && port != "d_amax") {
    throw core::InternalError("gemm has no error model for port " + std::string(port));
  }
  const GemmRequest g(request);
  const model::Arithmetic arithmetic = arithmetic_of(g);
  model::ErrorModel model;
  // Section 5.4: 4 admits every order of an FP32 sum and rejects TF32 (255 at k = 4096).
  model.kappa = g.plain_fp32() ? 4 : 3;
  model.exact = request.exact_leg;
  model.output = port == "d" ? op::gemm_output_dtype(g.p, *request.mode) : Dtype::fp32;
  model.output_scale = request.output_scale;
  model.reduction = static_cast<double>(g.p.k);
  model.nan_may_become_zero = g.p.epilogue == "relu";
  model.overflow_may_be_finite = g.p.epilogue == "relu" || port == "d_amax";
  add_accumulation(g, accumulation_of(g, arithmetic), model);
  set_addends(g, model);
  if (!g.plain_fp32() && g.products != 0) {
    add_lost_subnormals(request, g.p, arithmetic, g.product_scale, model);
  }
  add_conversion(g, model);
  add_alpha_first(g, model);
  add_repetition(g, model);
  add_cancellation(g, model);
  add_epilogue(g, model);
  widen_for_patterns(g, model);
  if (port == "d") {
    model.relu = g.p.epilogue == "relu" && model.bound_magnitude > 0;
    add_spacing(g, arithmetic, model);
    model.terms = true;
    if (request.first != nullptr && request.second != nullptr) {
      model.rounded_operands = rounded_operands(*request.first, *request.second, g.is_fp32_storage);
    }
  }
  add_overflow(request, g.p, port,
               {.operands = g.first,
                .fp32_storage = g.is_fp32_storage,
                .fp16_sums = g.accumulates_fp16(),
                .scale = g.product_scale,
                .unit = g.request.mode->scaled ? std::abs(g.p.alpha) : g.product_scale,
                .enlargement = g.enlargement()},
               model);
  model.source = fmt::format("gemm/{} on {}, k={}{}", request.mode->name,
                             g.fp32_chain ? "own FP32 fused multiply-add chain" : arithmetic.description, g.p.k,
                             g.is_fp32_storage ? fmt::format(", operands {}{}", model::class_name(g.operands),
                                                             g.conversion_known() ? " as converted" : "")
                                               : "");
  return model;
}

}  // namespace numcheck::tolerance
