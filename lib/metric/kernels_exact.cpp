// Outputs that an op defines bit for bit, where every element is RN(y): errors are those of one rounding, so that most gates have
// nothing to say. Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "metric/gate_block.hpp"
#include "metric/gate_exact.hpp"
#include "metric/gate_extremes.hpp"
#include "metric/gate_flips.hpp"
#include "metric/kernels_isa.hpp"
#include "metric/simd.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

/// Of formats with the exponents of FP32, smaller numbers are left to gates(): there 1 / ulp is beyond FP32, and PyTorch rounds twice.
constexpr double kLeastWide = 0x1p-100;

/// Elements of a block in ulps, between the loops.
struct ExactBlock {
  alignas(64) float y[kBlock];
  alignas(64) float best[kBlock];  ///< RN(y) - y
  alignas(64) float limit[kBlock];
  alignas(64) std::int32_t spread_bin[kBlock];
};

/// Sums of a segment: in double per part of a group, in FP32 per group.
struct ExactRunning {
  struct Part {
    Vd ulp_sum{}, ulp_max{}, perfect{}, perfect2{};
    Vi zeros{}, count{};
  };
  Part part[kParts];
  Vf z2[kGroups]{}, z2_max[kGroups]{}, arith[kGroups]{}, largest[kGroups]{};
  RunningFlips flips;
};

/// What decides whether an element needs a second look.
struct ExactRange {
  explicit ExactRange(const FormatConstants& format)
      : least(splat(format.min_normal < kLeastWide ? kLeastWide : 0)),
        most(splat(format.overflow_threshold < __builtin_inf() ? __builtin_inf() : format.max_finite)) {}
  Vd least, most;
};

/// Converts one part of a block to ulps; returns which elements are not RN(y) or need a second look.
template <bool narrow>
Vi convert_part(const double* got, const double* expected, std::size_t begin, std::size_t size,
                const InverseUlp& given_units, const ExactRange& range, ExactBlock& block, ExactRunning::Part& sums) {
  // Local copies, so that the compiler knows that stores cannot alias them.
  Vd ulp_sum = sums.ulp_sum, largest = sums.ulp_max, perfect = sums.perfect, perfect2 = sums.perfect2;
  Vi zeros = sums.zeros, count = sums.count, wrong{};
  const InverseUlp units = given_units;
  const Vd least = range.least, most = range.most;
  for (std::size_t i = begin; i < size; i += kLanes) {
    const Vd given = load(got + i);
    const Vd value = load(expected + i);
    const Vd inverse = units.at(value);
    const Vd y = value * inverse;
    const Vd best = nearest_integer(y) - y;
    const Vd abs_best = magnitude_of(best);
    const Vd size_of_value = magnitude_of(value);
    const Vi is_zero = given == 0.0, is_not_zero = value != 0.0;
    wrong |= ((given - value) * inverse != best) | (is_zero & ((Vi(given) ^ Vi(value)) < 0));
    wrong |= ((size_of_value < least) & is_not_zero) | (size_of_value > most);
    const Half single = narrowed(y);
    // Sums in FP32 need a y that FP32 holds; the slope of FP32's errors is not known without them.
    wrong |= narrow ? widened(single) != y : best != 0.0;
    *reinterpret_cast<LooseHalf*>(block.y + i) = single;
    store_narrow(block.best + i, best);
    zeros -= is_zero;
    count -= is_not_zero;
    ulp_sum += abs_best;
    largest = larger(abs_best, largest);
    const Vd best2 = best * best;
    perfect += best2;
    perfect2 += best2 * best2;
  }
  sums.ulp_sum = ulp_sum, sums.ulp_max = largest, sums.perfect = perfect, sums.perfect2 = perfect2;
  sums.zeros = zeros, sums.count = count;
  return wrong;
}

/// In units of the ulp, all that is asked of an element depends on |y| alone, and casts have few different ones: those that have told
/// all they can are remembered. Of 16- and 8-bit outputs.
class Settled {
 public:
  explicit Settled(const ExactSums& sums) {
    for (int i = 0; i < kSettled; ++i) {
      known_[i] = splat_float(sums.settled[i]);
    }
  }
  [[nodiscard]] Wi has(Vf y) const { return (y == known_[0]) | (y == known_[1]) | (y == known_[2]) | (y == known_[3]); }

 private:
  static_assert(kSettled == 4);
  Vf known_[kSettled];
};

/// Elements that exceed their limits.
template <bool narrow>
Wi extremes_at(const ExactBlock& block, std::size_t at, const Settled& settled) {
  const Wi beyond = magnitude_of(load(block.best + at)) > load(block.limit + at);
  return narrow ? beyond & ~settled.has(magnitude_of(load(block.y + at))) : beyond;
}

/// z^2 of a block, and limits of |e| for extremes; true if an element that is not settled exceeds its limit. `spread`: V is not 0.
template <bool narrow, bool spread>
bool add_spread(std::size_t size, float value, float fraction_scale, Limits limits, const Settled& settled,
                ExactBlock& block, ExactRunning& running) {
  const Vf constant = splat_float(1.0F / (1.0F / 12));  // 1 / V of the output's rounding alone
  Wi extreme{};
  for (std::size_t i = 0; i < size; i += kLanes) {
    for (int g = 0; g < kGroups; ++g) {
      const std::size_t at = i + static_cast<std::size_t>(g * kFloats);
      const Vf signed_y = load(block.y + at);
      const Vf y = magnitude_of(signed_y);
      const Vf best = load(block.best + at);
      const Vf error = magnitude_of(best);
      Vf weight = constant, deviation{}, reached = splat_float(1);
      if (spread) {
        const Vf v = value * (y * y);
        deviation = root_of(v);
        reached = larger(Vf(Wu(y + 3.0F * deviation) & (Wu{} + 0x7f80'0000U)) * fraction_scale, splat_float(1));
        weight = 1.0F / (v + reached * reached * (1.0F / 12));
        running.arith[g] += v;
        if (any(0.5F - error < kFlipReach * deviation)) {
          add_flips({signed_y, best, deviation, Vf{}, weight}, limits.top, g, running.flips);
        }
      }
      const Vf z2 = best * best * weight;
      running.z2[g] += z2;
      running.z2_max[g] = larger(z2, running.z2_max[g]);
      running.largest[g] = larger(y, running.largest[g]);
      const Vf clamped = smaller(larger(z2, splat_float(0x1p-16F)), splat_float(0x1.ffp47F));
      store(block.spread_bin + at, (Wi(clamped) >> 18) - ((127 - 16) << 5));
      Vf limit = smaller(limits.relative * y, limits.value * y + limits.half_ulp);
      if (narrow) {
        limit = smaller(limits.half_reached * reached + limits.deviation * deviation, limit);
      }
      store(block.limit + at, limit);
      extreme |= narrow ? (error > limit) & ~settled.has(y) : error > limit;
    }
  }
  return any(extreme);
}

/// Looks at the elements that exceed their limits.
template <bool narrow>
void raise_extremes(const SegmentView& segment, std::size_t begin, std::size_t size, const FormatConstants& format,
                    const ModelConstants& model, const ExactBlock& block, ExactSums& sums) {
  for (std::size_t i = 0; i < size; i += kFloats) {
    for (int lane = 0; lane < kFloats; ++lane) {
      const std::size_t at = i + static_cast<std::size_t>(lane);
      const Wi extreme = extremes_at<narrow>(block, i, Settled(sums));
      if (!any(extreme)) {
        break;
      }
      if (extreme[lane] == 0) {
        continue;
      }
      const double over = raise_element(segment, begin + at, format, model, sums.sums);
      if (narrow && sums.sums.worst.count == kWorst && over <= entry_over_bound(sums.sums.worst)) {
        sums.settled[sums.next_settled++ % kSettled] = __builtin_fabsf(block.y[at]);
      }
    }
  }
}

void count_spread(const ExactBlock& block, std::size_t size, Histograms& histograms) {
  for (std::size_t i = 0; i < size; i += kLanes) {
#pragma GCC unroll 8
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      ++histograms.spread[lane % kCopies][block.spread_bin[i + lane]];
    }
  }
}

template <bool narrow>
void write_back(const ExactRunning& running, ExactSums& all) {
  Accumulators& sums = all.sums;
  for (int s = 0; s < kParts; ++s) {
    const ExactRunning::Part& part = running.part[s];
    for (int i = 0; i < kWidth; ++i) {
      const int lane = s * kWidth + i;
      sums.ulps.sum[lane] += part.ulp_sum[i];
      sums.ulps.max[lane] = part.ulp_max[i] > sums.ulps.max[lane] ? part.ulp_max[i] : sums.ulps.max[lane];
      sums.ulps.zeros[lane] += part.zeros[i];
      if (narrow) {
        sums.rounding.count[lane] += part.count[i];
        sums.rounding.ratio[lane] += part.perfect[i];  // got is what a perfect rounding leaves
        sums.rounding.perfect[lane] += part.perfect[i];
        sums.rounding.perfect2[lane] += part.perfect2[i];
      }
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / kFloats, i = lane % kFloats;
    const auto most = static_cast<double>(running.z2_max[g][i]);
    sums.gates.z2[lane] += static_cast<double>(running.z2[g][i]);
    sums.gates.z2_max[lane] = most > sums.gates.z2_max[lane] ? most : sums.gates.z2_max[lane];
    all.largest = running.largest[g][i] > all.largest ? running.largest[g][i] : all.largest;
    if (narrow) {
      sums.rounding.arith[lane] += static_cast<double>(running.arith[g][i]);
      sums.flips.predicted[lane] += static_cast<double>(running.flips.predicted[g][i]);
    }
  }
}

template <bool narrow, bool spread>
bool run_exact(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model, ExactSums& sums,
               Histograms& histograms) {
  const InverseUlp units(format);
  const ExactRange range(format);
  const auto value = static_cast<float>(model.var_value), fraction_scale = static_cast<float>(format.fraction_scale);
  Limits limits(sums.sums, format, model);
  Settled settled(sums);
  ExactRunning running;
  ExactBlock block;
  for (std::size_t begin = 0; begin < segment.size; begin += kBlock) {
    const std::size_t size = begin + kBlock < segment.size ? kBlock : segment.size - begin;
    Vi wrong{};
    for (int s = 0; s < kParts; ++s) {
      wrong |= convert_part<narrow>(segment.got + begin, segment.expected + begin, static_cast<std::size_t>(s) * kWidth,
                                    size, units, range, block, running.part[s]);
    }
    if (any(wrong)) {
      return false;
    }
    if (add_spread<narrow, spread>(size, value, fraction_scale, limits, settled, block, running)) {
      raise_extremes<narrow>(segment, begin, size, format, model, block, sums);
      limits = Limits(sums.sums, format, model);
      settled = Settled(sums);
    }
    if (narrow) {
      count_spread(block, size, histograms);
    }
  }
  if (!narrow) {
    histograms.spread[0][0] += static_cast<std::uint32_t>(segment.size);  // no element has an error
  }
  histograms.ulps[1] += static_cast<std::uint32_t>(segment.size);  // no error is larger than half an ulp
  write_back<narrow>(running, sums);
  return true;
}

/// Whether the values for unrounded inputs are numbers that are not clamped.
bool is_within(const double* unrounded, std::size_t size, Vd most) {
  Vi beyond{};
  for (std::size_t i = 0; unrounded != nullptr && i < size; i += kWidth) {
    beyond |= magnitude_of(load(unrounded + i)) > most;
  }
  return !any(beyond);
}

}  // namespace

bool exact(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model, ExactSums& sums,
           Histograms& histograms) {
  if (!is_within(segment.unrounded, segment.size, ExactRange(format).most) ||
      !norms(segment, format, false, sums.sums)) {
    return false;
  }
  if (!format.narrow) {
    return run_exact<false, false>(segment, format, model, sums, histograms);
  }
  return model.var_value != 0 ? run_exact<true, true>(segment, format, model, sums, histograms)
                              : run_exact<true, false>(segment, format, model, sums, histograms);
}

}  // namespace numcheck::metric::NUMCHECK_ISA
