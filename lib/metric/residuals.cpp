#include "metric/residuals.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <functional>

#include "core/codec.hpp"

namespace numcheck::metric {

void Residuals::add(const SegmentView& segment, core::Dtype dtype) {
  const auto bin_of = [](double residual) {
    const double bin = std::floor((residual + 1) * (kBins / 2));
    return static_cast<std::size_t>(std::clamp(bin, 0.0, kBins - 1.0));
  };
  for (std::size_t i = 0; i < segment.size; ++i) {
    const double y = segment.expected[i];
    if (y == 0) {
      continue;
    }
    const double ulp = std::copysign(core::ulp(y, dtype), y);
    const double scaled = y / ulp;
    ++count_;
    ++excess_[bin_of((segment.got[i] - y) / ulp)];
    --excess_[bin_of(std::nearbyint(scaled) - scaled)];
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
