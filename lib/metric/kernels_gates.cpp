// Gates G1 to G4 (tensor_core_numerics, section 5.4). Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "metric/kernels_isa.hpp"
#include "metric/simd.hpp"
#include "metric/worst_list.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

constexpr std::size_t kBlock = 64;
/// Below this a second moment may have been flushed to zero in FP32; A^2 bounds it from above.
constexpr double kLostMoment = 0x1p-118;

/// Per element of a segment, between the passes.
struct Scratch {
  alignas(64) double bound[kSegment];      ///< B
  alignas(64) double deviation[kSegment];  ///< first V_arith, then sqrt(V_arith)
  alignas(64) double weight[kSegment];     ///< 1 / V
  alignas(64) double coherence[kSegment];  ///< |y| / A
  alignas(64) double error[kSegment];      ///< |e|
};

/// B and V_arith of every element.
void fill_model(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model,
                Scratch& scratch) {
  for (std::size_t i = 0; i < segment.size; i += kWidth) {
    const Vd y = load(segment.expected + i);
    const Vd abs_y = magnitude_of(y);
    const Vd a = smaller(load(segment.magnitude + i), splat(1e39)) * model.scale;
    const Vd a2 = a * a;
    const Vd given = load(segment.second_moment + i);
    const Vd s2 = given < kLostMoment ? a2 : smaller(given * model.scale2, a2);
    const Vd arithmetic = model.bound_magnitude * a + model.bound_value * abs_y + model.bound_absolute;
    store(scratch.bound + i, arithmetic + 0.5 * ulp_at(abs_y + arithmetic, format));
    Vd v = model.var_second * s2 + model.var_magnitude * a2 + model.var_value * (y * y) + model.var_absolute;
    if (model.coherent) {
      const Vd coherence = abs_y / larger(a, splat(1e-300));
      const Vd aligned = coherence * abs_y;
      v += model.var_coherent * (aligned * aligned);
      store(scratch.coherence + i, coherence);
    }
    store(scratch.deviation + i, v);
    store(scratch.error + i, magnitude_of(load(segment.got + i) - y));
  }
  // Four accesses of L1 are cheaper than a vector square root beside the rest: a loop of its own pipelines.
  for (std::size_t i = 0; i < segment.size; ++i) {
    scratch.deviation[i] = __builtin_sqrt(scratch.deviation[i]);
  }
}

/// G1: the largest |e| / B are found by comparing with the least of the list.
void bound(const SegmentView& segment, const Scratch& scratch, WorstList& list) {
  for (std::size_t block = 0; block < segment.size; block += kBlock) {
    const std::size_t end = block + kBlock < segment.size ? block + kBlock : segment.size;
    const Vd floor = lowered(entry_over_bound(list));
    Vi enter{};
    for (std::size_t i = block; i < end; i += kWidth) {
      enter |= load(scratch.error + i) > floor * load(scratch.bound + i);
    }
    if (!any(enter)) {
      continue;
    }
    for (std::size_t i = block; i < end; ++i) {
      if (scratch.error[i] > 0) {
        const std::int64_t position =
            segment.positions != nullptr ? segment.positions[i] : segment.position + static_cast<std::int64_t>(i);
        insert_worst(list, scratch.error[i] / scratch.bound[i], position, segment.got[i], segment.expected[i]);
      }
    }
  }
}

/// G2: z^2 = e^2 / V, its sum, maximum and logarithmic histogram.
void spread(const SegmentView& segment, const FormatConstants& given, Scratch& scratch, GateSums& sums,
            Histograms& histograms) {
  const FormatConstants format = given;
  alignas(64) std::int64_t bins[kSegment];
  Sum z2_sum = fetch(sums.z2), z2_max = fetch(sums.z2_max);
  for (std::size_t i = 0; i < segment.size; i += kLanes) {
    for (int s = 0; s < kParts; ++s) {
      const std::size_t at = i + s * kWidth;
      const Vd deviation = load(scratch.deviation + at);
      const Vd ulp = ulp_at(magnitude_of(load(segment.expected + at)) + 3.0 * deviation, format);
      const Vd weight = 1.0 / (deviation * deviation + ulp * ulp * (1.0 / 12));
      const Vd error = load(scratch.error + at);
      const Vd z2 = error * error * weight;
      store(scratch.weight + at, weight);
      z2_sum.part[s] += z2;
      z2_max.part[s] = larger(z2, z2_max.part[s]);
      const Vd seen = smaller(larger(z2, splat(0x1p-16)), splat(0x1.ffp47));
      store(bins + at, Vi(Vu(seen) >> 46) - ((1023 - 16) << 6));
    }
  }
  for (std::size_t i = 0; i < segment.size; ++i) {
    ++histograms.spread[bins[i]];
  }
  put(sums.z2, z2_sum), put(sums.z2_max, z2_max);
}

/// G3: a = w y e', b = w y^2 per element, per column, and over the segment.
RowSums slope(const SegmentView& segment, const FormatConstants& given, const Scratch& scratch, bool coherent,
              GateSums& sums) {
  const FormatConstants format = given;
  Sum a_sum{}, b_sum{}, aa = fetch(sums.aa), ab = fetch(sums.ab), bb = fetch(sums.bb);
  Sum coherence = fetch(sums.coherence);
  for (std::size_t i = 0; i < segment.size; i += kLanes) {
    for (int s = 0; s < kParts; ++s) {
      const std::size_t at = i + s * kWidth;
      const Vd y = load(segment.expected + at);
      const Vd wy = load(scratch.weight + at) * y;
      const Vd target = format.narrow ? round_to_multiple(y, ulp_at(magnitude_of(y), format)) : y;
      const Vd a = wy * (load(segment.got + at) - target);
      const Vd b = wy * y;
      a_sum.part[s] += a;
      b_sum.part[s] += b;
      aa.part[s] += a * a;
      ab.part[s] += a * b;
      bb.part[s] += b * b;
      if (coherent) {
        coherence.part[s] += b * load(scratch.coherence + at);
      }
      if (segment.column_a != nullptr) {
        store(segment.column_a + at, load(segment.column_a + at) + a);
        store(segment.column_b + at, load(segment.column_b + at) + b);
      }
    }
  }
  put(sums.aa, aa), put(sums.ab, ab), put(sums.bb, bb), put(sums.coherence, coherence);
  return {total_of(a_sum), total_of(b_sum)};
}

/// G4's ratio, on U = {y != 0, sqrt(V_arith) <= ulp / 16}.
void rounding_ratio(const SegmentView& segment, const FormatConstants& given, const Scratch& scratch,
                    RoundingSums& sums) {
  const FormatConstants format = given;
  Count count = fetch(sums.count);
  Sum ratio = fetch(sums.ratio), perfect = fetch(sums.perfect), perfect2 = fetch(sums.perfect2);
  Sum arith = fetch(sums.arith);
  for (std::size_t i = 0; i < segment.size; i += kLanes) {
    for (int s = 0; s < kParts; ++s) {
      const std::size_t at = i + s * kWidth;
      const Vd y = load(segment.expected + at);
      const Vd ulp = ulp_at(magnitude_of(y), format);
      const Vd inverse = reciprocal_of_power(ulp);
      const Vd deviation = load(scratch.deviation + at) * inverse;
      const Vd error = load(scratch.error + at) * inverse;
      const Vd best = (round_to_multiple(y, ulp) - y) * inverse;
      const Vi in = (deviation <= 1.0 / 16) & (y != 0.0);
      const Vd best2 = in ? best * best : Vd{};
      count.part[s] -= in;
      ratio.part[s] += in ? error * error : Vd{};
      perfect.part[s] += best2;
      perfect2.part[s] += best2 * best2;
      arith.part[s] += in ? deviation * deviation : Vd{};
    }
  }
  put(sums.count, count), put(sums.ratio, ratio), put(sums.perfect, perfect), put(sums.perfect2, perfect2);
  put(sums.arith, arith);
}

/// G4's rule for every element: |e| <= ulp(|y| + 3 sd) / 2 + lambda kappa sd.
void rounding_element(const SegmentView& segment, const FormatConstants& given, const Scratch& scratch,
                      double lambda_kappa, RoundingSums& sums) {
  const FormatConstants format = given;
  alignas(64) double limits[kBlock];
  for (std::size_t block = 0; block < segment.size; block += kBlock) {
    const std::size_t end = block + kBlock < segment.size ? block + kBlock : segment.size;
    const Vd floor = lowered(sums.max_over_half_ulp);
    Vi raise{};
    for (std::size_t i = block; i < end; i += kWidth) {
      const Vd deviation = load(scratch.deviation + i);
      const Vd abs_y = magnitude_of(load(segment.expected + i));
      const Vd limit = 0.5 * ulp_at(abs_y + 3.0 * deviation, format) + lambda_kappa * deviation;
      store(limits + (i - block), limit);
      raise |= load(scratch.error + i) > floor * limit;
    }
    if (!any(raise)) {
      continue;
    }
    for (std::size_t i = block; i < end; ++i) {
      const double over = scratch.error[i] / limits[i - block];
      sums.max_over_half_ulp = over > sums.max_over_half_ulp ? over : sums.max_over_half_ulp;
    }
  }
}

/// Smallest ratio of the plan's own limit to B.
double plan_limit_over_bound(const SegmentView& segment, const ModelConstants& model, const Scratch& scratch,
                             double least) {
  Vd smallest = splat(least);
  for (std::size_t i = 0; i < segment.size; i += kWidth) {
    const Vd limit = model.plan_atol + model.plan_rtol * magnitude_of(load(segment.expected + i));
    smallest = smaller(limit / load(scratch.bound + i), smallest);
  }
  for (int i = 0; i < kWidth; ++i) {
    least = smallest[i] < least ? smallest[i] : least;
  }
  return least;
}

}  // namespace

RowSums gates(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model,
              Accumulators& sums, Histograms& histograms) {
  Scratch scratch;
  fill_model(segment, format, model, scratch);
  bound(segment, scratch, sums.worst);
  spread(segment, format, scratch, sums.gates, histograms);
  if (format.narrow) {
    rounding_ratio(segment, format, scratch, sums.rounding);
    rounding_element(segment, format, scratch, model.lambda_kappa, sums.rounding);
  }
  if (model.have_plan) {
    sums.plan_over_bound = plan_limit_over_bound(segment, model, scratch, sums.plan_over_bound);
  }
  return slope(segment, format, scratch, model.coherent, sums.gates);
}

const Kernels kKernels = {&is_special, &norms, &ulps, &opinions, &gates};

}  // namespace numcheck::metric::NUMCHECK_ISA
