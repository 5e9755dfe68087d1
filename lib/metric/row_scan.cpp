#include "metric/row_scan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/codec.hpp"

namespace numcheck::metric {

RowScan::RowScan(const CompareInput& input)
    : input_(input), magnitudes_(static_cast<std::size_t>(input.port->elements())) {}

void RowScan::add(const ExpectedRows& rows) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double largest = 0;
  std::uint64_t zeros = 0;
  for (const double y : rows.expected) {
    const double size = std::fabs(y);
    largest = size > largest && size < kInfinity ? size : largest;
    zeros += y == 0 ? 1 : 0;
  }
  float bound = 0;
  for (const float a : rows.magnitude) {
    bound = a <= bound ? bound : a;  // NaN stays
  }
  const core::Dtype format = input_.port->dtype;
  const core::Overflow overflow =
      core::dtype_info(format).storage_bytes == 1 ? core::Overflow::saturate : core::Overflow::ieee;
  const auto stored = [&](double y) { return core::round_to(y * input_.model->output_scale, format, overflow); };
  const double first = stored(rows.expected.front());
  const bool varies = std::isfinite(first) && std::ranges::any_of(rows.expected, [&](double y) {
                        const double other = stored(y);
                        return std::isfinite(other) && other != first;
                      });
  magnitudes_.add(static_cast<std::size_t>(rows.first * input_.port->cols), rows.expected);
  const std::scoped_lock lock(mutex_);
  largest_ = std::max(largest_, largest);
  const auto known = static_cast<double>(bound);
  largest_bound_ = known <= largest_bound_ ? largest_bound_ : known;
  zeros_ += zeros;
  varies_ = varies_ || varies;
}

}  // namespace numcheck::metric
