#include "reference/square_products.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace numcheck::reference {
namespace {

/// Operands that are squared are scaled to below 2^21, the others to below 2^41: sums of 2^43 terms do not overflow.
constexpr int kSquaredExponent = 20;
constexpr int kPlainExponent = 40;
constexpr int kLeastExponent = -126;
/// Of magnitudes, so that scales and their products are normal doubles.
constexpr int kLargestExponent = 200;

int scale_of(int exponent, bool squared) {
  return (squared ? kSquaredExponent : kPlainExponent) - exponent;
}

/// Whether the smallest products, and what they are made of, are normal FP32 numbers: each magnitude is at least the
/// scaled largest one times 2^-spread.
bool fits(int rows_spread, int factor_spread, bool squared) {
  const int rows = 2 * (kSquaredExponent - rows_spread);
  const int factor = squared ? 2 * (kSquaredExponent - factor_spread) : kPlainExponent - factor_spread;
  return rows >= kLeastExponent && factor >= kLeastExponent && rows + factor >= kLeastExponent;
}

std::size_t elements(std::int64_t rows, std::int64_t columns) {
  return static_cast<std::size_t>(rows * columns);
}

template <class T>
T* grown(std::vector<T>& buffer, std::size_t size) {
  if (buffer.size() < size) {
    buffer.resize(size);
  }
  return buffer.data();
}

}  // namespace

SquareProducts::Exponents SquareProducts::exponents_of(const TileFactor<double>& x, std::int64_t rows,
                                                       std::int64_t columns) {
  const AttentionKernels& kernels = attention_kernels();
  Magnitudes all{0, std::numeric_limits<double>::infinity(), true};
  for (std::int64_t i = 0; i < rows; ++i) {
    const Magnitudes row = kernels.magnitudes(x.data + i * x.stride, static_cast<std::size_t>(columns));
    all = {std::max(all.largest, row.largest), std::min(all.smallest, row.smallest), all.finite && row.finite};
  }
  if (!all.finite) {
    return {};
  }
  if (all.largest == 0) {
    return {.all_zero = true, .usable = true};
  }
  const Exponents found{std::ilogb(all.largest), std::ilogb(all.smallest), false, true};
  const bool usable = found.largest <= kLargestExponent && found.smallest >= -kLargestExponent;
  return usable ? found : Exponents{};
}

void SquareProducts::set_rows(const HeadRows& rows, std::int64_t count, std::int64_t channels) {
  given_ = rows;
  count_ = count;
  channels_ = channels;
  wide_squares_.clear();
  exponents_ = exponents_of({rows.data, rows.stride, false}, count, channels);
  if (!exponents_.usable || exponents_.all_zero) {
    return;
  }
  const double scale = std::ldexp(1.0, scale_of(exponents_.largest, true));
  float* const squares = grown(squares_, elements(count, channels));
  for (std::int64_t n = 0; n < count; ++n) {
    attention_kernels().narrow_squares(rows.data + n * rows.stride, static_cast<std::size_t>(channels), scale,
                                       squares + n * channels);
  }
  packed_squares_.set({squares, channels, false}, count, channels);
}

void SquareProducts::add(const TileFactor<double>& factor, std::int64_t rows, Power power, std::span<double> out) {
  const std::int64_t stored = factor.transposed ? count_ : rows;
  const Exponents of_factor = exponents_of(factor, stored, factor.transposed ? rows : count_);
  if (of_factor.usable && exponents_.usable) {
    if (of_factor.all_zero || exponents_.all_zero) {
      return;
    }
    if (fits(exponents_.spread(), of_factor.spread(), power == Power::second)) {
      multiply_narrow(factor, rows, power, of_factor, out);
      return;
    }
  }
  multiply_wide(factor, rows, power, out);
}

void SquareProducts::multiply_narrow(const TileFactor<double>& factor, std::int64_t rows, Power power,
                                     const Exponents& of_factor, std::span<double> out) {
  const AttentionKernels& kernels = attention_kernels();
  const bool squared = power == Power::second;
  const std::int64_t stored = factor.transposed ? count_ : rows, width = factor.transposed ? rows : count_;
  const int exponent = scale_of(of_factor.largest, squared);
  const auto narrow = squared ? kernels.narrow_squares : kernels.narrow;
  float* const factors = grown(factor_, elements(stored, width));
  for (std::int64_t i = 0; i < stored; ++i) {
    narrow(factor.data + i * factor.stride, static_cast<std::size_t>(width), std::ldexp(1.0, exponent),
           factors + i * width);
  }
  float* const product = grown(product_, elements(rows, channels_));
  packed_squares_.multiply(
      {.left = {factors, width, factor.transposed}, .rows = rows, .out = product, .out_stride = channels_});
  const double inflation = 1 + static_cast<double>(count_ + 4) * 0x1p-24;
  const int scaled = 2 * scale_of(exponents_.largest, true) + (squared ? 2 : 1) * exponent;
  kernels.add(product, elements(rows, channels_), std::ldexp(inflation, -scaled), out.data());
}

void SquareProducts::multiply_wide(const TileFactor<double>& factor, std::int64_t rows, Power power,
                                   std::span<double> out) {
  if (wide_squares_.empty()) {
    for (std::int64_t n = 0; n < count_; ++n) {
      const double* row = given_.data + n * given_.stride;
      std::transform(row, row + channels_, std::back_inserter(wide_squares_), [](double x) { return x * x; });
    }
  }
  TileFactor<double> used = factor;
  if (power == Power::second) {
    const std::int64_t stored = factor.transposed ? count_ : rows;
    used.stride = factor.transposed ? rows : count_;
    wide_factor_.clear();
    for (std::int64_t i = 0; i < stored; ++i) {
      const double* row = factor.data + i * factor.stride;
      std::transform(row, row + used.stride, std::back_inserter(wide_factor_), [](double x) { return x * x; });
    }
    used.data = wide_factor_.data();
  }
  multiply<double>({.left = used,
                    .right = {wide_squares_.data(), channels_, false},
                    .rows = rows,
                    .cols = channels_,
                    .depth = count_,
                    .out = out.data(),
                    .out_stride = channels_,
                    .accumulate = true});
}

}  // namespace numcheck::reference
