#include "metric/pair_tolerance.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/dtype.hpp"
#include "core/parallel.hpp"
#include "metric/reader.hpp"
#include "metric/setup.hpp"
#define NUMCHECK_ISA of_pair_tolerance
#include "metric/gate_exact.hpp"

namespace numcheck::metric {

std::optional<PairTolerance> pair_tolerance(const CompareInput& input) {
  constexpr std::size_t kPerTask = 64 * kSegment;
  if (input.model->exact) {
    return std::nullopt;
  }
  const double rtol = std::ldexp(1.0, -core::dtype_info(input.port->dtype).fraction_bits);
  const std::size_t elements = compared_elements(input);
  std::vector<double> largest((elements + kPerTask - 1) / kPerTask);
  const Setup setup = make_setup(input);  // once: it looks at every element
  core::parallel_chunks(elements, kPerTask, [&](std::size_t index, std::size_t begin, std::size_t end) {
    SegmentReader reader(input, setup);
    for (std::size_t at = begin; at < end; at += kSegment) {
      const std::size_t count = std::min<std::size_t>(kSegment, end - at);
      const auto first = static_cast<std::int64_t>(at);
      const SegmentView all = reader.read(first, count, first + static_cast<std::int64_t>(count));
      const SegmentView view = reader.without_specials(all, first, count);
      for (std::size_t i = 0; i < count; ++i) {
        const of_pair_tolerance::Element element = of_pair_tolerance::element_of(view, i, setup.format, setup.model);
        const double y = std::fabs(view.expected[i]);
        const double bound = of_pair_tolerance::bound_of(y, of_pair_tolerance::magnitude_at(view, i, setup.model),
                                                         setup.format, setup.model);
        const double limit =
            of_pair_tolerance::limit_of(element, setup.model) * of_pair_tolerance::ulp_at(y, setup.format);
        const double error = std::min(bound, limit);
        if (error <
            setup.undetermined_bound) {  // where any number of the output is right, two results have nothing in common
          largest[index] = std::max(largest[index], 2 * error - rtol * y);
        }
      }
    }
  });
  const double atol = largest.empty() ? 0 : *std::ranges::max_element(largest);
  return std::isfinite(atol) ? std::optional(PairTolerance{rtol, atol}) : std::nullopt;
}

}  // namespace numcheck::metric
