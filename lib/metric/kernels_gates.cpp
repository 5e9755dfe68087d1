// ULP statistics and gates G1 to G4 (tensor_core_numerics, section 5.4). Compiled once per instruction set:
// NUMCHECK_ISA is the namespace.
#include "metric/gate_block.hpp"
#include "metric/gate_exact.hpp"
#include "metric/gate_extremes.hpp"
#include "metric/kernels_isa.hpp"
#include "metric/simd.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

/// What the loops of a segment share.
struct Context {
  const SegmentView& segment;
  const FormatConstants& format;
  const ModelConstants& model;
  Accumulators& sums;
  Histograms& histograms;
  RowSums row{0, 0};  ///< of elements that were added in double
};

/// Calls raise_element for the elements of a block that exceed their limits, or for all if FP32 limits are unusable.
void raise_extremes(Context& c, std::size_t begin, std::size_t size, const Block& block, bool all) {
  for (std::size_t i = 0; i < size; ++i) {
    if (all || __builtin_fabsf(block.error[i]) > block.limit[i]) {
      (void)raise_element(c.segment, begin + i, c.format, c.model, c.sums);
    }
  }
}

/// True if an element whose variance exceeds FP32 has a nonzero y or error, so that the variance matters.
bool variance_matters(const SegmentView& segment, std::size_t begin, std::size_t size, const Block& block) {
  bool found = false;
  for (std::size_t i = 0; i < size; ++i) {
    const double y = segment.expected[begin + i];
    found |= !(block.variance[i] <= kMaxVariance) && (y != 0 || segment.got[begin + i] != y);
  }
  return found;
}

/// Sums over rows and columns are in FP32; an error of this size fails anyway.
float held(double x) {
  constexpr double kMost = 1e36;
  return static_cast<float>(x < kMost ? (x > -kMost ? x : -kMost) : kMost);
}

/// G2 to G4 of an element, in double. Returns what it adds to its groups.
template <bool narrow>
float add_wide_element(Context& c, std::size_t i, bool with_rounding) {
  const Element x = element_of(c.segment, i, c.format, c.model);
  const std::size_t lane = i % kLanes;
  c.sums.ulps.inexact[lane] += x.error != x.best ? 1 : 0;
  GateSums& gates = c.sums.gates;
  const double weight = 1 / (x.variance + x.reached * x.reached * (1.0 / 12));
  const double z2 = x.error * x.error * weight;
  gates.z2_max[lane] = z2 > gates.z2_max[lane] ? z2 : gates.z2_max[lane];
  if (is_unjudged(c.segment, i)) {
    return 0;
  }
  gates.z2[lane] += z2;
  ++c.histograms.spread[lane % kCopies][spread_bin_of(z2)];
  const double a = weight * x.y * (narrow ? x.error - x.best : x.error);
  const double b = weight * x.y * x.y;
  gates.aa[lane] += a * a;
  gates.ab[lane] += a * b;
  gates.bb[lane] += b * b;
  gates.coherence[lane] += c.model.coherent ? b * x.coherence : 0;
  gates.addends[lane] += addend_share(x, weight, c.model);
  c.row.a += a;
  c.row.b += b;
  if (narrow) {
    add_flips({x.y, x.best, x.deviation, x.error - x.best, weight}, 2 / c.format.fraction_scale, lane, c.sums.flips);
  }
  const float share = held(narrow ? group_share(x) : z2);
  c.segment.column_a[i] += held(a);
  c.segment.column_b[i] += static_cast<float>(b);
  c.segment.column_z[i] += share;
  if (with_rounding && x.y != 0 && x.deviation <= 1.0 / 16) {
    RoundingSums& rounding = c.sums.rounding;
    const double best2 = x.best * x.best;
    ++rounding.count[lane];
    rounding.ratio[lane] += x.error * x.error;
    rounding.perfect[lane] += best2;
    rounding.perfect2[lane] += best2 * best2;
    rounding.arith[lane] += x.variance;
  }
  return share;
}

void count_spread(const Block& block, std::size_t size, Histograms& histograms) {
  for (std::size_t i = 0; i < size; i += kLanes) {
#pragma GCC unroll 8
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      ++histograms.spread[lane % kCopies][block.spread_bin[i + lane]];
    }
  }
}

/// Number of elements in U, and sum of their V_arith.
void add_arith(const Block& block, std::size_t size, Running& running) {
  for (std::size_t i = 0; i < size; i += kLanes) {
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      const std::size_t at = i + static_cast<std::size_t>(g * kFloats);
      const Wi in = load(block.rounded + at);
      running.count[g] -= in;
      running.arith[g] += Vf(Wi(load(block.variance + at)) & in);
    }
  }
}

/// Brings the part of the next segment that corresponds to this block towards the first-level cache.
[[gnu::always_inline]] inline void prefetch(const SegmentView& segment, std::size_t begin) {
  constexpr std::size_t kLine = 64;
  const auto fetch = [](const auto* p) __attribute__((always_inline)) {
    for (std::size_t byte = 0; byte < kBlock * sizeof(*p); byte += kLine) {
      __builtin_prefetch(reinterpret_cast<const char*>(p) + byte, 0, 2);
    }
  };
  const std::ptrdiff_t next = static_cast<std::ptrdiff_t>(begin) + segment.ahead;
  fetch(segment.expected + next);
  fetch(segment.magnitude + next);
  fetch(segment.deviation + next);
  if (segment.terms != segment.magnitude) {
    fetch(segment.terms + next);
  }
  if (segment.unrounded != nullptr) {
    fetch(segment.unrounded + next);
  }
}

/// The other tools' predicates that `flags` requests.
void check_opinions(Context& c, std::size_t begin, std::size_t end, const BlockFlags& flags) {
  if (c.segment.opinions_counted) {
    return;
  }
  if (flags.torch) {
    check_torch(c.segment, begin, end, c.format, c.model, c.sums.torch);
  }
  if (flags.te) {
    check_te(c.segment, begin, end, c.format, c.model, c.sums.te);
  }
}

/// One block through all loops.
template <bool narrow, bool coherent>
void add_block(Context& c, std::size_t begin, std::size_t size, const InverseUlp& units, const SingleModel& single,
               Limits& limits, Block& block, Running& running) {
  const SegmentView& segment = c.segment;
  if (segment.ahead != 0) {
    prefetch(segment, begin);
  }
  const double* const got = segment.got + begin;
  const double* const expected = segment.expected + begin;
  convert_to_ulps(expected, size, units, block);
  const bool beyond = add_variances<narrow, coherent>(segment, begin, size, single, limits,
                                                      static_cast<float>(c.format.fraction_scale), block);
  const bool wide_variance = c.format.fraction_scale < kFinestScale || has_unjudged(segment, begin, size) ||
                             (beyond && variance_matters(segment, begin, size, block));
  if (wide_variance) {
    for (std::int32_t& in : block.rounded) {
      in = 0;
    }
  }
  Vi wide_error{};
  for (int s = 0; s < kParts; ++s) {
    const auto lane = static_cast<std::size_t>(s) * kWidth;
    wide_error |= add_errors<narrow>(got, expected, lane, size, units, block, running.part[s]) > kMaxError;
  }
  if (narrow) {
    add_arith(block, size, running);
  }
  float& block_z = segment.block_z[begin / kBlock];
  block_z = 0;
  if (wide_variance || any(wide_error)) {
    for (std::size_t i = begin; i < begin + size; ++i) {
      block_z += add_wide_element<narrow>(c, i, narrow && wide_variance);
    }
    raise_extremes(c, begin, size, block, true);
    check_opinions(c, begin, begin + size, {true, true, true});
    limits = Limits(c.sums, c.format, c.model);
    return;
  }
  const BlockFlags flags =
      add_slope<narrow, coherent>({segment.column_a + begin, segment.column_b + begin, segment.column_z + begin},
                                  block_z, size, limits, block, running);
  count_spread(block, size, c.histograms);
  if (flags.extreme) {
    raise_extremes(c, begin, size, block, false);
  }
  check_opinions(c, begin, begin + size, flags);
  if (flags.extreme || flags.torch || flags.te) {
    limits = Limits(c.sums, c.format, c.model);
  }
}

/// lanes[i] += the lanes of a group, or of a part of it.
template <class Lane, class Vector>
void add_lanes(Lane (&lanes)[kLanes], const Vector (&group)[kGroups]) {
  for (int i = 0; i < kLanes; ++i) {
    lanes[i] += static_cast<Lane>(group[i / kFloats][i % kFloats]);
  }
}
template <class Lane, class Vector>
void add_part(Lane (&lanes)[kLanes], int part, Vector values) {
  for (int i = 0; i < kWidth; ++i) {
    lanes[part * kWidth + i] += values[i];
  }
}
template <class Vector>
void raise_part(double (&lanes)[kLanes], int first, Vector values, int width) {
  for (int i = 0; i < width; ++i) {
    const auto value = static_cast<double>(values[i]);
    lanes[first + i] = value > lanes[first + i] ? value : lanes[first + i];
  }
}

RowSums write_back(const Running& running, Accumulators& sums, Histograms& histograms) {
  constexpr std::uint64_t kSixteenths = 0x00ff'00ff'00ff'00ffULL;
  std::uint64_t bins[4] = {};
  double a[kLanes] = {};
  double b[kLanes] = {};
  for (int s = 0; s < kParts; ++s) {
    const Running::Part& part = running.part[s];
    add_part(sums.ulps.sum, s, part.ulp_sum);
    raise_part(sums.ulps.max, s * kWidth, part.ulp_max, kWidth);
    add_part(sums.ulps.zeros, s, part.zeros);
    add_part(sums.rounding.ratio, s, part.ratio);
    add_part(sums.rounding.perfect, s, part.perfect);
    add_part(sums.rounding.perfect2, s, part.perfect2);
    add_part(a, s, part.a);
    add_part(b, s, part.b);
    // Bytes to 16 bits, so that the counts of all lanes fit.
    for (int i = 0; i < kWidth; ++i) {
      bins[0] += part.bins_even[i] & kSixteenths;
      bins[1] += part.bins_odd[i] & kSixteenths;
      bins[2] += part.bins_even[i] >> 8 & kSixteenths;
      bins[3] += part.bins_odd[i] >> 8 & kSixteenths;
    }
  }
  for (int bin = 0; bin < kUlpBins; ++bin) {
    histograms.ulps[bin] += static_cast<std::uint32_t>(bins[bin % 4] >> (16 * (bin / 4)) & 0xffff);
  }
  const Running::Group& group = running.group;
  add_lanes(sums.ulps.inexact, group.inexact);
  add_lanes(sums.rounding.count, running.count);
  add_lanes(sums.gates.z2, group.z2);
  add_lanes(sums.gates.aa, group.aa);
  add_lanes(sums.gates.ab, group.ab);
  add_lanes(sums.gates.bb, group.bb);
  add_lanes(sums.gates.coherence, group.coherence);
  add_lanes(sums.gates.addends, group.addends);
  add_lanes(sums.rounding.arith, running.arith);
  for (int w = 0; w < kFlipClasses; ++w) {
    add_lanes(sums.flips.count[w], running.flips.count[w]);
    add_lanes(sums.flips.found[w], running.flips.found[w]);
    add_lanes(sums.flips.allowed[w], running.flips.allowed[w]);
  }
  add_lanes(sums.flips.predicted, running.flips.predicted);
  add_lanes(sums.flips.spread, running.flips.spread);
  add_lanes(sums.flips.alike, running.flips.alike);
  add_lanes(sums.flips.drift, running.flips.drift);
  add_lanes(sums.flips.nearer, running.flips.nearer);
  for (int g = 0; g < kGroups; ++g) {
    raise_part(sums.gates.z2_max, g * kFloats, group.z2_max[g], kFloats);
    raise_part(sums.flips.step, g * kFloats, running.flips.step[g], kFloats);
  }
  const auto total = [](const double(&x)[kLanes]) {
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
  };
  return {total(a), total(b)};
}

template <bool narrow, bool coherent>
RowSums run(Context c) {
  const InverseUlp units(c.format);
  const SingleModel single(c.model);
  Limits limits(c.sums, c.format, c.model);
  Running running;
  Block block;
  for (std::size_t begin = 0; begin < c.segment.size; begin += kBlock) {
    const std::size_t size = begin + kBlock < c.segment.size ? kBlock : c.segment.size - begin;
    add_block<narrow, coherent>(c, begin, size, units, single, limits, block, running);
    if (c.model.have_plan) {
      add_plan(c.segment, begin, begin + size, c.format, c.model, c.sums);
    }
  }
  const RowSums row = write_back(running, c.sums, c.histograms);
  return {row.a + c.row.a, row.b + c.row.b};
}

}  // namespace

RowSums gates(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model,
              Accumulators& sums, Histograms& histograms) {
  const Context context{segment, format, model, sums, histograms};
  if (format.narrow) {
    return model.coherent ? run<true, true>(context) : run<true, false>(context);
  }
  return model.coherent ? run<false, true>(context) : run<false, false>(context);
}

const Kernels kKernels = {&norms, &opinions, &gates, &lattice, &terms, &exact, &scan};

}  // namespace numcheck::metric::NUMCHECK_ISA
