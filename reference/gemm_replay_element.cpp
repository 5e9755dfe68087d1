#include "reference/gemm_replay_element.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/codec.hpp"

namespace numcheck::reference {
namespace {

constexpr double kGeluSteepness = 1.13;

double square(double x) {
  return x * x;
}

/// What FP32 may lose of a number: nothing if it holds it.
double lost_in_fp32(double value) {
  return static_cast<double>(static_cast<float>(value)) == value ? 0 : 0x1p-24 * value;
}

/// Sums of rounded terms have few bits: the factor may give them more.
Sum scaled(const Sum& sum, double factor) {
  return sum.variance > 0 ? Sum{factor * sum.value, factor * factor * sum.variance} : in_fp32(factor, sum.value);
}

Sum plus(const Sum& x, const Sum& y) {
  return {x.value + y.value, x.variance + y.variance};
}

/// Adds a term in FP32. Sums of rounded terms, which have few bits, may be exact there.
Sum with_term(const Sum& sum, const Sum& term) {
  const Sum exact = plus(sum, term);
  const double error = sum.variance > 0 ? 0x1p-24 * term.value : lost_in_fp32(exact.value);
  return {exact.value, exact.variance + square(error)};
}

/// P(e > distance) of a normal error.
double beyond(double distance, double variance) {
  constexpr double kNever = 8;
  if (!(variance > 0) || distance > kNever * std::sqrt(variance)) {
    return 0;
  }
  return 0.5 * std::erfc(distance / std::sqrt(2 * variance));
}

}  // namespace

Sum in_fp32(double factor, double value) {
  const double product = factor * value;
  const double error = lost_in_fp32(factor) == 0 ? lost_in_fp32(product) : 0x1p-24 * product;
  return {product, square(error)};
}

std::string Scheme::text() const {
  std::string text;
  switch (reduction) {
    case Reduction::none:
      return bias_in_product ? "bias among the product" : "";
    case Reduction::stored:
      text = "each rounded, then added";
      break;
    case Reduction::in_place:
      text = "each added to the rounded sum so far";
      break;
    case Reduction::running:
      text = "each rounded, and added to the rounded sum so far";
      break;
  }
  text += descending ? ", the last one first" : "";
  text += addend_first ? ", C before them" : "";
  text += bias_first ? ", bias with the first" : "";
  return text + (scaled_late ? ", before alpha" : "");
}

std::vector<Scheme> schemes_of(const op::EarlyRounding& rounding, const GemmOperands& g) {
  using Reduction = Scheme::Reduction;
  std::vector<Scheme> all;
  const bool bias_may_come_early = rounding.product && g.bias != nullptr;
  if (rounding.slices < 2) {
    all.push_back({});
    if (bias_may_come_early) {
      all.push_back({.bias_in_product = true});
    }
    return all;
  }
  std::vector<Scheme> reductions = {{.reduction = Reduction::stored}};
  for (const Reduction reduction : {Reduction::in_place, Reduction::running}) {
    for (const bool descending : {false, true}) {
      reductions.push_back({.reduction = reduction, .descending = descending});
      if (g.c != nullptr && !rounding.product) {
        reductions.push_back({.reduction = reduction, .descending = descending, .addend_first = true});
      }
      if (g.bias != nullptr && !rounding.product && !rounding.sum) {
        reductions.push_back({.reduction = reduction, .descending = descending, .bias_first = true});
      }
    }
  }
  for (const Scheme& reduction : reductions) {
    for (const bool late : {false, true}) {
      for (const bool with_bias : {false, true}) {
        // Powers of two, too: slices may be subnormal before them or after.
        const bool late_matters = std::abs(g.product_scale) != 1 && !reduction.addend_first && !reduction.bias_first;
        if ((!late || late_matters) && (!with_bias || bias_may_come_early)) {
          Scheme scheme = reduction;
          scheme.scaled_late = late;
          scheme.bias_in_product = with_bias;
          all.push_back(scheme);
        }
      }
    }
  }
  return all;
}

ElementReplay::ElementReplay(const op::ReplayRequest& request, const GemmOperands& g)
    : rounding_(request.rounding),
      dtype_(request.dtype),
      scale_(request.scale),
      product_scale_(g.product_scale),
      epilogue_(parse_epilogue(g.params)) {}

double ElementReplay::round(double value) const {
  const core::Overflow overflow = core::is_fp8(dtype_) ? core::Overflow::saturate : core::Overflow::ieee;
  return core::round_to(value * scale_, dtype_, overflow) / scale_;
}

void Chances::scale(double factor) noexcept {
  step *= std::abs(factor);
  variance *= factor * factor;
}

Sum ElementReplay::rounded(const Sum& sum, Chances& chances) const {
  const double nearest = round(sum.value);
  const double half = core::ulp(nearest * scale_, dtype_) / scale_ / 2;
  chances.otherwise +=
      beyond(nearest + half - sum.value, sum.variance) + beyond(sum.value - nearest + half, sum.variance);
  chances.step = std::max(chances.step, 2 * half);
  chances.variance += square(2 * half) / 12 + sum.variance;
  return {nearest, 0};
}

Sum ElementReplay::stored_slices(const ElementParts& parts, const Scheme& scheme, Chances& chances) const {
  const double early = scheme.scaled_late ? 1 : product_scale_;
  Sum sum;
  for (const Sum& slice : parts.slices) {
    sum = plus(sum, rounded(scaled(slice, early), chances));
  }
  chances.scale(product_scale_ / early);
  return scaled(sum, product_scale_ / early);
}

Sum ElementReplay::product(const ElementParts& parts, const Scheme& scheme, Chances& chances) const {
  using Reduction = Scheme::Reduction;
  if (scheme.reduction == Reduction::none) {
    return scaled(parts.slices.front(), product_scale_);
  }
  if (scheme.reduction == Reduction::stored) {
    return stored_slices(parts, scheme, chances);
  }
  const double early = scheme.scaled_late ? 1 : product_scale_;
  const std::size_t count = parts.slices.size();
  Sum sum = plus(scheme.addend_first ? parts.addend : Sum{}, scheme.bias_first ? parts.bias : Sum{});
  for (std::size_t i = 0; i < count; ++i) {
    Sum slice = scaled(parts.slices[scheme.descending ? count - 1 - i : i], early);
    slice = scheme.reduction == Reduction::running ? rounded(slice, chances) : slice;
    sum = plus(sum, slice);
    sum = i + 1 < count ? rounded(sum, chances) : sum;
  }
  chances.scale(product_scale_ / early);
  return scaled(sum, product_scale_ / early);
}

double ElementReplay::astray(const Sum& z, const Prediction& found, const Chances& chances) const {
  constexpr double kDeviations = 6, kSlack = 3, kTanh = 0x1p-16;
  const bool gelu = epilogue_ == Epilogue::gelu;
  const double probable = kSlack * chances.otherwise;
  const double steps = 1 + std::ceil(probable + kDeviations * std::sqrt(probable));
  const double before = std::max(kDeviations * std::sqrt(2 * (chances.variance + z.variance)), steps * chances.step);
  const double last = 2 * core::ulp(std::max(std::abs(found.low), std::abs(found.high)) * scale_, dtype_) / scale_;
  return (gelu ? kGeluSteepness : 1) * before + last + (gelu ? kTanh * std::abs(z.value) : 0);
}

Prediction ElementReplay::finish(const Sum& z, double tanh_error, const Chances& chances) const {
  const bool gelu = epilogue_ == Epilogue::gelu;
  const double value = apply_epilogue(epilogue_, z.value);
  const auto with_astray = [&](Prediction found) {
    found.astray = astray(z, found, chances);
    return found;
  };
  if (epilogue_ == Epilogue::relu && z.value < 0) {
    return with_astray({0, 0, beyond(-z.value, z.variance)});
  }
  // gelu itself is computed in FP32, where 1 + tanh loses the bits that they share: halves of subnormal sums become ties.
  constexpr double kMostErrors = 4;
  const double own = gelu ? 0x1p-24 * z.value : 0;
  const double variance = gelu ? kGeluSteepness * kGeluSteepness * z.variance + own * own : z.variance;
  const double spread = std::abs(z.value) / 2 * tanh_error + kMostErrors * std::abs(own);
  // Where the sum's error may be of several roundings, as in FP32, no bits are predicted, but an interval.
  constexpr double kFar = 4, kFine = 4;  // standard deviations
  const double far = kFar * std::sqrt(variance);
  const auto half_ulp = [this](double at) { return core::ulp(at * scale_, dtype_) / scale_ / 2; };
  if (kFine * std::sqrt(variance) > half_ulp(value)) {
    return with_astray(
        {round(value - spread - far), round(value + spread + far), chances.otherwise + 2 * beyond(kFar, 1)});
  }
  const Prediction found{round(value - spread), round(value + spread), chances.otherwise};
  const double above = beyond(found.high + half_ulp(found.high) - value - spread, variance);
  const double below = beyond(value - spread - found.low + half_ulp(found.low), variance);
  return with_astray({found.low, found.high, chances.otherwise + above + below});
}

Prediction ElementReplay::predict(const ElementParts& parts, const Scheme& scheme) const {
  Chances chances;
  Sum z = product(parts, scheme, chances);
  if (rounding_.product) {
    z = rounded(with_term(z, scheme.bias_in_product ? parts.bias : Sum{}), chances);
  }
  z = with_term(z, scheme.addend_first ? Sum{} : parts.addend);
  if (rounding_.sum) {
    z = rounded(z, chances);
  }
  z = with_term(z, scheme.bias_in_product || scheme.bias_first ? Sum{} : parts.bias);
  return finish(z, rounding_.tanh_error, chances);
}

Prediction ElementReplay::strict(const ElementParts& parts) const {
  Sum product;
  for (const Sum& slice : parts.slices) {
    product = plus(product, slice);
  }
  const Sum z = with_term(with_term(scaled(product, product_scale_), parts.addend), parts.bias);
  return finish(z, 0, {});
}

}  // namespace numcheck::reference
