// What other tools' predicates say. Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "metric/kernels_isa.hpp"
#include "metric/simd.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

constexpr std::size_t kBlock = 64;

inline double magnitude_of(double x) {
  return __builtin_fabs(x);
}

double scalar_ulp(double x, const FormatConstants& format) {
  const auto bits = __builtin_bit_cast(std::uint64_t, x) & 0x7ff0'0000'0000'0000ULL;
  const double power = __builtin_bit_cast(double, bits);
  return (power > format.min_normal ? power : format.min_normal) * format.fraction_scale;
}

double scalar_round(double x, const FormatConstants& format) {
  const double shifter = scalar_ulp(x, format) * 0x1.8p52;
  return (x + shifter) - shifter;
}

/// A predicate |got - y| <= atol + rtol |y|.
struct Allclose {
  double rtol, atol;
  PredicateSums* sums;
};

void raise_excess(const SegmentView& segment, std::size_t begin, std::size_t end, const Allclose& predicate) {
  for (std::size_t i = begin; i < end; ++i) {
    const double y = segment.expected[i];
    const double error = magnitude_of(segment.got[i] - y);
    const double excess = error > 0 ? error / (predicate.atol + predicate.rtol * magnitude_of(y)) : 0;
    predicate.sums->max_excess = excess > predicate.sums->max_excess ? excess : predicate.sums->max_excess;
  }
}

/// `count` such predicates in one pass: torch.testing.assert_close, numpy.testing.assert_allclose, the plan's own.
template <int count>
void allclose(const SegmentView& segment, const Allclose (&predicates)[count]) {
  Count mismatches[count];
  for (int p = 0; p < count; ++p) {
    mismatches[p] = fetch(predicates[p].sums->mismatches);
  }
  for (std::size_t block = 0; block < segment.size; block += kBlock) {
    const std::size_t end = block + kBlock < segment.size ? block + kBlock : segment.size;
    Vd floor[count];
    Vi raise[count];
    for (int p = 0; p < count; ++p) {
      floor[p] = lowered(predicates[p].sums->max_excess);
      raise[p] = Vi{};
    }
    for (std::size_t i = block; i < end; i += kLanes) {
#pragma GCC unroll 4
      for (int s = 0; s < kParts; ++s) {
        const Vd y = load(segment.expected + i + s * kWidth);
        const Vd error = magnitude_of(load(segment.got + i + s * kWidth) - y);
#pragma GCC unroll 3
        for (int p = 0; p < count; ++p) {
          const Vd limit = predicates[p].atol + predicates[p].rtol * magnitude_of(y);
          mismatches[p].part[s] -= error > limit;
          raise[p] |= error > floor[p] * limit;
        }
      }
    }
    for (int p = 0; p < count; ++p) {
      if (any(raise[p])) {
        raise_excess(segment, block, end, predicates[p]);
      }
    }
  }
  for (int p = 0; p < count; ++p) {
    put(predicates[p].sums->mismatches, mismatches[p]);
  }
}

/// TransformerEngine's forgiveness for formats other than FP32: got and reference are neighbours in the format, found
/// by casting their mean, moved by one part in a million up and down.
bool are_neighbours(double got, double reference, const FormatConstants& format) {
  const double mean = (got + reference) / 2;
  const double away = scalar_round(mean * (1 + 1e-6), format);
  const double toward = scalar_round(mean * (1 - 1e-6), format);
  const double low = got < reference ? got : reference;
  const double high = got < reference ? reference : got;
  return mean >= 0 ? toward == low && away == high : away == low && toward == high;
}

void te_scalar(const SegmentView& segment, std::size_t i, const FormatConstants& format, const ModelConstants& model,
               PredicateSums& sums) {
  const double reference = scalar_round(segment.expected[i], format);
  const double error = magnitude_of(segment.got[i] - reference);
  const double relative = model.te_rtol * magnitude_of(reference);
  const double limit = relative > model.te_atol ? relative : model.te_atol;
  if (error > limit) {
    if (format.narrow && are_neighbours(segment.got[i], reference, format)) {
      return;
    }
    ++sums.mismatches[i % kLanes];
  }
  const double excess = error / limit;
  sums.max_excess = excess > sums.max_excess ? excess : sums.max_excess;
}

/// compareResults: the reference is in the output's format, and either tolerance suffices.
void compare_results(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model,
                     PredicateSums& sums) {
  for (std::size_t block = 0; block < segment.size; block += kBlock) {
    const std::size_t end = block + kBlock < segment.size ? block + kBlock : segment.size;
    // Everything that mismatches needs the scalar code, whatever the largest excess.
    const Vd floor = lowered(sums.max_excess < 1 ? sums.max_excess : 1);
    Vi look{};
    for (std::size_t i = block; i < end; i += kWidth) {
      const Vd y = load(segment.expected + i);
      const Vd reference = round_to_multiple(y, ulp_at(magnitude_of(y), format));
      const Vd limit = larger(model.te_rtol * magnitude_of(reference), splat(model.te_atol));
      look |= magnitude_of(load(segment.got + i) - reference) > floor * limit;
    }
    if (any(look)) {
      for (std::size_t i = block; i < end; ++i) {
        te_scalar(segment, i, format, model, sums);
      }
    }
  }
}

}  // namespace

void opinions(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model,
              Accumulators& sums) {
  constexpr double kNumpyRtol = 1e-7;  // numpy.testing.assert_allclose defaults: rtol 1e-7, atol 0
  const Allclose torch{model.torch_rtol, model.torch_atol, &sums.torch};
  const Allclose numpy{kNumpyRtol, 0, &sums.numpy};
  if (model.have_plan) {
    allclose(segment, {torch, numpy, {model.plan_rtol, model.plan_atol, &sums.plan}});
  } else {
    allclose(segment, {torch, numpy});
  }
  compare_results(segment, format, model, sums.te);
}

}  // namespace numcheck::metric::NUMCHECK_ISA
