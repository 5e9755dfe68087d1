#include "metric/bound_size.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/dtype.hpp"
#include "core/parallel.hpp"
#include "metric/reader.hpp"
#include "metric/setup.hpp"

namespace numcheck::metric {
namespace {

struct Part {
  double ulps = 0;
  double squared_bounds = 0;
  double squared_values = 0;
};

}  // namespace

BoundSize bound_size(const CompareInput& input) {
  constexpr std::size_t kPerTask = 64 * kSegment;
  const Setup setup = make_setup(input);
  const std::size_t count = compared_elements(input);
  std::vector<Part> parts((count + kPerTask - 1) / kPerTask);
  core::parallel_chunks(count, kPerTask, [&](std::size_t index, std::size_t begin, std::size_t end) {
    Part& part = parts[index];
    for_each_element(input, setup, begin, end, [&](std::size_t i, const ComparedElement& element) {
      if (element.finite && std::isfinite(element.bound)) {
        const double y = input.expected[i] * input.model->output_scale;  // as the bound is
        part.ulps = std::max(part.ulps, element.bound / core::ulp(y, input.port->dtype));
        part.squared_bounds += element.bound * element.bound;
        part.squared_values += y * y;
      }
    });
  });
  Part all;
  for (const Part& part : parts) {
    all.ulps = std::max(all.ulps, part.ulps);
    all.squared_bounds += part.squared_bounds;
    all.squared_values += part.squared_values;
  }
  return {all.ulps, all.squared_bounds == 0 ? 0 : std::sqrt(all.squared_bounds / all.squared_values)};
}

}  // namespace numcheck::metric
