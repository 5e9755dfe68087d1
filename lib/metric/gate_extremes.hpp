// The largest ratios of single elements, and the list of the worst, exactly. Include only from sources compiled per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "metric/gate_exact.hpp"
#include "metric/kernels_isa.hpp"
#include "metric/worst_list.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

inline std::int64_t position_of(const SegmentView& segment, std::size_t i) {
  return segment.positions != nullptr ? segment.positions[i] : segment.position + static_cast<std::int64_t>(i);
}

/// Where A is 0, any error is infinitely large.
inline void raise_backward(const SegmentView& segment, std::size_t i, double error, const FormatConstants& format,
                           const ModelConstants& model, TermSums& terms) {
  const auto a = static_cast<double>(segment.terms[i]);
  if (a != 0 && !(a >= kLeastTermSum && a < __builtin_inf())) {
    return;
  }
  const double backward = error / (a * model.scale);
  const double ulps = error / ulp_at(a * model.scale, format);
  terms.backward = backward > terms.backward ? backward : terms.backward;
  terms.ulps = ulps > terms.ulps ? ulps : terms.ulps;
}

/// Updates the list of worst elements and the largest ratios with an element, exactly. Returns its |e| / B.
inline double raise_element(const SegmentView& segment, std::size_t i, const FormatConstants& format,
                            const ModelConstants& model, Accumulators& sums) {
  const double got = segment.got[i];
  const double y = segment.expected[i];
  const double error = __builtin_fabs(got - y);
  if (!(error > 0)) {
    return 0;
  }
  const double bound = bound_of(__builtin_fabs(y), magnitude_at(segment, i, model), format, model);
  const double over_bound = error / bound;
  insert_worst(sums.worst, over_bound, position_of(segment, i), got, y);
  const double relative = y != 0 ? error / __builtin_fabs(y) : 0;
  const double excess = error / (kNumpyRtol * __builtin_fabs(y));
  double& max_rel = sums.arithmetic.max_rel;
  double& max_excess = sums.numpy.max_excess;
  max_rel = relative > max_rel ? relative : max_rel;
  max_excess = excess > max_excess ? excess : max_excess;
  if (model.terms) {
    raise_backward(segment, i, error, format, model, sums.terms);
  }
  if (format.narrow) {
    const Element element = element_of(segment, i, format, model);
    const double over = __builtin_fabs(element.error) / limit_of(element, model);
    double& most = sums.rounding.max_over_half_ulp;
    most = over > most ? over : most;
  }
  return over_bound;
}

}  // namespace
}  // namespace numcheck::metric::NUMCHECK_ISA
