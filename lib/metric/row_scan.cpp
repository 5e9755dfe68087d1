#include "metric/row_scan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "core/codec.hpp"
#include "metric/kernels.hpp"

namespace numcheck::metric {
RowScan::RowScan(const CompareInput& input)
    : input_(input), magnitudes_(static_cast<std::size_t>(input.port->elements())) {}

void RowScan::add(const ExpectedRows& rows) {
  const core::Dtype format = input_.port->dtype;
  const core::Overflow overflow =
      core::dtype_info(format).storage_bytes == 1 ? core::Overflow::saturate : core::Overflow::ieee;
  const auto stored = [&](double y) { return core::round_to(y * input_.model->output_scale, format, overflow); };
  const double first = stored(rows.expected.front());
  const bool varies = std::isfinite(first) && std::ranges::any_of(rows.expected, [&](double y) {
                        const double other = stored(y);
                        return std::isfinite(other) && other != first;
                      });
  if (input_.model->exact) {
    const std::scoped_lock lock(mutex_);
    varies_ = varies_ || varies;
    return;
  }
  ScanSums sums;
  kernels().scan(rows.expected.data(), rows.magnitude.empty() ? nullptr : rows.magnitude.data(), rows.expected.size(),
                 sums);
  const double bound =
      sums.unknown_bound ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(sums.largest_bound);
  magnitudes_.add(static_cast<std::size_t>(rows.first * input_.port->cols), rows.expected);
  const std::scoped_lock lock(mutex_);
  largest_ = std::max(largest_, sums.largest);
  largest_bound_ = bound <= largest_bound_ ? largest_bound_ : bound;  // NaN stays
  zeros_ += static_cast<std::uint64_t>(sums.zeros);
  varies_ = varies_ || varies;
}

}  // namespace numcheck::metric
