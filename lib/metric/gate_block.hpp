// One block of elements in the gates' loops. Include only from sources compiled per instruction set.
//
// Everything is in units of the output's ulp at y, a power of two: there y is an integer plus a fraction and rounding
// it needs one constant.
#pragma once

#include <cstddef>
#include <cstdint>

#include "metric/simd.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

/// Elements between two looks at the flags that call for a slow, scalar update.
constexpr std::size_t kBlock = 64;

/// Elements of a block in ulps, between the loops.
struct Block {
  alignas(64) double y[kBlock];
  alignas(64) double error[kBlock];      ///< got - y
  alignas(64) double variance[kBlock];   ///< V_arith
  alignas(64) double coherence[kBlock];  ///< |y| / A
  alignas(64) double deviation[kBlock];  ///< sqrt(V_arith)
  alignas(64) double weight[kBlock];     ///< 1 / V
  alignas(64) std::int64_t spread_bin[kBlock];
  alignas(64) std::int64_t ulp_bin[kBlock];
};

/// Accumulators during a segment.
struct Running {
  explicit Running(const Accumulators& sums)
      : ulp_sum(fetch(sums.ulps.sum)),
        ulp_max(fetch(sums.ulps.max)),
        inexact(fetch(sums.ulps.inexact)),
        zeros(fetch(sums.ulps.zeros)),
        z2(fetch(sums.gates.z2)),
        z2_max(fetch(sums.gates.z2_max)),
        aa(fetch(sums.gates.aa)),
        ab(fetch(sums.gates.ab)),
        bb(fetch(sums.gates.bb)),
        coherence(fetch(sums.gates.coherence)),
        count(fetch(sums.rounding.count)),
        ratio(fetch(sums.rounding.ratio)),
        perfect(fetch(sums.rounding.perfect)),
        perfect2(fetch(sums.rounding.perfect2)),
        arith(fetch(sums.rounding.arith)) {}

  void put_back(Accumulators& sums) const {
    put(sums.ulps.sum, ulp_sum);
    put(sums.ulps.max, ulp_max);
    put(sums.ulps.inexact, inexact);
    put(sums.ulps.zeros, zeros);
    put(sums.gates.z2, z2);
    put(sums.gates.z2_max, z2_max);
    put(sums.gates.aa, aa);
    put(sums.gates.ab, ab);
    put(sums.gates.bb, bb);
    put(sums.gates.coherence, coherence);
    put(sums.rounding.count, count);
    put(sums.rounding.ratio, ratio);
    put(sums.rounding.perfect, perfect);
    put(sums.rounding.perfect2, perfect2);
    put(sums.rounding.arith, arith);
  }

  Sum ulp_sum, ulp_max;
  Count inexact, zeros;
  Sum z2, z2_max, a{}, b{}, aa, ab, bb, coherence;
  Count count;
  Sum ratio, perfect, perfect2, arith;
};

/// ulp(|y| + 3 sd) in ulps of y.
inline Vd reached_ulp(Vd abs_y, Vd deviation, const FormatConstants& format) {
  const Vd power = Vd(Vu(abs_y + 3.0 * deviation) & (Vu{} + 0x7ff0'0000'0000'0000ULL));
  return larger(power * format.fraction_scale, splat(1.0));
}

/// G4 limit of an element: ulp(|y| + 3 sd) / 2 + lambda kappa sd.
inline Vd element_limit(Vd reached, Vd deviation, const ModelConstants& model) {
  return 0.5 * reached + model.lambda_kappa * deviation;
}

/// Bin of |e| in ulps: bin b > 0 holds (2^(b-3), 2^(b-2)], so the exponent of the double just below decides; 0.3 stands
/// for all of (0, 1/2], 0.25 for zero.
inline Vi ulp_bin_of(Vd error) {
  const Vd seen = error > 0.0 ? smaller(larger(error, splat(0.3)), splat(0x1p13)) : splat(0.25);
  return Vi((Vu(seen) - 1) >> 52) - (1023 - 3);
}

inline Vi spread_bin_of(Vd z2) {
  const Vd seen = smaller(larger(z2, splat(0x1p-16)), splat(0x1.ffp47));
  return Vi(Vu(seen) >> 47) - ((1023 - 16) << 5);
}

/// ULP statistics and G2 of a block, and 1 / V; true if an element may exceed `most` times its G4 limit.
///   z^2 = e^2 / V, V = V_arith + ulp(|y| + 3 sd)^2 / 12
/// `wide` blocks hold variances beyond FP32's range; in the others FP32 (relative error 2^-24) serves at half the cost.
template <bool narrow, bool wide>
bool add_errors(const double* got, std::size_t size, const FormatConstants& format, const ModelConstants& model,
                double most, Block& block, Running& r) {
  const Vd floor = lowered(most);
  Vi raise{};
  for (std::size_t i = 0; i < size; i += kLanes) {
#pragma GCC unroll 4
    for (int s = 0; s < kParts; ++s) {
      const std::size_t at = i + s * kWidth;
      const Vd y = load(block.y + at);
      const Vd error = load(block.error + at);
      const Vd abs_error = magnitude_of(error);
      r.zeros.part[s] -= load(got + at) == 0.0;
      r.ulp_sum.part[s] += abs_error;
      r.ulp_max.part[s] = larger(abs_error, r.ulp_max.part[s]);
      store(block.ulp_bin + at, ulp_bin_of(abs_error));

      const Vd deviation = load(block.deviation + at);
      const Vd reached = reached_ulp(magnitude_of(y), deviation, format);
      const Vd variance = load(block.variance + at) + reached * reached * (1.0 / 12);
      const Vd weight = wide ? 1.0 / variance : widened(1.0F / narrowed(variance));
      const Vd z2 = error * error * weight;
      r.z2.part[s] += z2;
      r.z2_max.part[s] = larger(z2, r.z2_max.part[s]);
      store(block.weight + at, weight);
      store(block.spread_bin + at, spread_bin_of(z2));
      if (narrow) {
        raise |= abs_error > floor * element_limit(reached, deviation, model);
      }
    }
  }
  return any(raise);
}

/// G3 of a block: a = w y e', b = w y^2, w = 1 / V.
template <bool narrow, bool coherent>
void add_slope(double* column_a, double* column_b, std::size_t size, const Block& block, Running& r) {
  for (std::size_t i = 0; i < size; i += kLanes) {
#pragma GCC unroll 4
    for (int s = 0; s < kParts; ++s) {
      const std::size_t at = i + s * kWidth;
      const Vd y = load(block.y + at);
      const Vd error = load(block.error + at);
      const Vd best = ((y + 0x1.8p52) - 0x1.8p52) - y;  // RN(y) - y
      r.inexact.part[s] -= error != best;
      const Vd wy = load(block.weight + at) * y;
      const Vd a = wy * (narrow ? error - best : error);
      const Vd b = wy * y;
      r.a.part[s] += a;
      r.b.part[s] += b;
      r.aa.part[s] += a * a;
      r.ab.part[s] += a * b;
      r.bb.part[s] += b * b;
      if (coherent) {
        r.coherence.part[s] += b * load(block.coherence + at);
      }
      store(column_a + at, load(column_a + at) + a);
      store(column_b + at, load(column_b + at) + b);
    }
  }
}

/// G4's ratio, on U = {y != 0, sqrt(V_arith) <= ulp / 16}.
void add_rounding(std::size_t size, const Block& block, Running& r) {
  for (std::size_t i = 0; i < size; i += kLanes) {
#pragma GCC unroll 4
    for (int s = 0; s < kParts; ++s) {
      const std::size_t at = i + s * kWidth;
      const Vd y = load(block.y + at);
      const Vd error = load(block.error + at);
      const Vd best = ((y + 0x1.8p52) - 0x1.8p52) - y;
      const Vi in = (load(block.deviation + at) <= 1.0 / 16) & (y != 0.0);
      const Vd best2 = kept(best * best, in);
      r.count.part[s] -= in;
      r.ratio.part[s] += kept(error * error, in);
      r.perfect.part[s] += best2;
      r.perfect2.part[s] += best2 * best2;
      r.arith.part[s] += kept(load(block.variance + at), in);
    }
  }
}

/// Largest |e| / limit of G4, exactly.
void raise_element(const Block& block, std::size_t size, const FormatConstants& format, const ModelConstants& model,
                   double& most) {
  for (std::size_t group = 0; group < size; group += kWidth) {
    const Vd deviation = load(block.deviation + group);
    const Vd reached = reached_ulp(magnitude_of(load(block.y + group)), deviation, format);
    const Vd over = magnitude_of(load(block.error + group)) / element_limit(reached, deviation, model);
    for (int lane = 0; lane < kWidth; ++lane) {
      most = over[lane] > most ? over[lane] : most;
    }
  }
}

void count_bins(const Block& block, std::size_t size, Histograms& histograms) {
  for (std::size_t i = 0; i < size; i += kLanes) {
#pragma GCC unroll 8
    for (int lane = 0; lane < kLanes; ++lane) {
      ++histograms.spread[lane % kCopies][block.spread_bin[i + static_cast<std::size_t>(lane)]];
      ++histograms.ulps[lane][block.ulp_bin[i + static_cast<std::size_t>(lane)]];
    }
  }
}

}  // namespace
}  // namespace numcheck::metric::NUMCHECK_ISA
