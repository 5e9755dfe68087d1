// The gates of single elements in double: where FP32 is out of range, and for the extremes, which are exact. Include
// only from sources compiled per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "metric/accumulators.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

/// Stands for an infinite A: one beyond FP32, how far is not known. No error is too large for it, and its square is finite,
/// whatever the output's scale.
constexpr double kMaxMagnitude = 1e100;

inline double power_of(double x) {
  return __builtin_bit_cast(double, __builtin_bit_cast(std::uint64_t, x) & 0x7ff0'0000'0000'0000ULL);
}

/// The format's spacing at |x|: 2^(max(floor(log2 |x|), emin) - m). Infinity for |x| = infinity.
inline double ulp_at(double x, const FormatConstants& format) {
  const double power = power_of(x);
  return (power > format.min_normal ? power : format.min_normal) * format.fraction_scale;
}

/// RN(x) in the format, short of overflow: adding 1.5 * 2^52 ulp leaves no bits below ulp, because |x| < 2^32 ulp.
inline double round_to_format(double x, const FormatConstants& format) {
  const double shifter = ulp_at(x, format) * 0x1.8p52;
  return (x + shifter) - shifter;
}

inline double magnitude_at(const SegmentView& segment, std::size_t i, const ModelConstants& model) {
  const auto a = static_cast<double>(segment.magnitude[i]);
  return (a < kMaxMagnitude ? a : kMaxMagnitude) * model.scale;
}

/// B, including the output's rounding.
inline double bound_of(double abs_y, double a, const FormatConstants& format, const ModelConstants& model) {
  const double arithmetic = model.bound_magnitude * a + model.bound_value * abs_y + model.bound_absolute;
  return arithmetic + 0.5 * ulp_at(abs_y + arithmetic, format);
}

/// Such elements count in no mean.
inline bool is_unjudged(const SegmentView& segment, std::size_t i) {
  return segment.unjudged != nullptr && segment.unjudged[i] != 0;
}

inline bool has_unjudged(const SegmentView& segment, std::size_t begin, std::size_t size) {
  bool found = false;
  for (std::size_t i = begin; i < begin + size && segment.unjudged != nullptr; ++i) {
    found |= is_unjudged(segment, i);
  }
  return found;
}

/// An element in units of the output's ulp at y.
struct Element {
  double y, error;   ///< error = got - y
  double best;       ///< RN(y) - y
  double variance;   ///< V_arith
  double deviation;  ///< its root
  double reached;    ///< ulp(|y| + 3 deviation)
  double coherence;  ///< |y| / A
  double inverse;    ///< 1 / ulp
};

/// sqrt(S2) of an element, of which sums of one product may have been given more than A.
inline double spread_of(double given, double a, const ModelConstants& model) {
  return given < a || model.narrowed ? given : a;
}

/// V of the arithmetic: y, A and sqrt(S2) are scaled.
inline double variance_of(double abs_y, double a, double spread, const ModelConstants& model) {
  const double coherence = a > 0 ? abs_y / a : 0, aligned = coherence * abs_y;
  return model.var_second * (spread * spread) + model.var_magnitude * (a * a) + model.var_value * (abs_y * abs_y) +
         model.var_absolute + model.var_coherent * (aligned * aligned);
}

inline Element element_of(const SegmentView& segment, std::size_t i, const FormatConstants& format,
                          const ModelConstants& model) {
  const double y = segment.expected[i];
  const double abs_y = __builtin_fabs(y);
  const double a = magnitude_at(segment, i, model);
  const double spread = spread_of(static_cast<double>(segment.deviation[i]) * model.scale, a, model);
  const double v = variance_of(abs_y, a, spread, model);
  const double inverse = 1 / ulp_at(y, format);
  Element out{};
  out.y = y * inverse;
  out.error = (segment.got[i] - y) * inverse;
  out.best = ((out.y + 0x1.8p52) - 0x1.8p52) - out.y;
  out.variance = v * inverse * inverse;
  out.deviation = __builtin_sqrt(out.variance);
  const double reached = power_of(__builtin_fabs(out.y) + 3 * out.deviation) * format.fraction_scale;
  out.reached = reached > 1 ? reached : 1;
  out.coherence = a > 0 ? abs_y / a : 0;
  out.inverse = inverse;
  return out;
}

/// w c^2 of an element's addend.
inline double addend_share(const Element& element, double weight, const ModelConstants& model) {
  const double addend = model.addend * element.inverse;
  return element.y != 0 ? weight * addend * addend : 0;
}

/// G4 limit of an element: ulp(|y| + 3 sd) / 2 + lambda kappa sd.
inline double limit_of(const Element& element, const ModelConstants& model) {
  return 0.5 * element.reached + model.lambda_kappa * element.deviation;
}

/// What an element of a 16- or 8-bit output adds to its groups.
inline double group_share(const Element& element) {
  const double over = __builtin_fabs(element.error) - 0.5 * element.reached;
  const double z = over > 0 ? over / (element.deviation > 1e-9 ? element.deviation : 1e-9) : 0;
  const bool near = __builtin_fabs(element.best) + static_cast<double>(kGroupReach) * element.deviation > 0.5;
  const float offset = element.deviation > static_cast<double>(kGroupWide) ? kGroupWideOffset
                       : near                                              ? kGroupNearOffset
                                                                           : 0;
  return z * z - static_cast<double>(offset);
}

inline std::uint64_t spread_bin_of(double z2) {
  const double low = z2 > 0x1p-16 ? z2 : 0x1p-16;
  return (__builtin_bit_cast(std::uint64_t, low < 0x1.ffp47 ? low : 0x1.ffp47) >> 47) - ((1023 - 16) << 5);
}

}  // namespace
}  // namespace numcheck::metric::NUMCHECK_ISA
