#include "metric/row_scan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "core/codec.hpp"

namespace numcheck::metric {
namespace {

/// Finite |y|, of one in eight: no more than the largest.
double largest_of_some(std::span<const double> y) {
  constexpr std::size_t kStride = 8;
  double largest = 0;
  for (std::size_t i = 0; i < y.size(); i += kStride) {
    const double size = std::fabs(y[i]);
    largest = size > largest && size < std::numeric_limits<double>::infinity() ? size : largest;
  }
  return largest;
}

std::uint64_t zeros_in(std::span<const double> y) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> counts{};  // as long as the numbers that are compared
  double* const zeros = counts.data();
  const double* const from = y.data();
  std::size_t i = 0;
  for (; i + kLanes <= y.size(); i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      zeros[l] += from[i + l] == 0 ? 1.0 : 0.0;
    }
  }
  for (; i < y.size(); ++i) {
    zeros[0] += from[i] == 0 ? 1.0 : 0.0;
  }
  return static_cast<std::uint64_t>(std::accumulate(counts.begin(), counts.end(), 0.0));
}

/// NaN if one is. In lanes, of which compilers make vectors.
double largest_bound_in(std::span<const float> a) {
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> largest_of{};
  std::array<std::uint32_t, kLanes> unknown_of{};
  // Without checks of bounds, which would keep compilers from using vectors.
  float* const largest = largest_of.data();
  std::uint32_t* const unknown = unknown_of.data();
  const float* const from = a.data();
  std::size_t i = 0;
  for (; i + kLanes <= a.size(); i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      const float x = from[i + l];
      largest[l] = x > largest[l] ? x : largest[l];
      unknown[l] |= x != x ? 1U : 0U;
    }
  }
  float most = 0;
  bool any_unknown = false;
  const auto take = [&](float x, bool is_unknown) {
    most = x > most ? x : most;
    any_unknown = any_unknown || is_unknown;
  };
  for (; i < a.size(); ++i) {
    take(a[i], std::isnan(a[i]));
  }
  for (std::size_t l = 0; l < kLanes; ++l) {
    take(largest[l], unknown[l] != 0);
  }
  return any_unknown ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(most);
}

}  // namespace

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
  const double largest = largest_of_some(rows.expected);
  const std::uint64_t zeros = zeros_in(rows.expected);
  const double bound = largest_bound_in(rows.magnitude);
  magnitudes_.add(static_cast<std::size_t>(rows.first * input_.port->cols), rows.expected);
  const std::scoped_lock lock(mutex_);
  largest_ = std::max(largest_, largest);
  largest_bound_ = bound <= largest_bound_ ? largest_bound_ : bound;  // NaN stays
  zeros_ += zeros;
  varies_ = varies_ || varies;
}

}  // namespace numcheck::metric
