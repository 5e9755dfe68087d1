#include "metric/residuals.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <functional>

#include "core/ulp_size.hpp"

namespace numcheck::metric {

namespace {

/// std::nearbyint of a number below 2^51, without a call.
double nearest_integer(double x) {
  constexpr double kNoFractions = 0x1.8p52;
  return (x + kNoFractions) - kNoFractions;
}

}  // namespace

void Residuals::add(const SegmentView& segment, core::Dtype dtype) {
  const auto bin_of = [](double residual) {
    const double bin = (residual + 1) * (kBins / 2);
    return static_cast<std::size_t>(bin > 0 ? std::min(bin, kBins - 1.0) : 0);
  };
  const core::UlpSize size(dtype);
  for (std::size_t i = 0; i < segment.size; ++i) {
    const double y = segment.expected[i];
    if (y == 0) {
      continue;
    }
    const double ulp = std::copysign(size.of(y), y);
    const double scaled = y / ulp;
    ++count_;
    ++excess_[bin_of((segment.got[i] - y) / ulp)];
    --excess_[bin_of(nearest_integer(scaled) - scaled)];
  }
}

void Residuals::add(const Residuals& other) {
  std::ranges::transform(excess_, other.excess_, excess_.begin(), std::plus<>());
  count_ += other.count_;
}

double Residuals::distance() const {
  std::int64_t sum = 0, largest = 0;
  for (const std::int64_t excess : excess_) {
    sum += excess;
    largest = std::max<std::int64_t>(largest, std::abs(sum));
  }
  return count_ == 0 ? 0 : static_cast<double>(largest) / static_cast<double>(count_);
}

}  // namespace numcheck::metric
