// Turns the caller's arrays into segments for the kernels: decoded, scaled, padded, finite on both sides.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "metric/accumulators.hpp"
#include "metric/compare.hpp"
#include "metric/setup.hpp"

namespace numcheck::metric {

/// Elements that are not compared numerically, and padding.
struct SpecialCounts {
  std::uint64_t padding = 0;  ///< zeros appended to segments
  std::uint64_t removed = 0;  ///< elements replaced by zeros because one side is not finite
  std::uint64_t mismatches = 0;
  std::uint64_t unknown = 0;          ///< not judged, see Statistics; they need not be removed
  std::uint64_t undetermined = 0;     ///< the same
  std::uint64_t order_dependent = 0;  ///< the same
  std::uint64_t outside = 0;          ///< would be not judged, but need not be
  std::uint64_t left_out = 0;         ///< of these, those that are compared
  std::uint64_t poison = 0;
  std::uint64_t inexact = 0;  ///< removed elements that differ from RN(y)
  std::uint64_t plan = 0;     ///< mismatches of the plan's own predicate
  WorstList worst{};
};

/// One element as a map of errors shows it.
struct ComparedElement {
  std::int64_t index = 0;  ///< flat logical index
  bool finite = false;     ///< compared numerically
  double error = 0;        ///< got - y
  double bound = 0;        ///< B
  bool mismatch = false;   ///< NaN or infinity is wrong
  bool unwritten = false;  ///< still holds the poison pattern
};

class SegmentReader {
 public:
  SegmentReader(const CompareInput& input, const Setup& setup) : input_(input), setup_(setup) {
    take({0, 0, input.expected, input.unrounded, input.magnitude, input.deviation, input.terms, nullptr}, 0);
  }

  /// What is expected from element `origin` on; the elements that are read must be among these.
  void take(ExpectedRows rows, std::int64_t origin) {
    rows_ = std::move(rows);
    origin_ = origin;
  }

  /// Compared elements [first, first + count), count <= kSegment. The view is valid until the next read, which is
  /// expected to start at `next`.
  [[nodiscard]] SegmentView read(std::int64_t first, std::size_t count, std::int64_t next);
  /// The same elements, with special ones counted and replaced by zeros.
  [[nodiscard]] SegmentView without_specials(const SegmentView& view, std::int64_t first, std::size_t count);

  /// Reads elements [first, first + count) for element(), which takes an offset from `first`.
  void load(std::int64_t first, std::size_t count);
  [[nodiscard]] ComparedElement element(std::size_t offset) const;

  [[nodiscard]] const SpecialCounts& specials() const noexcept { return specials_; }

 private:
  enum class Finding { regular, agrees, unknown, order_dependent, mismatch };

  void decode(std::int64_t first, std::size_t count);
  void copy(std::int64_t first, std::size_t count, std::size_t padded);
  void use_copies(SegmentView& view) const;
  void prefetch(std::int64_t next, std::size_t count) const;
  void remove_specials(std::int64_t first, std::size_t count);
  void prepare_regular(std::size_t i);
  [[nodiscard]] bool is_outside(std::int64_t index) const;
  /// The largest error that its V leaves an element: lambda kappa sqrt(V).
  [[nodiscard]] double most_by_spread(std::size_t i, double a) const;
  /// G2 asks something of an element with that A.
  [[nodiscard]] bool spread_asks(std::size_t i, double a) const;
  /// Counts the element if any number of the output is within its bound, whatever its sign; true if it is.
  bool count_unjudged(std::size_t i);
  [[nodiscard]] Finding classify(std::size_t i) const;
  /// B of an element whose magnitude is A, and its part that is not the output's rounding.
  [[nodiscard]] double bound_at(double y, double a) const;
  [[nodiscard]] double unrounded_bound_at(double y, double a) const;
  /// The bound is large, but not so large that the result may be less than the format's largest number.
  [[nodiscard]] bool saturates(std::size_t i) const;
  /// Got is the NaN that the output held before the run: no device makes it by itself, save in 8 bits, which have few.
  [[nodiscard]] bool is_unwritten(std::size_t i, std::int64_t index) const;
  [[nodiscard]] Finding classify_nan_expected(std::size_t i) const;
  [[nodiscard]] Finding classify_infinite(std::size_t i) const;
  /// NaN or an infinity where a finite y is expected: whether an overflow of partial sums may have caused it.
  [[nodiscard]] bool may_come_from_overflow(std::size_t i) const;
  /// An operand of the element may be infinite when it is multiplied.
  [[nodiscard]] bool has_infinite_operand(std::size_t i) const;
  /// An infinity of the element may become NaN.
  [[nodiscard]] bool may_become_nan(std::size_t i) const;
  struct Lines {
    const Line& row;
    const Line& column;
  };
  [[nodiscard]] Lines lines_of(std::size_t i) const;
  /// With an alpha of 0, where that may be NaN: see ErrorModel::zero_times_product.
  [[nodiscard]] bool product_may_be_infinite(std::size_t i) const;
  [[nodiscard]] Finding classify_unknown(double got, double y) const;
  void count_removed(double got, double y, bool agrees);
  [[nodiscard]] std::int64_t flat_index(std::int64_t element) const;

  const CompareInput& input_;
  const Setup& setup_;
  ExpectedRows rows_;
  std::int64_t origin_ = 0;
  SpecialCounts specials_;
  std::int64_t first_ = 0;  ///< element that the arrays start with, when elements are looked at one by one
  alignas(64) std::array<double, kSegmentRoom> got_;
  alignas(64) std::array<double, kSegmentRoom> expected_;
  alignas(64) std::array<double, kSegmentRoom> unrounded_;
  alignas(64) std::array<float, kSegmentRoom> magnitude_;
  alignas(64) std::array<float, kSegmentRoom> deviation_;
  alignas(64) std::array<float, kSegmentRoom> terms_{};
  std::array<std::uint8_t, kSegmentRoom> unjudged_{};
};

/// Calls take(i, element i) for the compared elements [begin, end) in order.
template <class Take>
void for_each_element(const CompareInput& input, const Setup& setup, std::size_t begin, std::size_t end,
                      const Take& take) {
  const auto reader = std::make_unique<SegmentReader>(input, setup);  // too large for a thread's stack
  for (std::size_t at = begin; at < end; at += kSegment) {
    const std::size_t length = std::min<std::size_t>(kSegment, end - at);
    reader->load(static_cast<std::int64_t>(at), length);
    for (std::size_t i = 0; i < length; ++i) {
      take(at + i, reader->element(i));
    }
  }
}

/// Decodes neighbouring elements of a port, from `first` on.
void decode_from(const op::Port& port, std::span<const std::byte> bytes, std::int64_t first, std::span<double> values);

/// Bit pattern of an element of the output, by flat logical index.
[[nodiscard]] std::uint64_t bits_at(const CompareInput& input, std::int64_t flat_index);
/// The same of neighbouring elements, from `first` on.
void bits_from(const op::Port& port, std::span<const std::byte> bytes, std::int64_t first,
               std::span<std::uint64_t> bits);

}  // namespace numcheck::metric
