// Hypotheses about what became of right results: scaled, rounded otherwise, moved, lost.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/strings.hpp"
#include "diagnose/explanation.hpp"
#include "diagnose/hypothesis.hpp"
#include "diagnose/size_factor.hpp"
#include "diagnose/typed_numbers.hpp"

namespace numcheck::diagnose {
namespace {

using core::Dtype;

core::Overflow overflow_of(Dtype dtype) {
  return core::is_fp8(dtype) ? core::Overflow::saturate : core::Overflow::ieee;
}

Hypothesis with_values(const Evidence& evidence, std::string name, std::string cause, std::string remedy,
                       decltype(Trial::then) then) {
  Trial trial = as_declared(evidence.subject);
  trial.then = std::move(then);
  return {std::move(name), {}, std::move(cause), std::move(remedy), std::move(trial)};
}

/// All that is expected of the output, times c.
decltype(Trial::then) scaled_by(const Evidence& evidence, double c) {
  return change_of(evidence, [c](op::OutputValues& output, op::OutputYardsticks* yardsticks) {
    const auto scale = [](core::Buffer<float>& numbers, double factor) {
      for (float& number : numbers.span()) {
        number = static_cast<float>(static_cast<double>(number) * factor);
      }
    };
    for (double& y : output.value.span()) {
      y *= c;
    }
    for (core::Buffer<float>* errors : {&output.magnitude, &output.deviation, &output.terms}) {
      scale(*errors, std::abs(c));
    }
    if (yardsticks != nullptr) {
      scale(yardsticks->magnitude, std::abs(c));
      scale(yardsticks->deviation, std::abs(c));
    }
  });
}

/// What the arithmetic may err before the output is rounded: its bound, or for products 16 roundings of the sum of |terms|
/// (of FP8, whose sums keep 13 bits below the largest product, 4 such truncations);
/// of attention, whose `magnitude` is no bound, and of everything else at most a part of the spacing of the output's numbers,
/// so that what is not so rounded does not fit. What is defined bit for bit errs by nothing.
double slack_of(const op::OutputValues& output, const op::OutputYardsticks* terms, std::size_t i, Dtype dtype,
                double scale, bool is_of_fp8) {
  constexpr double kPart = 0.125;
  if (output.bit_exact) {
    return 0;
  }
  const double roundings = is_of_fp8 ? 0x1p-11 : 0x1p-20;
  const double most = kPart * core::ulp(output.value[i] * scale, dtype) / scale;
  if (terms != nullptr) {
    return std::min(roundings * static_cast<double>(terms->magnitude[i]), most);
  }
  const bool has_bound = !output.magnitude.empty() && output.row_facts.empty();
  const double bound = has_bound ? static_cast<double>(output.magnitude[i]) : most;
  return std::isfinite(bound) ? std::min(bound, most) : 0;
}

/// Numbers that a monotone function makes of y - slack to y + slack.
template <class Store>
bool fits(const Store& store, double y, double slack, double d) {
  const double one = store(y - slack), other = store(y + slack);
  return std::min(one, other) <= d && d <= std::max(one, other);
}

/// Expects the numbers that `store`, which is monotone, makes of the results. Where the arithmetic's error decides which,
/// what is delivered decides. `must_tell`: not if rounding to nearest gives as many of them.
template <class Store>
decltype(Trial::then) stored_by(const Evidence& evidence, Dtype in, Store store_code, bool must_tell = false) {
  constexpr double kHalfUlp = 0x1p-24;  // of the product with the scale, which is FP32
  const double scale = output_scale(evidence.subject, evidence.port);
  const bool is_of_fp8 = core::is_fp8(evidence.subject.c.mode->first);
  const auto store = [scale, store_code](double y) { return store_code(y * scale) / scale; };
  const auto nearest = [scale, in](double y) { return core::round_to(y * scale, in, overflow_of(in)) / scale; };
  return change_of(evidence, [store, nearest, must_tell, in, scale, is_of_fp8,
                              delivered = std::vector<double>(evidence.delivered.begin(), evidence.delivered.end())](
                                 op::OutputValues& output, op::OutputYardsticks* yardsticks) {
    std::vector<double> predicted(output.value.size());
    std::uint64_t equal = 0, nearest_equal = 0;
    for (std::size_t i = 0; i < predicted.size(); ++i) {
      const double y = output.value[i];
      const double slack =
          slack_of(output, yardsticks, i, in, scale, is_of_fp8) + (scale == 1 ? 0 : kHalfUlp * std::abs(y));
      const double d = delivered[i], stored = store(y);
      predicted[i] = fits(store, y, slack, d) && core::round_to(d * scale, in) == d * scale ? d : stored;
      equal += stored == d ? 1 : 0;
      nearest_equal += nearest(y) == d ? 1 : 0;
    }
    if (!must_tell || gains_bits(equal, nearest_equal, predicted.size())) {
      std::ranges::copy(predicted, output.value.data());
    }
  });
}

bool is_narrow(Dtype dtype) {
  return core::dtype_info(dtype).storage_bytes <= 2 && !core::is_integer(dtype);
}

std::vector<Hypothesis> scaled_output(const Evidence& evidence) {
  // A factor near 0 takes half of the squared error away, whatever was delivered: that says nothing of unrelated numbers.
  constexpr double kRelated = 0.01;
  const double factor = factor_of_output(evidence, kRelated).value_or(std::numeric_limits<double>::quiet_NaN());
  constexpr double kSmallest = 0x1p-20;
  constexpr double kBias = 0x1p-12;  // less than any scale that somebody may have confused
  std::vector<Hypothesis> all;
  if (!std::isfinite(factor) || factor == 0 || std::abs(factor - 1) < kSmallest) {
    return all;
  }
  if (std::abs(factor - 1) < kBias) {
    const std::string_view side = factor < 1 ? "small" : "large";
    all.push_back(with_values(
        evidence, fmt::format("output_too_{}", side),
        fmt::format("{} is too {} by {:.2g} of itself, throughout", evidence.port, side, std::abs(factor - 1)),
        factor < 1 ? "Sums that are truncated instead of rounded (tensor cores do that) lose such a share; so does an "
                     "approximate reciprocal or root."
                   : "Look for a scale, a reciprocal or a root that is off by that, throughout.",
        scaled_by(evidence, factor)));
    all.back().is_fitted = true;
    return all;
  }
  const bool is_of_codes = core::is_fp8(port_of(evidence).dtype) && output_scale(evidence.subject, evidence.port) == 1;
  std::vector<double> near = typed_near(factor);
  const std::optional<SizeFactor> of_size = factor_of_sizes(evidence.subject.c, factor);
  if (of_size.has_value()) {
    std::erase(near, of_size->factor);
    near.insert(near.begin(), of_size->factor);
  }
  if (factor < 0 && std::ranges::find(near, -1.0) == near.end()) {
    near.insert(near.begin(), -1.0);  // perhaps one of two causes
  }
  for (const double c : near) {
    if (c == 1) {
      continue;
    }
    const std::string text = core::shortest(c);
    const std::string is_size =
        of_size.has_value() && c == of_size->factor ? fmt::format(", which is {}", of_size->text) : std::string();
    all.push_back(with_values(
        evidence, "output_scaled=" + text,
        fmt::format("{} is {} times what it should be{}", evidence.port, text, is_size),
        c == -1 ? "Look for a missing or repeated minus sign."
        : !is_size.empty()
            ? "Look for a mean for a sum, or a sum for a mean (reduction=\"mean\", a loss that is divided by "
              "the number of tokens), for gradients that are averaged over devices, and for a softmax scale that is "
              "missing or multiplied twice."
        : c == 2 ? "Look for results that are added to those of an earlier run (a buffer that is not zeroed, gradients "
                   "that accumulate), or for a scale that is applied twice."
        : is_of_codes ? "If these are codes of such a scale, give it as a tensor: it is 1 here. Otherwise look for a "
                        "scale that is "
                        "missing or applied twice."
                      : "Look for a scale that is missing, applied twice, or inverted (alpha, 1/sqrt(d), "
                        "scale_inv, a mean for a sum).",
        scaled_by(evidence, c)));
    all.back().family = "output_scaled";
    all.back().is_fitted = near.size() > 1 && c == near.back();
    all.back().is_measured = true;
    const Dtype dtype = port_of(evidence).dtype;
    // Less than half an ulp is lost in the rounding of numbers that are rounded already.
    if (is_narrow(dtype) && std::abs(c - 1) > std::ldexp(1.0, -core::dtype_info(dtype).fraction_bits - 2)) {
      all.push_back(all.back());
      all.back().cause += ", multiplied after it was rounded";
      all.back().trial.then = stored_by(evidence, dtype, [c, dtype](double y) {
        return core::round_to(c * core::round_to(y, dtype, overflow_of(dtype)), dtype, overflow_of(dtype));
      });
    }
  }
  return all;
}

bool holds_only(std::span<const double> numbers, Dtype dtype) {
  return std::ranges::all_of(numbers, [dtype](double d) { return !std::isfinite(d) || core::round_to(d, dtype) == d; });
}

/// An FP32 output whose numbers have fewer bits: rounded to another format on the way.
std::vector<Hypothesis> narrower_output(const Evidence& evidence) {
  const op::Port port = port_of(evidence);
  std::vector<Hypothesis> all;
  struct Way {
    Dtype dtype;
    std::string_view name, spelled;
  };
  // Narrow formats first: what E5M2 holds, FP16 and BF16 hold as well.
  constexpr std::array kWays = {Way{Dtype::fp8_e5m2, "output_in_fp8_e5m2", "FP8 E5M2"},
                                Way{Dtype::fp8_e4m3, "output_in_fp8_e4m3", "FP8 E4M3"},
                                Way{Dtype::bf16, "output_in_bf16", "BF16"}, Way{Dtype::fp16, "output_in_fp16", "FP16"},
                                Way{Dtype::tf32, "output_in_tf32", "TF32"}};
  int found = 0;  // fraction bits of the narrowest that fits: others with as many cannot be told from it
  for (const Way& way : kWays) {
    const core::DtypeInfo& info = core::dtype_info(way.dtype);
    if (found != 0 && info.fraction_bits != found) {
      continue;
    }
    if (info.fraction_bits >= core::dtype_info(port.dtype).fraction_bits ||
        !holds_only(evidence.delivered, way.dtype)) {
      continue;
    }
    all.push_back(with_values(
        evidence, std::string(way.name),
        fmt::format("{} holds only {} numbers: it was rounded to {} before it was stored", evidence.port, way.spelled,
                    way.spelled),
        fmt::format("Look for a cast of the result, or an accumulator or output type of {}; or compare in that format.",
                    way.spelled),
        stored_by(evidence, way.dtype,
                  [dtype = way.dtype](double y) { return core::round_to(y, dtype, overflow_of(dtype)); })));
    found = info.fraction_bits;
  }
  return all;
}

/// A 16- or 8-bit output that was rounded in another way.
std::vector<Hypothesis> rounded_otherwise(const Evidence& evidence) {
  const op::Port port = port_of(evidence);
  const core::DtypeInfo& info = core::dtype_info(port.dtype);
  std::vector<Hypothesis> all;
  if (!is_narrow(port.dtype) || evidence.is_of_blocks) {  // rounding is the same in all blocks
    return all;
  }
  const auto truncate = [dtype = port.dtype](double y) {
    return core::round_to(y, dtype, overflow_of(dtype), core::Rounding::toward_zero);
  };
  all.push_back(with_values(evidence, "output_truncated",
                            fmt::format("{} was truncated to {}, not rounded to nearest", evidence.port, info.name),
                            "Use the rounding conversion (__float2bfloat16_rn, cvt.rn), not a shift or a mask of bits.",
                            stored_by(evidence, port.dtype, truncate)));
  struct Way {
    Dtype dtype;
    std::string_view name, spelled;
  };
  for (const Way& way :
       {Way{Dtype::fp16, "output_through_fp16", "FP16"}, Way{Dtype::bf16, "output_through_bf16", "BF16"},
        Way{Dtype::fp8_e4m3, "output_through_fp8_e4m3", "FP8 E4M3"},
        Way{Dtype::fp8_e5m2, "output_through_fp8_e5m2", "FP8 E5M2"}}) {
    if (way.dtype != port.dtype) {
      all.push_back(with_values(
          evidence, std::string(way.name),
          fmt::format("{} was rounded to {} first, then to {}", evidence.port, way.spelled, info.name),
          "Convert from the FP32 result directly: two roundings are not one.",
          stored_by(
              evidence, port.dtype,
              [first = way.dtype, stored = port.dtype](double y) {
                return core::round_to(core::round_to(y, first, overflow_of(first)), stored, overflow_of(stored));
              },
              true)));
    }
  }
  return all;
}

std::vector<Hypothesis> lost_numbers(const Evidence& evidence) {
  const op::Port port = port_of(evidence);
  const core::DtypeInfo& info = core::dtype_info(port.dtype);
  const double smallest_normal = std::ldexp(1.0, info.emin);
  std::vector<Hypothesis> all;
  const auto expects = [&](auto what) { return std::ranges::any_of(evidence.values.value.span(), what); };
  if (expects([](double y) { return std::isnan(y); })) {
    all.push_back(with_values(evidence, "nan_dropped", fmt::format("NaN in {} became 0", evidence.port),
                              "A maximum or a comparison drops NaN (fmaxf, relu as max(x, 0)): test for NaN first.",
                              change_each(evidence, [](double y) { return std::isnan(y) ? 0.0 : y; })));
  }
  if (expects([&](double y) { return y != 0 && std::abs(y) < smallest_normal; })) {
    all.push_back(with_values(
        evidence, "subnormals_flushed", fmt::format("subnormal numbers of {} became 0", evidence.port),
        "Compiled with -ftz=true or --use_fast_math: keep subnormal numbers, or compare with an absolute tolerance "
        "of the smallest normal number.",
        change_each(evidence, [smallest_normal](double y) { return std::abs(y) < smallest_normal ? 0.0 : y; })));
  }
  return all;
}

constexpr std::array kRows = {
    CatalogueRow{"output_scaled=NUMBER", "the output times a constant, fitted", &scaled_output},
    CatalogueRow{"output_in_FORMAT", "an output whose numbers fit a narrower format: output_in_bf16", &narrower_output},
    CatalogueRow{"output_truncated, output_through_FORMAT", "a 16- or 8-bit output truncated, or rounded twice",
                 &rounded_otherwise},
    CatalogueRow{"nan_dropped, subnormals_flushed", "NaN or subnormal numbers that became 0", &lost_numbers}};

}  // namespace

std::span<const CatalogueRow> output_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
