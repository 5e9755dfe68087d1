// What other tools' predicates say. Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "metric/gate_exact.hpp"
#include "metric/kernels_isa.hpp"
#include "metric/simd.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

/// A predicate |got - y| <= atol + rtol |y|: torch.testing.assert_close, the plan's own.
struct Allclose {
  double rtol, atol;
};

void allclose(const SegmentView& segment, std::size_t begin, std::size_t end, const Allclose& predicate,
              PredicateSums& sums) {
  const Vd floor = lowered(sums.max_excess);
  Vi raise{};
  for (std::size_t i = begin; i < end; i += kWidth) {
    const Vd y = load(segment.expected + i);
    const Vd error = magnitude_of(load(segment.got + i) - y);
    const Vd limit = predicate.atol + predicate.rtol * magnitude_of(y);
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
    const double excess = error > 0 ? error / (predicate.atol + predicate.rtol * __builtin_fabs(y)) : 0;
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
    const Vd a = smaller(load_wide(segment.magnitude + i), splat(kMostMagnitude)) * model.scale;
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

void look_at_opinions(const SegmentView& segment, std::size_t begin, std::size_t end, const FormatConstants& format,
                      const ModelConstants& model, Accumulators& sums) {
  allclose(segment, begin, end, {model.torch_rtol, model.torch_atol}, sums.torch);
  compare_results(segment, begin, end, format, model, sums.te);
}

void add_plan(const SegmentView& segment, std::size_t begin, std::size_t end, const FormatConstants& format,
              const ModelConstants& model, Accumulators& sums) {
  allclose(segment, begin, end, {model.plan_rtol, model.plan_atol}, sums.plan);
  lower_plan_limit(segment, begin, end, format, model, sums.plan_over_bound);
}

}  // namespace numcheck::metric::NUMCHECK_ISA
