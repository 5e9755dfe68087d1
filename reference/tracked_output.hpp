// Where tracked references put their results.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "op/reference.hpp"
#include "tolerance/flushable.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference {

using tolerance::Tracked;

/// One output port under construction. Elements are set from any thread, each once.
class TrackedOutput {
 public:
  static constexpr double kMaxBound = 3e38;  ///< stands for "no bound": an FP32 number above every actual bound

  /// `values_only`: bounds and variances are not kept (op::ReferenceRequest::values_only).
  TrackedOutput(std::string_view port, std::size_t elements, bool values_only) {
    out_.port = port;
    out_.value = core::Buffer<double>(elements);
    if (!values_only) {
      out_.magnitude = core::Buffer<float>(elements);
      out_.deviation = core::Buffer<float>(elements);
    }
  }

  void set(std::size_t i, double y) { out_.value[i] = y; }

  void set(std::size_t i, const Tracked& x) { set(i, x.y, x.b, x.v); }

  /// What may be lost takes the bound's place, and an infinite deviation says that the result may be NaN.
  void set(std::size_t i, const tolerance::Flushable& x) {
    set(i, x.y, x.lost, x.may_be_nan ? std::numeric_limits<double>::infinity() : 0);
  }

  /// The accurate value with the bound and variance of the declared arithmetic. Large values may be any number if their bound
  /// is beyond FP32's range, too.
  void set(std::size_t i, double y, double bound, double variance) {
    constexpr double kLargest = std::numeric_limits<float>::max();
    const double magnitude = std::fabs(y);
    if (bound > kMaxBound && std::isfinite(y) && magnitude + kMaxBound > kLargest && magnitude - bound <= kLargest) {
      set_undetermined(i, 0);
      return;
    }
    out_.value[i] = y;
    if (!out_.magnitude.empty()) {
      out_.magnitude[i] = upward(std::min(bound, kMaxBound));
      out_.deviation[i] = upward(std::sqrt(variance));
    }
  }

  /// The output is a sum of `count` terms: op::OutputValues::terms are set, too; NaN is for elements that have none.
  void keep_terms(std::size_t count) {
    if (!out_.magnitude.empty()) {
      out_.terms = core::Buffer<float>(out_.value.size());
      std::ranges::fill(out_.terms.span(), std::numeric_limits<float>::quiet_NaN());
    }
    out_.term_count = static_cast<double>(std::max<std::size_t>(1, count));
  }

  /// `magnitude`: the sum of the magnitudes of the terms of element i.
  void set_terms(std::size_t i, double magnitude) {
    if (!out_.terms.empty()) {
      out_.terms[i] = upward(magnitude);
    }
  }

  /// An element about which the op says nothing (it may overflow in one order of summation and not in another).
  void set_undetermined(std::size_t i, double y) {
    out_.value[i] = y;
    if (!out_.magnitude.empty()) {
      out_.magnitude[i] = std::numeric_limits<float>::max();
      out_.deviation[i] = std::numeric_limits<float>::infinity();
    }
    set_terms(i, std::numeric_limits<double>::quiet_NaN());
  }

  /// Elements that the op leaves to the implementation: op::OutputValues::outside.
  void leave_out(std::vector<op::OutputValues::Range> ranges) {
    out_.outside = std::move(ranges);
    for (const op::OutputValues::Range& range : out_.outside) {
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        set_undetermined(static_cast<std::size_t>(i), 0);
      }
    }
  }

  /// [first, first + count) are open: op::OutputValues::open. Called in ascending order.
  void open(std::size_t first, std::size_t count) {
    out_.open.push_back({static_cast<std::int64_t>(first), static_cast<std::int64_t>(first + count)});
  }

  void keep_ideal() { out_.ideal = core::Buffer<double>(out_.value.size()); }
  void set_ideal(std::size_t i, double y) { out_.ideal[i] = y; }

  [[nodiscard]] op::OutputValues& values() noexcept { return out_; }
  /// Where its numbers from element i on go; null: not kept.
  [[nodiscard]] double* value_at(std::size_t i) { return out_.value.data() + i; }
  [[nodiscard]] float* magnitude_at(std::size_t i) { return at(out_.magnitude, i); }
  [[nodiscard]] float* deviation_at(std::size_t i) { return at(out_.deviation, i); }
  [[nodiscard]] float* terms_at(std::size_t i) { return at(out_.terms, i); }
  [[nodiscard]] op::OutputValues take() && { return std::move(out_); }

 private:
  /// Rounds up to FP32, to infinity beyond its range, where the comparison falls back on B. NaN (of a NaN value) is not a bound,
  /// and none is needed: such elements are not judged by it.
  static float upward(double x) {
    const auto nearest = static_cast<float>(x);  // not negative: then the next number has the next bits
    return static_cast<double>(nearest) < x ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) + 1) : nearest;
  }

  static float* at(core::Buffer<float>& numbers, std::size_t i) {
    return numbers.empty() ? nullptr : numbers.data() + i;
  }

  op::OutputValues out_;
};

}  // namespace numcheck::reference
