// ULP statistics and gates G1 to G4 (tensor_core_numerics, section 5.4). Compiled once per instruction set:
// NUMCHECK_ISA is the namespace.
//
// Everything after the bound is computed in units of the output's ulp at y, a power of two: there y is an integer plus
// a fraction, rounding it needs one constant, and the quotients and roots are of moderate size, so that FP32 (relative
// error 2^-24) serves for them at half the cost.
#include "metric/gate_block.hpp"
#include "metric/kernels_isa.hpp"
#include "metric/simd.hpp"
#include "metric/worst_list.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

/// Below this a second moment may have been flushed to zero in FP32; A^2 bounds it from above.
constexpr double kLostMoment = 0x1p-118;
/// Largest variance, in squared ulps, that FP32 holds with room to spare. Beyond are elements far smaller than their
/// error, such as the zeros of relu.
constexpr double kMostVariance = 1e30;

/// B without and with the output's rounding, for a vector of elements.
inline Vd bound_of(Vd abs_y, Vd a, const FormatConstants& format, const ModelConstants& model) {
  const Vd arithmetic = model.bound_magnitude * a + model.bound_value * abs_y + model.bound_absolute;
  return arithmetic + 0.5 * ulp_at(abs_y + arithmetic, format);
}

inline Vd magnitude_at(const SegmentView& segment, std::size_t i, const ModelConstants& model) {
  return smaller(load(segment.magnitude + i), splat(1e39)) * model.scale;
}

/// What fill() noticed.
struct Notice {
  bool enter;  ///< an |e| / B may be among the worst
  bool wide;   ///< a variance is beyond FP32
};

/// Fills the block from element `begin` on.
template <bool coherent, bool wide>
Notice fill(const SegmentView& segment, std::size_t begin, std::size_t size, const FormatConstants& format,
            const ModelConstants& model, double entry, Block& block) {
  const Vd floor = lowered(entry);
  Vi enter{};
  Vi beyond{};
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
    const Vd variance = v * inverse * inverse;
    beyond |= variance > kMostVariance;
    store(block.y + i, y * inverse);
    store(block.error + i, error * inverse);
    store(block.variance + i, variance);
    store(block.deviation + i, wide ? root_of(variance) : widened(root_of(narrowed(variance))));
  }
  return {any(enter), any(beyond)};
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
    const double entry = entry_over_bound(sums.worst);
    const Notice notice = fill<coherent, false>(segment, begin, size, format, model, entry, block);
    if (notice.enter) {
      enter_worst(segment, begin, size, format, model, sums.worst);
    }
    if (notice.wide) {
      (void)fill<coherent, true>(segment, begin, size, format, model, entry, block);
    }
    double& most = sums.rounding.max_over_half_ulp;
    const double* const got = segment.got + begin;
    const bool raise = notice.wide ? add_errors<narrow, true>(got, size, format, model, most, block, running)
                                   : add_errors<narrow, false>(got, size, format, model, most, block, running);
    if (raise) {
      raise_element(block, size, format, model, most);
    }
    add_slope<narrow, coherent>(segment.column_a + begin, segment.column_b + begin, size, block, running);
    if (narrow) {
      add_rounding(size, block, running);
    }
    count_bins(block, size, histograms);
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
