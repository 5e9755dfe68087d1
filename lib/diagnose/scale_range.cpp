#include "diagnose/scale_range.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace numcheck::diagnose {
namespace {

struct Interval {
  double low = 0, high = 0;
};

/// Scales for which RN(unit w) is that number. Of other signs there are none.
std::optional<Interval> scales_of_element(double unit, double stored, const core::DtypeInfo& info) {
  const double x = std::abs(unit), code = std::abs(stored);
  const bool says_nothing = !std::isfinite(x) || !std::isfinite(code) || x == 0 || code == 0;
  if (says_nothing || (core::is_fp8(info.dtype) && code >= info.max_finite)) {
    return std::nullopt;
  }
  if (std::signbit(unit) != std::signbit(stored)) {
    return Interval{std::numeric_limits<double>::infinity(), 0};
  }
  const double up = core::ulp(code, info.dtype) / 2;
  const bool is_lowest_of_binade = std::exp2(std::floor(std::log2(code))) == code && code > std::exp2(info.emin);
  return Interval{(code - (is_lowest_of_binade ? up / 2 : up)) / x, (code + up) / x};
}

/// Where most intervals overlap, of every `stride`-th element, within a range that is known.
class Overlaps {
 public:
  Overlaps(Interval within, std::size_t stride) : within_(within), stride_(stride) {}

  std::optional<ScaleRange> find(std::span<const double> unit, std::span<const double> stored,
                                 const core::DtypeInfo& info) {
    ScaleRange range{.low = within_.low, .high = within_.high};
    for (std::size_t i = 0; i < unit.size(); i += stride_) {
      if (const std::optional<Interval> one = scales_of_element(unit[i], stored[i], info); one.has_value()) {
        ++range.of;
        add(*one);
      }
    }
    // At a number where one ends and another one begins, both hold.
    std::ranges::sort(edges_, [](const Edge& a, const Edge& b) {
      return a.at < b.at || (a.at == b.at && a.is_begin && !b.is_begin);
    });
    std::size_t depth = all_along_;
    range.fitting = depth;
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      depth += edges_[i].is_begin ? 1 : std::size_t(-1);
      if (depth > range.fitting || (i == 0 && !edges_[i].is_begin)) {
        range.low = edges_[i].is_begin ? edges_[i].at : within_.low;
        range.high = !edges_[i].is_begin ? edges_[i].at : i + 1 < edges_.size() ? edges_[i + 1].at : within_.high;
        range.fitting = std::max(depth, range.fitting);
      }
    }
    return range.of > 0 && range.low > 0 && std::isfinite(range.high) ? std::optional(range) : std::nullopt;
  }

 private:
  struct Edge {
    double at = 0;
    bool is_begin = false;
  };

  void add(Interval one) {
    if (one.low > one.high || one.low > within_.high || one.high < within_.low) {
      return;
    }
    if (one.low <= within_.low) {
      ++all_along_;
    } else {
      edges_.push_back({one.low, true});
    }
    if (one.high < within_.high) {
      edges_.push_back({one.high, false});
    }
  }

  Interval within_;
  std::size_t stride_ = 1, all_along_ = 0;  ///< intervals that hold at the beginning
  std::vector<Edge> edges_;
};

}  // namespace

std::optional<ScaleRange> scale_range(std::span<const double> unit, std::span<const double> stored, core::Dtype dtype) {
  const core::DtypeInfo& info = core::dtype_info(dtype);
  constexpr std::size_t kSome = std::size_t{1} << 16;  // whose edges are sorted; of the others, those in between
  const std::size_t stride = unit.size() / kSome + 1;
  const Interval any{0, std::numeric_limits<double>::infinity()};
  std::optional<ScaleRange> range = Overlaps(any, stride).find(unit, stored, info);
  if (range.has_value() && stride > 1) {
    range = Overlaps({range->low, range->high}, 1).find(unit, stored, info);
  }
  return range;
}

}  // namespace numcheck::diagnose
