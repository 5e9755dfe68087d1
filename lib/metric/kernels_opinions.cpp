// What other tools' predicates say. Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "metric/gate_exact.hpp"
#include "metric/kernels_isa.hpp"
#include "metric/simd.hpp"
#include "metric/torch_close.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

/// The plan's own predicate: |got - y| <= atol + rtol |y|.
void plan_allclose(const SegmentView& segment, std::size_t begin, std::size_t end, const ModelConstants& model,
                   PredicateSums& sums) {
  const Vd floor = lowered(sums.max_excess);
  Vi raise{};
  for (std::size_t i = begin; i < end; i += kWidth) {
    const Vd y = load(segment.expected + i);
    const Vd error = magnitude_of(load(segment.got + i) - y);
    const Vd limit = model.plan_atol + model.plan_rtol * magnitude_of(y);
    std::int64_t* const mismatches = sums.mismatches + i % kLanes;
    store(mismatches, load(mismatches) - Vi(error > limit));
    raise |= error > floor * limit;
  }
  if (!any(raise)) {
    return;
  }
  for (std::size_t i = begin; i < end; ++i) {
    const double y = segment.expected[i];
    const double error = __builtin_fabs(segment.got[i] - y);
    const double excess = error > 0 ? error / (model.plan_atol + model.plan_rtol * __builtin_fabs(y)) : 0;
    sums.max_excess = excess > sums.max_excess ? excess : sums.max_excess;
  }
}

/// torch.testing.assert_close of integers, which FP32 may not hold.
void add_unequal(const SegmentView& segment, std::size_t begin, std::size_t end, PredicateSums& sums) {
  for (std::size_t i = begin; i < end; i += kWidth) {
    const Vi different = ~Vi(load(segment.got + i) == load(segment.expected + i));
    std::int64_t* const mismatches = sums.mismatches + i % kLanes;
    store(mismatches, load(mismatches) - different);
    sums.max_excess = any(different) ? __builtin_inf() : sums.max_excess;
  }
}

/// numpy.testing.assert_allclose(got, y): NumPy takes both to double, and NaN is close to NaN.
void numpy_is_close(const SegmentView& segment, PredicateSums& sums) {
  constexpr double kInfinity = __builtin_inf();
  for (std::size_t i = 0; i < segment.size; ++i) {
    const double got = segment.got[i];
    const double y = segment.expected[i];
    const double error = __builtin_fabs(got - y);
    const double limit = kNumpyRtol * __builtin_fabs(y);
    if (got == y || (got != got && y != y)) {
      continue;
    }
    const bool finite = error < kInfinity;  // only of a y that is finite, too
    const double excess = finite ? error / limit : kInfinity;
    sums.mismatches[i % kLanes] += finite && error <= limit ? 0 : 1;
    sums.max_excess = excess > sums.max_excess ? excess : sums.max_excess;
  }
}

/// TransformerEngine's forgiveness for formats other than FP32: got and reference are neighbours in the format, found
/// by casting their mean, moved by one part in a million up and down.
bool are_neighbours(double got, double reference, const FormatConstants& format) {
  const double mean = (got + reference) / 2;
  const double away = round_to_format(mean * (1 + 1e-6), format);
  const double toward = round_to_format(mean * (1 - 1e-6), format);
  const double low = got < reference ? got : reference;
  const double high = got < reference ? reference : got;
  return mean >= 0 ? toward == low && away == high : away == low && toward == high;
}

/// The largest excess, and the mismatch of a narrow format that is too close to be one without doubt.
void te_scalar(const SegmentView& segment, std::size_t i, bool counted, const FormatConstants& format,
               const ModelConstants& model, PredicateSums& sums) {
  const double reference = round_to_format(segment.expected[i], format);
  const double error = __builtin_fabs(segment.got[i] - reference);
  const double relative = model.te_rtol * __builtin_fabs(reference);
  const double limit = relative > model.te_atol ? relative : model.te_atol;
  if (error > limit && !counted) {
    if (are_neighbours(segment.got[i], reference, format)) {
      return;
    }
    ++sums.mismatches[i % kLanes];
  }
  const double excess = error / limit;
  sums.max_excess = excess > sums.max_excess ? excess : sums.max_excess;
}

/// An element that may be special. Comparisons with NaN, and with an infinite reference, are false: only an infinite
/// result is a mismatch for certain.
void te_with_specials(const SegmentView& segment, std::size_t i, const FormatConstants& format,
                      const ModelConstants& model, PredicateSums& sums) {
  const double got = __builtin_fabs(segment.got[i]);
  if (!(__builtin_fabs(segment.expected[i]) < format.overflow_threshold)) {
    return;
  }
  if (got < __builtin_inf()) {
    te_scalar(segment, i, false, format, model, sums);
  } else if (got == __builtin_inf()) {
    ++sums.mismatches[i % kLanes];
    sums.max_excess = got;
  }
}

/// compareResults: the reference is in the output's format, and either tolerance suffices.
void compare_results(const SegmentView& segment, std::size_t begin, std::size_t end, const FormatConstants& format,
                     const ModelConstants& model, PredicateSums& sums) {
  const InverseUlp units(format);
  // Of neighbours, one lies in the binade of y and the other at most two of its ulps away.
  const Vd certain = splat(format.narrow ? 2.0 : 0.0);
  for (std::size_t i = begin; i < end; i += kWidth) {
    const Vd floor = lowered(sums.max_excess);
    const Vd inverse = units.at(load(segment.expected + i));
    const Vd reference = nearest_integer(load(segment.expected + i) * inverse);
    const Vd error = magnitude_of(load(segment.got + i) * inverse - reference);
    const Vd limit = larger(model.te_rtol * magnitude_of(reference), model.te_atol * inverse);
    const Vi mismatch = error > limit;
    const Vi counted = mismatch & (error > certain);
    std::int64_t* const mismatches = sums.mismatches + i % kLanes;
    store(mismatches, load(mismatches) - counted);
    const Vi look = (error > floor * limit) | (mismatch & ~counted);
    if (any(look)) {
      for (int lane = 0; lane < kWidth; ++lane) {
        if (look[lane] != 0) {
          te_scalar(segment, i + static_cast<std::size_t>(lane), counted[lane] != 0, format, model, sums);
        }
      }
    }
  }
}

/// Smallest ratio of the plan's own limit to B.
void lower_plan_limit(const SegmentView& segment, std::size_t begin, std::size_t end, const FormatConstants& format,
                      const ModelConstants& model, double& least) {
  const InverseUlp units(format);
  const Vd ceiling = splat(least * (1 + 0x1p-50));
  Vi lower{};
  for (std::size_t i = begin; i < end; i += kWidth) {
    const Vd abs_y = magnitude_of(load(segment.expected + i));
    const Vd a = smaller(load_wide(segment.magnitude + i), splat(kMaxMagnitude)) * model.scale;
    const Vd arithmetic = model.bound_magnitude * a + model.bound_value * abs_y + model.bound_absolute;
    const Vd limit = model.plan_atol + model.plan_rtol * abs_y;
    // Times 1 / ulp on both sides.
    const Vd inverse = units.at(abs_y + arithmetic);
    lower |= limit * inverse < ceiling * (arithmetic * inverse + 0.5);
  }
  for (std::size_t i = begin; any(lower) && i < end; ++i) {
    const double abs_y = __builtin_fabs(segment.expected[i]);
    const double bound = bound_of(abs_y, magnitude_at(segment, i, model), format, model);
    const double ratio = (model.plan_atol + model.plan_rtol * abs_y) / bound;
    least = ratio < least ? ratio : least;
  }
}

}  // namespace

void check_torch(const SegmentView& segment, std::size_t begin, std::size_t end, const FormatConstants& format,
                 const ModelConstants& model, PredicateSums& sums) {
  const double* const got = segment.got + begin;
  const double* const y = segment.expected + begin;
  if (format.integer) {
    add_unequal(segment, begin, end, sums);
  } else if (!format.narrow) {
    add_torch(got, y, end - begin, Torch<StoredSingle>(format, model), sums);
  } else if (format.min_normal < 0x1p-100) {
    add_torch(got, y, end - begin, Torch<StoredBfloat16>(format, model), sums);
  } else {
    add_torch(got, y, end - begin, Torch<StoredNarrow>(format, model), sums);
  }
}

void check_te(const SegmentView& segment, std::size_t begin, std::size_t end, const FormatConstants& format,
              const ModelConstants& model, PredicateSums& sums) {
  compare_results(segment, begin, end, format, model, sums);
}

void opinions(const SegmentView& segment, const FormatConstants& format, const ModelConstants& model,
              Accumulators& sums) {
  for (std::size_t begin = 0; begin < segment.size; begin += kBlock) {
    const std::size_t end = begin + kBlock < segment.size ? begin + kBlock : segment.size;
    check_torch(segment, begin, end, format, model, sums.torch);
  }
  numpy_is_close(segment, sums.numpy);
  for (std::size_t i = 0; i < segment.size; ++i) {
    te_with_specials(segment, i, format, model, sums.te);
  }
}

void add_plan(const SegmentView& segment, std::size_t begin, std::size_t end, const FormatConstants& format,
              const ModelConstants& model, Accumulators& sums) {
  plan_allclose(segment, begin, end, model, sums.plan);
  lower_plan_limit(segment, begin, end, format, model, sums.plan_over_bound);
}

}  // namespace numcheck::metric::NUMCHECK_ISA
