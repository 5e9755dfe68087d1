// How likely errors of the arithmetic are to move y across the boundary between two numbers of a 16- or 8-bit format, so
// that it is not rounded to RN(y). Include only from sources compiled per instruction set.
#pragma once

#include <cstdint>

#include "metric/gate_exact.hpp"
#include "metric/simd.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

/// Q(x), the share of a normal variable beyond x >= 0 standard deviations, to within 1.5e-7.
/// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.28.
template <class T>
inline T normal_tail(T x) {
  const T z = x * 0.707106781F;
  const T p =
      ((((((0.0000430638F * z + 0.0002765672F) * z + 0.0001520143F) * z + 0.0092705272F) * z + 0.0422820123F) * z +
        0.0705230784F) *
           z +
       1.0F);
  const T p2 = p * p;
  const T p4 = p2 * p2;
  const T p8 = p4 * p4;
  return 0.5F / (p8 * p8);
}

/// Distances in ulps from y to the boundary on its side of RN(y), and to the other one. If RN(y) is a power of two, its
/// neighbours are not equally far: seen from a y above it, the lower one is half as far as the other; from a y below it, the
/// upper one is twice as far. (The lower one of the smallest normal number is not; there, a flip is called more likely than it is.)
constexpr float kBelowPower = -0.25F, kAbovePower = 0.5F;
template <class T>
struct Boundaries {
  T near, far;
};

/// Probabilities that y is rounded to another number if errors have the predicted variance.
template <class T>
struct FlipChance {
  T predicted;
  T allowed;  ///< if they are kFlipSpread times as large
  T drift;    ///< then the expected change, in ulps
  T nearer;   ///< and with errors as predicted
};

template <class T>
inline FlipChance<T> chance_of(Boundaries<T> at, T best, T deviation) {
  const T near = at.near / deviation;
  const T far = at.far / deviation;
  const T allowed_near = normal_tail(near * (1 / kFlipSpread));
  const T allowed_far = normal_tail(far * (1 / kFlipSpread));
  const T apart = allowed_near - allowed_far;
  const T predicted_near = normal_tail(near), predicted_far = normal_tail(far);
  const T predicted_apart = predicted_near - predicted_far;
  return {predicted_near + predicted_far, allowed_near + allowed_far, best > T{} ? -apart : apart,
          best > T{} ? -predicted_apart : predicted_apart};
}

/// Sums of a segment, in FP32 per group.
struct RunningFlips {
  Wi count[kFlipClasses][kGroups]{}, found[kFlipClasses][kGroups]{};
  Vf allowed[kFlipClasses][kGroups]{};
  Vf predicted[kGroups]{}, spread[kGroups]{}, alike[kGroups]{}, drift[kGroups]{}, nearer[kGroups]{}, step[kGroups]{};
};

/// An element as both loops see it.
template <class T>
struct FlipTerms {
  T y, best, deviation;  ///< in ulps
  T off;                 ///< got - RN(y)
  T weight;              ///< 1 / V
};

/// `top` is 2^(m + 1): normal numbers have that magnitude in ulps, or down to half of it.
inline void add_flips(const FlipTerms<Vf>& x, float top, int g, RunningFlips& sums) {
  const Vf stored = magnitude_of(nearest_integer(x.y + x.best));
  const Vf abs_best = magnitude_of(x.best);
  const Wi below = (stored == 0.5F * top) & (x.y * x.best <= 0.0F);
  const Wi above = stored == top;
  const Vf shift = Vf((Wi(splat_float(kBelowPower)) & below) | (Wi(splat_float(kAbovePower)) & above));
  const Boundaries<Vf> at = {0.5F - abs_best, 0.5F + abs_best + shift};
  const Wi reached = smaller(at.near, at.far) < kFlipReach * x.deviation;
  Wi judged = x.y != 0.0F;
  Wi within[kFlipClasses];
  for (int c = 0; c < kFlipClasses; ++c) {
    within[c] = x.deviation <= kFlipWidths[c];
  }
  const Vf wy = x.weight * x.y;
  const Vf arithmetic = wy * wy * (x.deviation * x.deviation);
  sums.alike[g] += arithmetic;
  sums.spread[g] += kFlipSpread * kFlipSpread * arithmetic;
  sums.step[g] = larger(magnitude_of(wy) * (1.0F + 3 * kFlipSpread * x.deviation), sums.step[g]);
  if (any(reached)) {
    FlipChance<Vf> chance = chance_of(at, x.best, x.deviation);
    const Wi counted = judged & reached;
    chance.allowed = Vf(Wi(chance.allowed) & counted);
    sums.predicted[g] += Vf(Wi(chance.predicted) & counted);
    sums.spread[g] += wy * wy * chance.allowed;
    sums.drift[g] += wy * Vf(Wi(chance.drift) & counted);
    sums.nearer[g] += wy * Vf(Wi(chance.nearer) & counted);
    judged &= chance.allowed <= kFlipMost;
    for (int c = 0; c < kFlipClasses; ++c) {
      sums.allowed[c][g] += Vf(Wi(chance.allowed) & judged & within[c]);
    }
  }
  const Wi found = judged & (x.off != 0.0F);
  for (int c = 0; c < kFlipClasses; ++c) {
    sums.count[c][g] -= judged & within[c];
    sums.found[c][g] -= found & within[c];
  }
}

/// Of one element, in double. `top` as in add_flips.
inline Boundaries<double> boundaries_of(double y, double best, double top) {
  const double abs_best = __builtin_fabs(best);
  const double stored = __builtin_fabs(y + best);
  const bool below = stored == 0.5 * top && y * best <= 0;
  const auto shift = static_cast<double>(below ? kBelowPower : stored == top ? kAbovePower : 0);
  return {0.5 - abs_best, 0.5 + abs_best + shift};
}

inline bool in_reach(Boundaries<double> at, double deviation) {
  return (at.near < at.far ? at.near : at.far) < static_cast<double>(kFlipReach) * deviation;
}

/// The same of one element, in double.
inline void add_flips(const FlipTerms<double>& x, double top, std::size_t lane, FlipSums& sums) {
  const Boundaries<double> at = boundaries_of(x.y, x.best, top);
  const double wy = x.weight * x.y;
  const double wide = __builtin_fabs(wy) * x.deviation;
  const double arithmetic = wide * wide;
  sums.alike[lane] += arithmetic;
  sums.spread[lane] += static_cast<double>(kFlipSpread * kFlipSpread) * arithmetic;
  const double step = __builtin_fabs(wy) + 3 * static_cast<double>(kFlipSpread) * wide;
  sums.step[lane] = step > sums.step[lane] ? step : sums.step[lane];
  bool judged = x.y != 0;
  double allowed = 0;
  if (judged && in_reach(at, x.deviation)) {
    const FlipChance<double> chance = chance_of(at, x.best, x.deviation);
    sums.predicted[lane] += chance.predicted;
    sums.spread[lane] += wy * wy * chance.allowed;
    sums.drift[lane] += wy * chance.drift;
    sums.nearer[lane] += wy * chance.nearer;
    judged = chance.allowed <= static_cast<double>(kFlipMost);
    allowed = chance.allowed;
  }
  for (int c = 0; c < kFlipClasses; ++c) {
    const bool counted = judged && x.deviation <= static_cast<double>(kFlipWidths[c]);
    sums.count[c][lane] += counted ? 1 : 0;
    sums.found[c][lane] += counted && x.off != 0 ? 1 : 0;
    sums.allowed[c][lane] += counted ? allowed : 0;
  }
}

}  // namespace
}  // namespace numcheck::metric::NUMCHECK_ISA
