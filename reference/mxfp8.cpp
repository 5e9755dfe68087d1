#include "reference/mxfp8.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {
namespace {

constexpr int kBias = 127;
constexpr std::size_t kBlocksPerTask = 512;

/// Where the elements of a block are.
struct Block {
  std::size_t first = 0;
  std::size_t stride = 1;
  std::size_t count = 0;
};

/// The results that a correct device may have, after rounding to the first format.
struct Range {
  double low = 0;
  double high = 0;

  [[nodiscard]] double smallest() const { return low < 0 && high > 0 ? 0 : std::min(std::fabs(low), std::fabs(high)); }
  [[nodiscard]] double largest() const { return std::max(std::fabs(low), std::fabs(high)); }
};

/// Exponents that a block's scale may have, and the one for the exact results.
struct Exponents {
  int low = 0;
  int high = 0;
  int own = 0;
  bool determined = true;
};

class Quantiser {
 public:
  Quantiser(const op::OutputValues& results, const Mxfp8Output& output) : results_(results), output_(output) {}

  /// `codes` and `scales` receive the block's elements and its scale.
  void operator()(const Block& block, std::size_t number, TrackedOutput& codes, TrackedOutput& scales) const {
    const Exponents e = exponents_of(block);
    const double scale = std::ldexp(1, e.own - kBias);
    if (e.determined) {
      const double off = std::max(scale - std::ldexp(1, e.low - kBias), std::ldexp(1, e.high - kBias) - scale);
      scales.set(number, scale, off, off * off);
    } else {
      scales.set_undetermined(number, scale);
    }
    for (std::size_t k = 0; k < block.count; ++k) {
      set_code(block.first + k * block.stride, e, codes);
    }
  }

 private:
  /// An infinite result does not depend on rounding.
  [[nodiscard]] double bound(std::size_t i) const {
    const bool exact = results_.magnitude.empty() || std::isinf(results_.value[i]);
    return exact ? 0 : static_cast<double>(results_.magnitude[i]);
  }
  [[nodiscard]] double rounded(double result) const { return core::round_to(result, output_.first); }
  [[nodiscard]] Range range_of(std::size_t i) const {
    const double b = bound(i);
    return {rounded(results_.value[i] - b), rounded(results_.value[i] + b)};
  }

  /// In FP32, as on devices; the smallest scale is 2^-127.
  [[nodiscard]] int exponent_of(double amax) const {
    const float reciprocal = 1.0F / static_cast<float>(core::dtype_info(output_.codes).max_finite);
    const float needed = static_cast<float>(amax) * reciprocal;
    return static_cast<int>(core::encode(static_cast<double>(needed), core::Dtype::e8m0, core::Overflow::saturate,
                                         core::Rounding::toward_positive));
  }

  [[nodiscard]] Exponents exponents_of(const Block& block) const {
    double smallest = 0;
    double largest = 0;
    double own = 0;
    Exponents e;
    for (std::size_t k = 0; k < block.count; ++k) {
      const std::size_t i = block.first + k * block.stride;
      if (std::isnan(results_.value[i])) {
        continue;
      }
      e.determined = e.determined && bound(i) < kNoBound;  // false for a NaN bound, too
      const Range range = range_of(i);
      smallest = std::max(smallest, range.smallest());
      largest = std::max(largest, range.largest());
      own = std::max(own, std::fabs(rounded(results_.value[i])));
    }
    e.own = exponent_of(own);
    e.low = e.determined ? exponent_of(smallest) : e.own;
    e.high = e.determined ? exponent_of(largest) : e.own;
    return e;
  }

  [[nodiscard]] double value_of_code(double result, int exponent) const {
    const double code =
        core::round_to(result * std::ldexp(1, kBias - exponent), output_.codes, core::Overflow::saturate);
    return code * std::ldexp(1, exponent - kBias);
  }

  void set_code(std::size_t i, const Exponents& e, TrackedOutput& codes) const {
    const double result = results_.value[i];
    const double value = std::isnan(result) ? result : value_of_code(rounded(result), e.own);
    if (std::isnan(result)) {
      return codes.set(i, value);
    }
    const double off = e.determined ? farthest_from(value, range_of(i), e) : kNoBound;
    if (off < kNoBound) {
      return codes.set(i, value, off, off * off);
    }
    codes.set_undetermined(i, std::clamp(value, -kLargest32, kLargest32));  // else only an infinity would pass
  }

  /// Distance from `value` to the farthest code that the results in the range may get.
  [[nodiscard]] double farthest_from(double value, const Range& range, const Exponents& e) const {
    double off = 0;
    if (e.low == e.high && range.low == range.high) {
      return off;
    }
    for (int exponent = e.low; exponent <= e.high; ++exponent) {
      for (const double end : {range.low, range.high}) {
        const double other = value_of_code(end, exponent);
        off = std::max(off, other == value ? 0 : std::fabs(other - value));
      }
    }
    return off;
  }

  static constexpr double kLargest32 = std::numeric_limits<float>::max();
  static constexpr double kNoBound = 1e38;  ///< see tracked_error_model: such results are not determined

  const op::OutputValues& results_;
  const Mxfp8Output& output_;
};

/// `along_rows`: blocks are parts of rows, else of columns.
Block block_at(const Mxfp8Output& output, const op::Mxfp8Grid& grid, std::size_t number, bool along_rows) {
  const auto size = static_cast<std::size_t>(op::kMxfp8Block);
  const auto rows = static_cast<std::size_t>(output.rows);
  const auto cols = static_cast<std::size_t>(output.cols);
  const std::size_t line = number / static_cast<std::size_t>(grid.cols);
  const std::size_t at = number % static_cast<std::size_t>(grid.cols);
  if (along_rows) {
    return {line * cols + at * size, 1, std::min(size, cols - at * size)};
  }
  return {line * size * cols + at, cols, std::min(size, rows - line * size)};
}

std::string note_of(const Mxfp8Output& output) {
  const std::string codes = fmt::format("{} codes with a power of two for every {} of them",
                                        core::dtype_info(output.codes).name, op::kMxfp8Block);
  return output.first == core::Dtype::fp32
             ? "results are rounded to " + codes
             : fmt::format("results are rounded to {} first, as TransformerEngine does, then to {}",
                           core::dtype_info(output.first).name, codes);
}

core::Buffer<double> copy_of(const core::Buffer<double>& values) {
  core::Buffer<double> copy(values.size());
  std::copy_n(values.data(), values.size(), copy.data());
  return copy;
}

/// `last`: the results' values are not needed after this layout.
void add_layout(op::Values& list, op::OutputValues& results, const Mxfp8Output& output, bool along_rows, bool last) {
  const op::Mxfp8Grid grid =
      along_rows ? op::rowwise_grid(output.rows, output.cols) : op::columnwise_grid(output.rows, output.cols);
  const auto blocks = static_cast<std::size_t>(grid.rows * grid.cols);
  const bool values_only = results.magnitude.empty();
  TrackedOutput codes(along_rows ? output.names.rowwise : output.names.columnwise, results.value.size(), values_only);
  TrackedOutput scales(along_rows ? output.names.rowwise_scales : output.names.columnwise_scales, blocks, values_only);
  const Quantiser quantise(results, output);
  core::parallel_chunks(blocks, kBlocksPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t number = begin; number < end; ++number) {
      quantise(block_at(output, grid, number, along_rows), number, codes, scales);
    }
  });
  core::Buffer<double> exact = last ? std::move(results.value) : copy_of(results.value);
  if (values_only) {
    codes.values().value = std::move(exact);
  } else {
    codes.values().ideal = std::move(exact);
    codes.values().ideal_note = note_of(output);
  }
  list.outputs.push_back(std::move(codes).take());
  list.outputs.push_back(std::move(scales).take());
}

}  // namespace

op::Values mxfp8_outputs(op::OutputValues results, const Mxfp8Output& output) {
  op::Values list;
  const bool columnwise = op::has_columnwise(output.layout);
  if (op::has_rowwise(output.layout)) {
    add_layout(list, results, output, true, !columnwise);
  }
  if (columnwise) {
    add_layout(list, results, output, false, true);
  }
  return list;
}

}  // namespace numcheck::reference
