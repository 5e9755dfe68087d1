#include "metric/wrong_elements.hpp"

#include <algorithm>
#include <cmath>

#include "core/parallel.hpp"
#include "metric/reader.hpp"
#include "metric/setup.hpp"
#define NUMCHECK_ISA of_wrong_elements
#include "metric/gate_exact.hpp"

namespace numcheck::metric {
namespace {

using of_wrong_elements::Element;

/// Marks the elements of one output.
class Marker {
 public:
  Marker(const CompareInput& input, const std::optional<double>& max_ulp)
      : input_(input), setup_(make_setup(input)), exact_(input.model->exact), max_ulp_(max_ulp) {}

  void mark(SegmentReader& reader, std::int64_t first, std::span<std::uint8_t> wrong) const {
    const std::uint64_t before = wrong_specials(reader);
    const SegmentView all = reader.read(first, wrong.size(), first + std::ssize(wrong));
    const SegmentView view = reader.without_specials(all, first, wrong.size());
    for (std::size_t i = 0; i < wrong.size(); ++i) {
      wrong[i] = exceeds(view, i) ? 1 : 0;
    }
    if (wrong_specials(reader) != before) {
      mark_specials(reader, first, wrong);
    }
  }

 private:
  /// Which ones the reader does not say, only how many: so they are read one by one.
  void mark_specials(SegmentReader& reader, std::int64_t first, std::span<std::uint8_t> wrong) const {
    for (std::size_t i = 0; i < wrong.size(); ++i) {
      const auto at = first + static_cast<std::int64_t>(i);
      const std::uint64_t before = wrong_specials(reader);
      const SegmentView one = reader.read(at, 1, at + 1);
      (void)reader.without_specials(one, at, 1);
      wrong[i] = wrong[i] != 0 || wrong_specials(reader) != before ? 1 : 0;
    }
  }

  [[nodiscard]] std::uint64_t wrong_specials(const SegmentReader& reader) const {
    return reader.specials().mismatches + (exact_ ? reader.specials().inexact : 0);
  }

  [[nodiscard]] bool exceeds(const SegmentView& view, std::size_t i) const {
    const double y = view.expected[i];
    const double error = std::fabs(view.got[i] - y);
    if (!(error > 0)) {
      return false;
    }
    const ModelConstants& model = setup_.model;
    const Element element = of_wrong_elements::element_of(view, i, setup_.format, model);
    const double ulps = std::fabs(element.error);
    if ((input_.have_allclose && error > input_.atol + input_.rtol * std::fabs(y)) ||
        (max_ulp_.has_value() && ulps > *max_ulp_)) {
      return true;
    }
    if (exact_) {
      return element.error != element.best;
    }
    const double a = of_wrong_elements::magnitude_at(view, i, model);
    const double spread = std::sqrt(element.variance + element.reached * element.reached / 12);
    return error > of_wrong_elements::bound_of(std::fabs(y), a, setup_.format, model) ||
           ulps > model.lambda_kappa * spread ||
           (setup_.format.narrow && ulps > of_wrong_elements::limit_of(element, model));
  }

  const CompareInput& input_;
  Setup setup_;
  bool exact_;
  std::optional<double> max_ulp_;
};

/// True if the statistics show an element beyond one of the limits of mark_wrong.
bool any_exceeds(const CompareInput& input, const Statistics& s, const std::optional<double>& max_ulp) {
  const bool exact = input.model->exact;
  const double spread = lambda_of(s.elements) * input.model->kappa;
  const bool beyond =
      exact ? s.exact_mismatch > 0 : !(s.max_over_bound <= 1 && s.z_max <= spread && s.max_over_half_ulp <= 1);
  return beyond || s.nonfinite_mismatch > 0 || (input.have_allclose && s.plan_allclose.mismatches > 0) ||
         (max_ulp.has_value() && !(s.max_ulp <= *max_ulp));
}

}  // namespace

std::vector<std::uint8_t> mark_wrong(const CompareInput& input, const std::optional<double>& max_ulp) {
  constexpr std::size_t kPerTask = 64 * kSegment;
  const Marker marker(input, max_ulp);
  const Setup setup = make_setup(input);  // once: it looks at every element
  std::vector<std::uint8_t> wrong(compared_elements(input));
  core::parallel_chunks(wrong.size(), kPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
    SegmentReader reader(input, setup);
    for (std::size_t at = begin; at < end; at += kSegment) {
      const std::size_t count = std::min<std::size_t>(kSegment, end - at);
      marker.mark(reader, static_cast<std::int64_t>(at), std::span(wrong).subspan(at, count));
    }
  });
  return wrong;
}

WrongElements find_wrong(const CompareInput& input, const Statistics& statistics,
                         const std::optional<double>& max_ulp) {
  if (!any_exceeds(input, statistics, max_ulp)) {
    WrongElements none;
    none.of = statistics.elements;
    return none;
  }
  static const op::Sample whole;
  return locate(mark_wrong(input, max_ulp), *input.port, input.sample == nullptr ? whole : *input.sample);
}

}  // namespace numcheck::metric
