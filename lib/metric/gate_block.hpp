// The gates' loops over one block of elements. Include only from sources compiled per instruction set.
//
// Everything is in units of the output's ulp at y, a power of two. In these units y is an integer plus a fraction and
// is rounded with one constant, and variances and slopes have moderate size, so that FP32 (relative error 2^-24 per
// operation) suffices for them at half the cost. Exact quantities and norms stay in double.
#pragma once

#include <cstddef>
#include <cstdint>

#include "metric/gate_exact.hpp"
#include "metric/gate_flips.hpp"
#include "metric/simd.hpp"
#include "metric/worst_list.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

static_assert(kBlock / kLanes < 16, "a lane's share of a block fits 4-bit counters");
/// Largest variance (in squared ulps) and error (in ulps) whose sums and products safely fit in FP32. Only elements far
/// smaller than their error exceed them, such as the zeros of relu.
constexpr float kMaxVariance = 1e30F;
constexpr double kMaxError = 0x1p30;
/// 2^-m of the finest format for which sums of y^4 (in ulps) fit in FP32.
constexpr double kFinestScale = 0x1p-25;
/// Factor that keeps limits in FP32 slightly below the true ones despite rounding.
constexpr double kSafety = 1 - 0x1p-20;
/// PyTorch's limit may be lower than rtol |y| + atol by this factor: product and sum are rounded to the format (an atol
/// of 1e-5 is 168 steps of FP16), and so is |e|.
constexpr double kTorchNarrow = 1 - 0x1p-6;
/// Bits of the double whose exponent corresponds to bin 0 of the ULP histogram.
constexpr std::uint64_t kBinZero = std::uint64_t{1023 - 3} << 52;

/// Elements of a block in ulps, between the loops.
struct Block {
  alignas(64) float y[kBlock];
  alignas(64) float error[kBlock];           ///< got - y
  alignas(64) float best[kBlock];            ///< RN(y) - y
  alignas(64) float inverse[kBlock];         ///< 1 / ulp
  alignas(64) float variance[kBlock];        ///< V_arith; may be infinite or NaN beyond the range of FP32
  alignas(64) float coherence[kBlock];       ///< |y| / A
  alignas(64) float weight[kBlock];          ///< 1 / V
  alignas(64) float half[kBlock];            ///< half an ulp at |y| + 3 sd
  alignas(64) float deviation[kBlock];       ///< sd, the root of V_arith
  alignas(64) float limit[kBlock];           ///< smaller |e| cannot be a new extreme of G1, G4 or |e| / |y|
  alignas(64) std::int32_t rounded[kBlock];  ///< mask: element is in U of G4
  alignas(64) std::int32_t spread_bin[kBlock];
};

/// The model in FP32. Powers of the output scale are combined with 1 / ulp.
struct SingleModel {
  explicit SingleModel(const ModelConstants& model)
      : scale(static_cast<float>(model.scale)),
        second(static_cast<float>(model.var_second)),
        magnitude(static_cast<float>(model.var_magnitude)),
        value(static_cast<float>(model.var_value)),
        coherent(static_cast<float>(model.var_coherent)),
        least_room(model.narrowed ? 1e30F : 0.0F),
        // Squared only after multiplying by 1 / ulp, because its own square may be out of range.
        absolute(static_cast<float>(__builtin_sqrt(model.var_absolute))) {}

  float scale, second, magnitude, value, coherent;
  float least_room;  ///< sqrt(S2) may be as large as A, or this
  float absolute;
};

/// x rounded down to FP32: to zero in the subnormal range, and capped to leave room for products.
inline float lowered_to_float(double x) {
  constexpr double kMax = 1e30;
  const double capped = x < kMax ? x * kSafety : kMax;
  return x < 0x1p-126 ? 0.0F : static_cast<float>(capped);
}

/// Factors of the limits on a block's |e|: the extremes so far times the constants.
struct Limits {
  Limits(const Accumulators& sums, const FormatConstants& format, const ModelConstants& model) {
    const double entry = entry_over_bound(sums.worst);
    magnitude = lowered_to_float(entry * model.bound_magnitude);
    value = lowered_to_float(entry * model.bound_value);
    absolute = lowered_to_float(entry * model.bound_absolute);
    half_ulp = lowered_to_float(entry * 0.5);
    relative = lowered_to_float(sums.arithmetic.max_rel);
    const double most = format.narrow ? sums.rounding.max_over_half_ulp : 0;
    half_reached = lowered_to_float(0.5 * most);
    deviation = lowered_to_float(model.lambda_kappa * most);
    const double torch = (sums.torch.max_excess < 1 ? sums.torch.max_excess : 1) * (format.narrow ? kTorchNarrow : 1);
    torch_value = lowered_to_float(torch * model.torch_rtol);
    torch_absolute = lowered_to_float(torch * model.torch_atol);
    const double te = sums.te.max_excess < 1 ? sums.te.max_excess : 1;
    te_value = lowered_to_float(te * model.te_rtol);
    te_absolute = lowered_to_float(te * model.te_atol);
    top = static_cast<float>(2 / format.fraction_scale);
    addend = lowered_to_float(model.addend);
    backward = model.terms ? lowered_to_float(sums.terms.backward) : __builtin_inff();
    backward_power = model.terms ? lowered_to_float(sums.terms.ulps * format.fraction_scale) : __builtin_inff();
  }

  float magnitude, value, absolute, half_ulp;  ///< G1
  float half_reached, deviation;               ///< G4
  float relative;                              ///< the largest relative error
  float torch_value, torch_absolute, te_value, te_absolute;
  float backward, backward_power;  ///< of A, and of the power of two below it
  float top;                       ///< no limit, but what flips need: see add_flips
  float addend;                    ///< nor this: ModelConstants::addend
};

/// Accumulators for a segment: in double per part of a group, in FP32 per group.
struct Running {
  struct Part {
    Vd ulp_sum{}, ulp_max{}, ratio{}, perfect{}, perfect2{}, a{}, b{};
    Vi zeros{};
    Vu bins_even{}, bins_odd{};  ///< bytes: counts of the even-numbered and odd-numbered bins
  };
  struct Group {
    Wi inexact[kGroups]{};
    Vf z2[kGroups]{}, z2_max[kGroups]{}, aa[kGroups]{}, ab[kGroups]{}, bb[kGroups]{};
    Vf coherence[kGroups]{}, addends[kGroups]{}, a[kGroups]{}, b[kGroups]{};
  };
  Part part[kParts];
  Group group;
  RunningFlips flips;
  Vf arith[kGroups]{};
  Wi count[kGroups]{};  ///< of U

  /// Moves the group's a and b to the parts.
  void flush_slopes() {
    alignas(64) float lanes_a[kLanes];
    alignas(64) float lanes_b[kLanes];
    for (int g = 0; g < kGroups; ++g) {
      store(lanes_a + g * kFloats, group.a[g]);
      store(lanes_b + g * kFloats, group.b[g]);
      group.a[g] = group.b[g] = Vf{};
    }
    for (int s = 0; s < kParts; ++s) {
      part[s].a += load_wide(lanes_a + s * kWidth);
      part[s].b += load_wide(lanes_b + s * kWidth);
    }
  }
};

/// 1 / ulp and y in ulps.
inline void convert_to_ulps(const double* expected, std::size_t size, const InverseUlp& units, Block& block) {
  for (std::size_t i = 0; i < size; i += kWidth) {
    const Vd y = load(expected + i);
    const Vd inverse = units.at(y);
    store_narrow(block.inverse + i, inverse);
    store_narrow(block.y + i, y * inverse);
  }
}

/// V_arith, 1 / V, U and limits of a block; true if a variance exceeds kMaxVariance.
///   V = V_arith + ulp(|y| + 3 sd)^2 / 12
template <bool narrow, bool coherent>
bool add_variances(const SegmentView& segment, std::size_t begin, std::size_t size, SingleModel m, Limits limits,
                   float fraction_scale, Block& block) {
  const float* const magnitude = segment.magnitude + begin;
  const float* const deviations = segment.deviation + begin;
  const float* const terms = segment.terms + begin;
  Wi within = ~Wi{};
  for (std::size_t i = 0; i < size; i += kFloats) {
    const Vf y = magnitude_of(load(block.y + i));
    const Vf inverse = load(block.inverse + i);
    const Vf unit = inverse * m.scale;
    const Vf a = load(magnitude + i) * unit;
    const Vf a2 = a * a;
    const Vf given = smaller(load(deviations + i) * unit, larger(a, splat_float(m.least_room)));
    const Vf s2 = given * given;
    const Vf absolute = m.absolute * inverse;
    Vf v = m.second * s2 + m.magnitude * a2 + m.value * (y * y) + absolute * absolute;
    if (coherent) {
      const Vf coherence = y / larger(a, splat_float(1e-30F));
      const Vf aligned = coherence * y;
      v += m.coherent * (aligned * aligned);
      store(block.coherence + i, coherence);
    }
    store(block.variance + i, v);
    within &= v <= kMaxVariance;
    const Vf held = smaller(v, splat_float(kMaxVariance));
    const Vf deviation = root_of(held);
    // Within 2^-24 of a power of two, rounding may move the sum to its other side.
    const Vf power = Vf(Wu(y + 3.0F * deviation) & (Wu{} + 0x7f80'0000U));
    const Vf reached = larger(power * fraction_scale, splat_float(1.0F));
    store(block.weight + i, 1.0F / (held + reached * reached * (1.0F / 12)));
    Vf limit = limits.magnitude * a + limits.value * y + limits.absolute * inverse + limits.half_ulp;
    limit = smaller(limits.relative * y, limit);
    // The first operand is NaN if A is 0 and the limit infinite.
    const Vf sum = load(terms + i) * unit;
    limit = smaller(limits.backward * sum, limit);
    limit = smaller(limits.backward_power * Vf(Wu(sum) & (Wu{} + 0x7f80'0000U)), limit);
    if (narrow) {
      store(block.rounded + i, (v <= 1.0F / 256) & (y > 0.0F));
      store(block.half + i, 0.5F * reached);
      store(block.deviation + i, deviation);
      limit = smaller(limits.half_reached * reached + limits.deviation * deviation, limit);
    }
    store(block.limit + i, limit);
  }
  return any(~within);
}

/// Errors, ULP statistics, and the sums of G4 on U = {y != 0, sqrt(V_arith) <= ulp / 16}, of one part of the groups;
/// returns the largest |e|.
template <bool narrow>
Vd add_errors(const double* got, const double* expected, std::size_t begin, std::size_t size,
              const InverseUlp& given_units, Block& block, Running::Part& sums) {
  // Local copies, so that the compiler knows that stores cannot alias them.
  Vd ulp_sum = sums.ulp_sum, ratio = sums.ratio, perfect = sums.perfect, perfect2 = sums.perfect2, largest{};
  Vi zeros = sums.zeros;
  const InverseUlp units = given_units;
  Vu bins{};  // 4 bits per bin
  for (std::size_t i = begin; i < size; i += kLanes) {
    const Vd given = load(got + i);
    const Vd value = load(expected + i);
    const Vd inverse = units.at(value);
    const Vd y = value * inverse;
    const Vd error = (given - value) * inverse;
    const Vd abs_error = magnitude_of(error);
    const Vd best = nearest_integer(y) - y;
    store_narrow(block.error + i, error);
    store_narrow(block.best + i, best);
    zeros -= given == 0.0;
    ulp_sum += abs_error;
    largest = larger(abs_error, largest);
    // Bin b > 0 holds (2^(b-3), 2^(b-2)], so use the exponent of the next smaller double; 0.3 represents [0, 1/2].
    const Vd clamped = smaller(larger(abs_error, splat(0.3)), splat(0x1p13));
    bins += (Vu{} + 1) << ((Vu(clamped) - (kBinZero + 1)) >> 50 & 0x3c);
    if (narrow) {
      const Vi in = load_wide(block.rounded + i);
      const Vd best2 = masked(best * best, in);
      ratio += masked(error * error, in);
      perfect += best2;
      perfect2 += best2 * best2;
    }
  }
  sums.ulp_sum = ulp_sum, sums.ulp_max = larger(largest, sums.ulp_max), sums.zeros = zeros;
  sums.ratio = ratio, sums.perfect = perfect, sums.perfect2 = perfect2;
  sums.bins_even += bins & 0x0f0f'0f0f'0f0f'0f0fULL;
  sums.bins_odd += (bins >> 4) & 0x0f0f'0f0f'0f0f'0f0fULL;
  return largest;
}

/// What elements of a 16- or 8-bit output add to their groups.
inline Vf group_share(Vf abs_error, Vf best, Vf half, Vf deviation) {
  const Vf over = larger(abs_error - half, Vf{});
  const Vf z = over / larger(deviation, splat_float(1e-9F));
  const Wi wide = deviation > kGroupWide;
  const Wi near = magnitude_of(best) + kGroupReach * deviation > 0.5F;
  const Vf offset = Vf((Wi(splat_float(kGroupWideOffset)) & wide) | (Wi(splat_float(kGroupNearOffset)) & near & ~wide));
  return z * z - offset;
}

/// The sum over all lanes, in one order for all instruction sets.
inline float sum_of(const Vf (&groups)[kGroups]) {
  alignas(64) float x[kLanes];
  for (int g = 0; g < kGroups; ++g) {
    store(x + g * kFloats, groups[g]);
  }
  return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

/// Conditions found by add_slope().
struct BlockFlags {
  bool extreme;    ///< an |e| exceeds its limit
  bool torch, te;  ///< that tool's predicate may have a mismatch or a new extreme
};

/// Where a block's elements lie in their columns' sums.
struct Columns {
  float *a, *b, *z;
};

/// G2 and G3 of a block: z^2 = e^2 / V, a = w y e', b = w y^2, w = 1 / V; and what it adds to groups.
template <bool narrow, bool coherent>
BlockFlags add_slope(Columns columns, float& block_z, std::size_t size, Limits limits, Block& block, Running& running) {
  Running::Group r = running.group;
  RunningFlips flips = running.flips;
  Vf shares[kGroups]{};
  Wi extreme{};
  Wi torch{};
  Wi te{};
  for (std::size_t i = 0; i < size; i += kLanes) {
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
      const std::size_t at = i + static_cast<std::size_t>(g * kFloats);
      const Vf y = load(block.y + at);
      const Vf error = load(block.error + at);
      const Vf inverse = load(block.inverse + at);
      const Vf weight = load(block.weight + at);
      const Vf abs_error = magnitude_of(error);
      const Vf best = load(block.best + at);
      const Vf off = error - best;  // got - RN(y)
      // Exact: FP32 distinguishes all multiples of half an ulp.
      r.inexact[g] -= off != 0.0F;
      extreme |= abs_error > load(block.limit + at);
      // PyTorch rounds y to FP32 first. Any difference from that value is at least half an ulp.
      const Vf stored = narrow ? nearest_integer(y) : y + best;
      const Vf torch_error = magnitude_of(narrow ? error + (y - stored) : off);
      const Vf torch_limit = limits.torch_value * magnitude_of(stored) + limits.torch_absolute * inverse;
      torch |= torch_error > larger(torch_limit, splat_float(0.25F));
      te |= magnitude_of(off) > larger(limits.te_value * magnitude_of(y + best), limits.te_absolute * inverse);
      const Vf z2 = error * error * weight;
      r.z2[g] += z2;
      r.z2_max[g] = larger(z2, r.z2_max[g]);
      const Vf clamped = smaller(larger(z2, splat_float(0x1p-16F)), splat_float(0x1.ffp47F));
      store(block.spread_bin + at, (Wi(clamped) >> 18) - ((127 - 16) << 5));
      const Vf wy = weight * y;
      if (narrow) {
        add_flips({y, best, load(block.deviation + at), off, weight}, limits.top, g, flips);
      }
      const Vf a = wy * (narrow ? off : error);
      const Vf b = wy * y;
      r.a[g] += a;
      r.b[g] += b;
      r.aa[g] += a * a;
      r.ab[g] += a * b;
      r.bb[g] += b * b;
      if (coherent) {
        r.coherence[g] += b * load(block.coherence + at);
      }
      if (limits.addend != 0) {
        // Whatever is larger has a weight of 0: its V is beyond FP32.
        const Vf addend = smaller(limits.addend * inverse, splat_float(1e18F));
        r.addends[g] += Vf(Wi(weight * addend * addend) & Wi(y != 0.0F));
      }
      store(columns.a + at, load(columns.a + at) + a);
      store(columns.b + at, load(columns.b + at) + b);
      const Vf share = narrow ? group_share(abs_error, best, load(block.half + at), load(block.deviation + at)) : z2;
      shares[g] += share;
      store(columns.z + at, load(columns.z + at) + share);
    }
  }
  running.group = r;
  running.flips = flips;
  block_z = sum_of(shares);
  running.flush_slopes();
  return {any(extreme), any(torch), any(te)};
}

}  // namespace
}  // namespace numcheck::metric::NUMCHECK_ISA
