// What becomes of elements that are NaN, infinite or without a yardstick: SegmentReader::classify.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/codec.hpp"
#include "metric/reader.hpp"

namespace numcheck::metric {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

bool SegmentReader::is_unwritten(std::size_t i, std::int64_t index) const {
  const bool may_be_right = std::isnan(expected_[i]) && core::dtype_info(input_.port->dtype).storage_bytes == 1;
  return std::isnan(got_[i]) && !may_be_right && bits_at(input_, index) == setup_.poison_bits;
}

SegmentReader::Finding SegmentReader::classify_nan_expected(std::size_t i) const {
  const bool dropped = setup_.nan_may_become_zero && got_[i] == 0;
  const bool is_nan = std::isnan(got_[i]) && !is_unwritten(i, flat_index(first_ + static_cast<std::int64_t>(i)));
  return is_nan || dropped ? Finding::agrees : Finding::mismatch;
}

SegmentReader::Lines SegmentReader::lines_of(std::size_t i) const {
  const std::int64_t index = flat_index(first_ + static_cast<std::int64_t>(i));
  const op::Port& port = *input_.port;
  const std::int64_t row = index / port.cols;
  return {input_.row_lines[static_cast<std::size_t>(row)],
          input_.column_lines[static_cast<std::size_t>(row / port.rows * port.cols + index % port.cols)]};
}

bool SegmentReader::has_infinite_operand(std::size_t i) const {
  const double limit = input_.model->operand_limit;
  return !input_.row_lines.empty() && std::max(lines_of(i).row.largest, lines_of(i).column.largest) > limit;
}

bool SegmentReader::may_become_nan(std::size_t i) const {
  const model::ErrorModel& model = *input_.model;
  if (!setup_.overflow_possible || input_.row_lines.empty() || model.reach == 0) {
    return setup_.overflow_possible;
  }
  const auto [row, column] = lines_of(i);
  const bool vanishes = std::min(row.smallest, column.smallest) < model.operand_least;
  return vanishes || has_infinite_operand(i) || row.largest * column.largest * model.reach >= 1;
}

bool SegmentReader::product_may_be_infinite(std::size_t i) const {
  if (input_.row_lines.empty()) {
    return false;
  }
  const auto [row, column] = lines_of(i);
  return !row.finite || !column.finite || has_infinite_operand(i) ||
         row.largest * column.largest * input_.model->reach >= 1;
}

bool SegmentReader::may_come_from_overflow(std::size_t i) const {
  const double got = got_[i];
  if (input_.model->zero_times_product && std::isnan(got) && product_may_be_infinite(i)) {
    return true;
  }
  const double y = expected_[i];
  const auto a = std::isnan(magnitude_[i]) ? kInfinity : static_cast<double>(magnitude_[i]);
  if (has_infinite_operand(i)) {
    return true;
  }
  if (!(y > setup_.sum_above) || setup_.overflow_magnitude == 0 || std::isinf(a)) {
    return a >= setup_.overflow_magnitude;
  }
  // A is that of the unrounded operands, y that of the rounded ones: rounding to 8 bits changes a product by an eighth.
  const double slack = std::abs(y) / 8;
  const bool positive = (a + y + slack) / 2 >= setup_.overflow_magnitude;
  const bool negative = (a - y + slack) / 2 >= setup_.overflow_magnitude;
  if (std::isnan(got)) {
    return negative && (positive || input_.model->minus_infinity_is_nan);
  }
  return got > 0 ? positive : negative;
}

/// For an infinite y, which requires an infinite operand.
SegmentReader::Finding SegmentReader::classify_infinite(std::size_t i) const {
  const double got = got_[i];
  const double y = expected_[i];
  if (std::isnan(got)) {
    const bool multiplied = input_.model->zero_times_product && product_may_be_infinite(i);
    return multiplied || may_become_nan(i) ? Finding::order_dependent : Finding::mismatch;
  }
  const double expected = std::isinf(setup_.clamp) ? y : std::copysign(setup_.clamp, y);
  return got == expected ? Finding::agrees : Finding::mismatch;
}

/// For a finite y without a yardstick: an infinite input was stored as a finite value or multiplied by zero.
SegmentReader::Finding SegmentReader::classify_unknown(double got, double y) const {
  if (setup_.exact && std::isfinite(got)) {
    return std::abs(y) < setup_.format.overflow_threshold ? Finding::regular : Finding::mismatch;
  }
  const bool overflowed = std::isinf(got) && std::abs(y) >= setup_.format.overflow_threshold;
  return overflowed && std::signbit(got) == std::signbit(y) ? Finding::agrees : Finding::unknown;
}

SegmentReader::Finding SegmentReader::classify(std::size_t i) const {
  const double got = got_[i];
  const double y = expected_[i];
  if (std::isnan(y)) {
    return classify_nan_expected(i);
  }
  if (input_.port->role == op::Role::amax && got < 0) {
    return Finding::mismatch;  // a largest magnitude, whatever its error
  }
  const bool unknown = std::isnan(magnitude_[i]) || std::isnan(deviation_[i]);
  const double a = unknown ? kInfinity : static_cast<double>(magnitude_[i]);
  // If the format saturates or the epilogue clips, an overflow becomes the largest number or zero; an amax may have
  // missed any element.
  const bool hidden = got == 0 || std::abs(got) == setup_.clamp || input_.port->role == op::Role::amax;
  // An infinite A may only mean that A exceeds FP32: if y is finite, no operand was infinite.
  if (setup_.overflow_may_be_finite && hidden && (std::isfinite(y) || setup_.overflow_possible) &&
      (a >= setup_.overflow_magnitude || has_infinite_operand(i))) {
    return Finding::order_dependent;
  }
  if (std::isinf(y)) {
    return classify_infinite(i);
  }
  if (unknown && (std::isfinite(got) || (std::isnan(got) && setup_.nan_may_become_zero))) {
    return classify_unknown(got, y);
  }
  const double threshold = setup_.format.overflow_threshold;
  if (std::isfinite(got)) {
    // An overflow cannot become finite again, in any order; just above the threshold there may be none.
    const bool is_right = std::abs(y) < threshold ? got == y || !saturates(i) : std::abs(got - y) <= bound_at(y, a);
    return !is_right ? Finding::mismatch : std::abs(y) < threshold ? Finding::regular : Finding::agrees;
  }
  const Finding otherwise = may_come_from_overflow(i) ? Finding::order_dependent : Finding::mismatch;
  if (std::isnan(got)) {
    return otherwise;
  }
  const bool same_sign = std::signbit(got) == std::signbit(y);
  // The threshold is where rounding gives infinity, so that the rounding itself is not added.
  // The bound of a formula's result has its last rounding; a product's, that of sums, does not.
  const bool has_last = input_.port->dtype == core::Dtype::fp32 && !input_.model->terms;
  const double last = has_last ? std::abs(y) * core::dtype_info(core::Dtype::fp32).unit_roundoff : 0;
  const double bound = std::fmax(unrounded_bound_at(y, a) - last, 0);
  const double error = input_.model->one_error || unknown ? bound : std::fmin(bound, most_by_spread(i, a));
  const double reach = same_sign ? error + std::abs(y) : error - std::abs(y);
  const bool near = std::isfinite(threshold) && reach >= threshold;
  return near ? Finding::agrees : otherwise;
}

}  // namespace numcheck::metric
