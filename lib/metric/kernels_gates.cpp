// ULP statistics and gates G1 to G4 (tensor_core_numerics, section 5.4). Compiled once per instruction set:
// NUMCHECK_ISA is the namespace.
//
// Everything after the bound is computed in units of the output's ulp at y, a power of two: there y is an integer plus
// a fraction, rounding it needs one constant, and the quotients and roots are of moderate size, so that FP32 (relative
// error 2^-24) serves for them at half the cost.
#include "metric/kernels_isa.hpp"
#include "metric/simd.hpp"
#include "metric/worst_list.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

/// Elements between two looks at the flags that call for a slow, scalar update.
constexpr std::size_t kBlock = 64;
/// Below this a second moment may have been flushed to zero in FP32; A^2 bounds it from above.
constexpr double kLostMoment = 0x1p-118;
/// Largest variance, in squared ulps, that is told apart.
constexpr double kMostVariance = 1e30;

/// Elements of a block in ulps, between the loops.
struct Block {
  alignas(64) double y[kBlock];
  alignas(64) double error[kBlock];      ///< got - y
  alignas(64) double variance[kBlock];   ///< V_arith
  alignas(64) double coherence[kBlock];  ///< |y| / A
  alignas(64) double deviation[kBlock];  ///< sqrt(V_arith)
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

/// B without and with the output's rounding, for a vector of elements.
inline Vd bound_of(Vd abs_y, Vd a, const FormatConstants& format, const ModelConstants& model) {
  const Vd arithmetic = model.bound_magnitude * a + model.bound_value * abs_y + model.bound_absolute;
  return arithmetic + 0.5 * ulp_at(abs_y + arithmetic, format);
}

inline Vd magnitude_at(const SegmentView& segment, std::size_t i, const ModelConstants& model) {
  return smaller(load(segment.magnitude + i), splat(1e39)) * model.scale;
}

/// Fills the block from element `begin` on; true if an |e| / B may be among the worst.
template <bool coherent>
bool fill(const SegmentView& segment, std::size_t begin, std::size_t size, const FormatConstants& format,
          const ModelConstants& model, double entry, Block& block) {
  const Vd floor = lowered(entry);
  Vi enter{};
  for (std::size_t i = 0; i < size; i += kWidth) {
    const Vd y = load(segment.expected + begin + i);
    const Vd abs_y = magnitude_of(y);
    const Vd error = load(segment.got + begin + i) - y;
    const Vd a = magnitude_at(segment, begin + i, model);
    enter |= magnitude_of(error) > floor * bound_of(abs_y, a, format, model);
    const Vd a2 = a * a;
    const Vd given = load(segment.second_moment + begin + i);
    const Vd s2 = given < kLostMoment ? a2 : smaller(given * model.scale2, a2);
    Vd v = model.var_second * s2 + model.var_magnitude * a2 + model.var_value * (y * y) + model.var_absolute;
    if (coherent) {
      // |y| and A are within FP32's range by construction, or so small that their quotient does not matter.
      const Vf quotient = narrowed(abs_y) / narrowed(larger(a, splat(1e-30)));
      const Vd coherence = widened(quotient);
      const Vd aligned = coherence * abs_y;
      v += model.var_coherent * (aligned * aligned);
      store(block.coherence + i, coherence);
    }
    const Vd inverse = reciprocal_of_power(ulp_at(abs_y, format));
    const Vd variance = smaller(v * inverse * inverse, splat(kMostVariance));
    store(block.y + i, y * inverse);
    store(block.error + i, error * inverse);
    store(block.variance + i, variance);
    store(block.deviation + i, widened(root_of(narrowed(variance))));
  }
  return any(enter);
}

/// Enters the block's elements into the list of the worst, in their order.
void enter_worst(const SegmentView& segment, std::size_t begin, std::size_t size, const FormatConstants& format,
                 const ModelConstants& model, WorstList& list) {
  for (std::size_t group = begin; group < begin + size; group += kWidth) {
    const Vd y = load(segment.expected + group);
    const Vd error = magnitude_of(load(segment.got + group) - y);
    const Vd bound = bound_of(magnitude_of(y), magnitude_at(segment, group, model), format, model);
    for (int lane = 0; lane < kWidth; ++lane) {
      const std::size_t i = group + static_cast<std::size_t>(lane);
      if (error[lane] > 0) {
        const std::int64_t position =
            segment.positions != nullptr ? segment.positions[i] : segment.position + static_cast<std::int64_t>(i);
        insert_worst(list, error[lane] / bound[lane], position, segment.got[i], segment.expected[i]);
      }
    }
  }
}

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

/// G4 on U = {y != 0, sqrt(V_arith) <= ulp / 16}.
inline void add_rounding(Running& r, int s, Vd y, Vd error, Vd best, Vd deviation, Vd variance) {
  const Vi in = (deviation <= 1.0 / 16) & (y != 0.0);
  const Vd best2 = in ? best * best : Vd{};
  r.count.part[s] -= in;
  r.ratio.part[s] += in ? error * error : Vd{};
  r.perfect.part[s] += best2;
  r.perfect2.part[s] += best2 * best2;
  r.arith.part[s] += in ? variance : Vd{};
}

/// Everything but the bound, for one block; true if an element may exceed `most` times its G4 limit.
///   z^2 = e^2 / V, V = V_arith + ulp(|y| + 3 sd)^2 / 12;  a = w y e', b = w y^2, w = 1 / V
template <bool narrow, bool coherent>
bool add_block(const SegmentView& segment, std::size_t begin, std::size_t size, const FormatConstants& format,
               const ModelConstants& model, double most, Block& block, Running& r) {
  const Vd floor = lowered(most);
  Vi raise{};
  for (std::size_t i = 0; i < size; i += kLanes) {
    for (int s = 0; s < kParts; ++s) {
      const std::size_t at = i + s * kWidth;
      const Vd y = load(block.y + at);
      const Vd error = load(block.error + at);
      const Vd abs_error = magnitude_of(error);
      const Vd best = ((y + 0x1.8p52) - 0x1.8p52) - y;  // RN(y) - y
      r.inexact.part[s] -= error != best;
      r.zeros.part[s] -= load(segment.got + begin + at) == 0.0;
      r.ulp_sum.part[s] += abs_error;
      r.ulp_max.part[s] = larger(abs_error, r.ulp_max.part[s]);
      store(block.ulp_bin + at, ulp_bin_of(abs_error));

      const Vd variance = load(block.variance + at);
      const Vd deviation = load(block.deviation + at);
      const Vd reached = reached_ulp(magnitude_of(y), deviation, format);
      const Vd weight = widened(1.0F / narrowed(variance + reached * reached * (1.0 / 12)));
      const Vd z2 = error * error * weight;
      r.z2.part[s] += z2;
      r.z2_max.part[s] = larger(z2, r.z2_max.part[s]);
      store(block.spread_bin + at, spread_bin_of(z2));

      const Vd wy = weight * y;
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
      double* const column_a = segment.column_a + begin + at;
      double* const column_b = segment.column_b + begin + at;
      store(column_a, load(column_a) + a);
      store(column_b, load(column_b) + b);
      if (narrow) {
        add_rounding(r, s, y, error, best, deviation, variance);
        raise |= abs_error > floor * element_limit(reached, deviation, model);
      }
    }
  }
  return any(raise);
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

/// Smallest ratio of the plan's own limit to B.
double plan_limit_over_bound(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model,
                             double least) {
  Vd smallest = splat(least);
  for (std::size_t i = 0; i < segment.size; i += kWidth) {
    const Vd abs_y = magnitude_of(load(segment.expected + i));
    const Vd bound = bound_of(abs_y, magnitude_at(segment, i, model), format, model);
    smallest = smaller((model.plan_atol + model.plan_rtol * abs_y) / bound, smallest);
  }
  for (int i = 0; i < kWidth; ++i) {
    least = smallest[i] < least ? smallest[i] : least;
  }
  return least;
}

template <bool narrow, bool coherent>
RowSums run(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model, Accumulators& sums,
            Histograms& histograms) {
  Running running(sums);
  Block block;
  for (std::size_t begin = 0; begin < segment.size; begin += kBlock) {
    const std::size_t size = begin + kBlock < segment.size ? kBlock : segment.size - begin;
    if (fill<coherent>(segment, begin, size, format, model, entry_over_bound(sums.worst), block)) {
      enter_worst(segment, begin, size, format, model, sums.worst);
    }
    double& most = sums.rounding.max_over_half_ulp;
    if (add_block<narrow, coherent>(segment, begin, size, format, model, most, block, running)) {
      raise_element(block, size, format, model, most);
    }
    for (std::size_t i = 0; i < size; ++i) {
      ++histograms.spread[i % kCopies][block.spread_bin[i]];
      ++histograms.ulps[i % kLanes][block.ulp_bin[i]];
    }
  }
  running.put_back(sums);
  return {total_of(running.a), total_of(running.b)};
}

}  // namespace

RowSums gates(const SegmentView& segment, const FormatConstants& given, const ModelConstants& constants,
              Accumulators& sums, Histograms& histograms) {
  const FormatConstants format = given;  // local copies: stores through pointers cannot change them
  const ModelConstants model = constants;
  if (model.have_plan) {
    sums.plan_over_bound = plan_limit_over_bound(segment, format, model, sums.plan_over_bound);
  }
  if (format.narrow) {
    return model.coherent ? run<true, true>(segment, format, model, sums, histograms)
                          : run<true, false>(segment, format, model, sums, histograms);
  }
  return model.coherent ? run<false, true>(segment, format, model, sums, histograms)
                        : run<false, false>(segment, format, model, sums, histograms);
}

const Kernels kKernels = {&is_special, &norms, &opinions, &gates};

}  // namespace numcheck::metric::NUMCHECK_ISA
