// Norms and special values. Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "metric/kernels_isa.hpp"
#include "metric/simd.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

/// Updates the largest |got - y| / |y| exactly.
void raise_relative(const double* got, const double* y, std::size_t begin, std::size_t end, double& max_rel) {
  for (std::size_t i = begin; i < end; ++i) {
    const double error = __builtin_fabs(got[i] - y[i]);
    if (y[i] != 0 && error > 0) {
      const double ratio = error / __builtin_fabs(y[i]);
      max_rel = ratio > max_rel ? ratio : max_rel;
    }
  }
}

/// Sums over one part of every group; few enough accumulators to stay in registers.
struct PartSums {
  Vd e, abs_e, e2, y, y2, ey, max_abs;
  Vi nonzero, toward, mismatches{};
  Vi regular = ~Vi{};

  PartSums(const ErrorSums& sums, int lane)
      : e(load(sums.e + lane)),
        abs_e(load(sums.abs_e + lane)),
        e2(load(sums.e2 + lane)),
        y(load(sums.y + lane)),
        y2(load(sums.y2 + lane)),
        ey(load(sums.ey + lane)),
        max_abs(load(sums.max_abs + lane)),
        nonzero(load(sums.nonzero + lane)),
        toward(load(sums.toward_zero + lane)) {}

  void write_back(ErrorSums& sums, int lane) const {
    store(sums.e + lane, e);
    store(sums.abs_e + lane, abs_e);
    store(sums.e2 + lane, e2);
    store(sums.y + lane, y);
    store(sums.y2 + lane, y2);
    store(sums.ey + lane, ey);
    store(sums.max_abs + lane, max_abs);
    store(sums.nonzero + lane, nonzero);
    store(sums.toward_zero + lane, toward);
  }

  /// Returns |got - expected|. |y| is special from `threshold` on.
  inline Vd add(Vd got, Vd expected, Vd threshold) {
    const Vd error = got - expected;
    const Vd magnitude = magnitude_of(error);
    const Vd product = error * expected;
    e += error;
    abs_e += magnitude;
    e2 += error * error;
    y += expected;
    y2 += expected * expected;
    ey += product;
    max_abs = larger(magnitude, max_abs);
    nonzero -= magnitude > 0.0;
    toward -= product < 0.0;
    regular &= (magnitude < __builtin_inf()) & (magnitude_of(expected) < threshold);
    return magnitude;
  }
};

/// Against the expected values, with numpy's mismatches; false if an element is special.
bool add_arithmetic(const SegmentView& segment, const FormatConstants& format, ErrorSums& sums, PredicateSums& numpy) {
  const Vd threshold = splat(format.special_from);
  Vi regular = ~Vi{};
  for (int lane = 0; lane < kLanes; lane += kWidth) {
    PartSums part(sums, lane);
    for (auto i = static_cast<std::size_t>(lane); i < segment.size; i += kLanes) {
      const Vd y = load(segment.expected + i);
      const Vd error = part.add(load(segment.got + i), y, threshold);
      part.mismatches -= error > kNumpyRtol * magnitude_of(y);
    }
    regular &= part.regular;
    part.write_back(sums, lane);
    store(numpy.mismatches + lane, load(numpy.mismatches + lane) + part.mismatches);
  }
  return !any(~regular);
}

/// Against the values for unrounded inputs; false if one of them is not finite.
bool add_total(const SegmentView& segment, ErrorSums& sums) {
  const Vd infinity = splat(__builtin_inf());
  Vi regular = ~Vi{};
  for (int lane = 0; lane < kLanes; lane += kWidth) {
    PartSums part(sums, lane);
    for (std::size_t block = 0; block < segment.size; block += kBlock) {
      const std::size_t end = block + kBlock < segment.size ? block + kBlock : segment.size;
      const Vd floor = lowered(sums.max_rel);
      Vi raise{};
      for (std::size_t i = block + static_cast<std::size_t>(lane); i < end; i += kLanes) {
        const Vd y = load(segment.unrounded + i);
        raise |= part.add(load(segment.got + i), y, infinity) > floor * magnitude_of(y);
      }
      if (any(raise)) {
        raise_relative(segment.got, segment.unrounded, block, end, sums.max_rel);
      }
    }
    regular &= part.regular;
    part.write_back(sums, lane);
  }
  return !any(~regular);
}

/// The float x such that a < x is equivalent to a < limit for all floats a.
float float_limit(double limit) {
  const auto nearest = static_cast<float>(limit);
  const auto bits = __builtin_bit_cast(std::uint32_t, nearest);
  return static_cast<double>(nearest) >= limit ? nearest : __builtin_bit_cast(float, bits + 1);
}

bool are_yardsticks_regular(const SegmentView& segment, const FormatConstants& format) {
  const Vf overflow = splat_float(float_limit(format.special_magnitude));
  Wi regular = ~Wi{};
  for (std::size_t i = 0; i < segment.size; i += kFloats) {
    const Vf deviation = load(segment.deviation + i);
    // False for a NaN and, in every format, for an infinite A, which only costs a second check.
    regular &= (load(segment.magnitude + i) < overflow) & (deviation == deviation);
  }
  return !any(~regular);
}

}  // namespace

bool norms(const SegmentView& segment, const FormatConstants& format, bool specials_removed, Accumulators& sums) {
  if (!specials_removed && !are_yardsticks_regular(segment, format)) {
    return false;
  }
  ErrorSums arithmetic = sums.arithmetic;
  ErrorSums total = sums.total;
  PredicateSums numpy = sums.numpy;
  const bool regular = add_arithmetic(segment, format, arithmetic, numpy);
  const bool regular_total = segment.unrounded == nullptr || add_total(segment, total);
  if (!specials_removed && !(regular && regular_total)) {
    return false;
  }
  sums.arithmetic = arithmetic;
  if (!specials_removed) {
    sums.numpy = numpy;
  }
  if (segment.unrounded != nullptr) {
    sums.total = total;
  }
  return true;
}

}  // namespace numcheck::metric::NUMCHECK_ISA
