#include "reference/gemm_yardsticks.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <mutex>
#include <type_traits>

#include "core/buffer.hpp"
#include "core/parallel.hpp"
#include "reference/gemm_operands.hpp"
#include "reference/gemm_sampled.hpp"
#include "reference/matmul.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;
constexpr std::uint64_t kSignMask = std::uint64_t{1} << 63;
constexpr std::uint64_t kInfinityBits = std::uint64_t{0x7ff} << 52;

/// Exponents (as from std::ilogb) of the largest and smallest finite non-zero element.
struct ExponentRange {
  int largest = 0;
  int smallest = 0;
  [[nodiscard]] int span() const noexcept { return largest - smallest; }
};

ExponentRange exponent_range(const double* data, std::size_t size) {
  std::uint64_t highest = 0;
  std::uint64_t lowest = kInfinityBits;
  std::mutex mutex;
  core::parallel_chunks(size, kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    // The bits of non-negative doubles are ordered like the doubles.
    std::uint64_t high = 0;
    std::uint64_t low = kInfinityBits;
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint64_t bits = std::bit_cast<std::uint64_t>(data[i]) & ~kSignMask;
      const bool counts = bits != 0 && bits < kInfinityBits;
      high = std::max(high, counts ? bits : 0);
      low = std::min(low, counts ? bits : kInfinityBits);
    }
    const std::lock_guard lock(mutex);
    highest = std::max(highest, high);
    lowest = std::min(lowest, low);
  });
  if (highest == 0) {
    return {};
  }
  return {std::ilogb(std::bit_cast<double>(highest)), std::ilogb(std::bit_cast<double>(lowest))};
}

/// Powers of two for the operands, and whether the products may run in FP32.
struct Scaling {
  int a = 0;
  int b = 0;
  bool fits_fp32 = false;
};

/// Both operands are scaled to the largest exponent `top` for which k products of squares stay below 2^127; FP32 fits
/// if the smallest product of squares and the smallest square are then still normal numbers.
Scaling choose_scaling(const ExponentRange& a, const ExponentRange& b, std::int64_t k) {
  constexpr int kLargestExponent = 127;
  constexpr int kSmallestExponent = -126;
  const auto k_bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(k)));
  const int top = (kLargestExponent - 4 - k_bits) / 4;
  const bool squares = 2 * (top - std::max(a.span(), b.span())) >= kSmallestExponent;
  const bool products = 4 * top - 2 * (a.span() + b.span()) >= kSmallestExponent;
  return {top - a.largest, top - b.largest, squares && products};
}

/// |x| 2^exponent in T.
template <class T>
core::Buffer<T> scaled_magnitudes(const double* data, std::size_t size, int exponent) {
  core::Buffer<T> out(size);
  // Two factors, because 2^exponent alone may be out of range for operands at the ends of FP64.
  const double half = std::ldexp(1.0, exponent / 2);
  const double rest = std::ldexp(1.0, exponent - exponent / 2);
  core::parallel_chunks(size, kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      out[i] = static_cast<T>(std::abs(data[i]) * half * rest);
    }
  });
  return out;
}

template <class T>
void square(core::Buffer<T>& values) {
  core::parallel_chunks(values.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      values[i] *= values[i];
    }
  });
}

/// A float close to x >= 0 and not below it.
float round_up(double x) noexcept {
  return static_cast<float>(x > 0 ? x * (1 + 0x1p-23) + 0x1p-149 : x);
}

/// From the exact-arithmetic sums to the yardsticks: factors, addends, inflation.
struct Finisher {
  const GemmOperands& g;
  double product_factor = 1;  ///< |alpha sA sB|
  double inflation = 1;
  double magnitude_gain = 1;
  double deviation_gain = 1;

  explicit Finisher(const GemmOperands& operands)
      : g(operands),
        product_factor(std::abs(operands.product_scale)),
        inflation(1 + (static_cast<double>(operands.shape.k) + 8) * 0x1p-24) {
    if (parse_epilogue(operands.params) == Epilogue::gelu) {
      magnitude_gain = 1.13;
      deviation_gain = std::sqrt(1.28);
    }
  }

  /// `sum` is sum |a b|, of output `index` in column `col`.
  [[nodiscard]] float magnitude(double sum, std::int64_t index, std::int64_t col) const noexcept {
    double total = product_factor * sum * inflation;
    total += g.c == nullptr ? 0 : std::abs(g.c_scale * g.c[index]);
    total += g.bias == nullptr ? 0 : std::abs(g.bias_scale * g.bias[col]);
    return round_up(total * magnitude_gain);
  }
  /// `root` is that of sum (a b)^2.
  [[nodiscard]] float deviation(double root) const noexcept {
    return round_up(product_factor * root * inflation * deviation_gain);
  }
};

/// Product of non-negative factors; each element goes through convert(sum, index, col) into the result.
template <class T, class Convert>
core::Buffer<float> converted_product(const GemmOperands& g, const core::Buffer<T>& a, const core::Buffer<T>& b,
                                      Convert convert) {
  const auto outputs = static_cast<std::size_t>(g.outputs());
  core::Buffer<float> result(outputs);
  core::Buffer<double> wide(std::is_same_v<T, double> ? outputs : 0);
  T* sums = nullptr;
  if constexpr (std::is_same_v<T, float>) {
    sums = result.data();
  } else {
    sums = wide.data();
  }
  multiply(g.shape, {a.data(), g.a.transposed}, {b.data(), g.b.transposed}, sums, [&](const Tile& tile) {
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      const std::int64_t begin = (tile.batch * g.shape.m + tile.row + r) * g.shape.n + tile.col;
      for (std::int64_t c = 0; c < tile.cols; ++c) {
        const std::int64_t i = begin + c;
        result[static_cast<std::size_t>(i)] = convert(static_cast<double>(sums[i]), i, tile.col + c);
      }
    }
  });
  return result;
}

template <class T>
op::OutputYardsticks full_yardsticks(const GemmOperands& g, const Finisher& finisher, const Scaling& scaling) {
  const auto batch = static_cast<std::size_t>(g.shape.batch);
  const auto k = static_cast<std::size_t>(g.shape.k);
  core::Buffer<T> a = scaled_magnitudes<T>(g.a.data, batch * static_cast<std::size_t>(g.shape.m) * k, scaling.a);
  core::Buffer<T> b = scaled_magnitudes<T>(g.b.data, batch * static_cast<std::size_t>(g.shape.n) * k, scaling.b);
  const int undo = -(scaling.a + scaling.b);
  op::OutputYardsticks out{.port = "d", .magnitude = {}, .deviation = {}};
  const double unscale = std::ldexp(1.0, undo);
  out.magnitude = converted_product(g, a, b, [&](double sum, std::int64_t index, std::int64_t col) {
    return finisher.magnitude(sum * unscale, index, col);
  });
  square(a);
  square(b);
  out.deviation = converted_product(
      g, a, b, [&](double sum, std::int64_t, std::int64_t) { return finisher.deviation(std::sqrt(sum) * unscale); });
  return out;
}

op::OutputYardsticks chosen_yardsticks(const GemmOperands& g, const Finisher& finisher,
                                       const std::vector<std::int64_t>& indices) {
  const SampledYardsticks sums = sampled_yardsticks(g.shape, g.a, g.b, indices);
  op::OutputYardsticks out{
      .port = "d", .magnitude = core::Buffer<float>(indices.size()), .deviation = core::Buffer<float>(indices.size())};
  for (std::size_t s = 0; s < indices.size(); ++s) {
    out.magnitude[s] = finisher.magnitude(sums.magnitude[s], indices[s], indices[s] % g.shape.n);
    out.deviation[s] = finisher.deviation(std::sqrt(sums.second_moment[s]));
  }
  return out;
}

core::Buffer<float> largest_of(const core::Buffer<float>& values) {
  core::Buffer<float> out(1);
  out[0] = 0;
  for (const float value : values.span()) {
    out[0] = value > out[0] ? value : out[0];
  }
  return out;
}

}  // namespace

op::Yardsticks gemm_yardsticks(const op::ReferenceRequest& request) {
  const GemmOperands g = gemm_magnitudes(request);
  const Finisher finisher(g);
  op::Yardsticks out;
  if (!request.sample.all()) {
    out.outputs.push_back(chosen_yardsticks(g, finisher, request.sample.indices));
    return out;
  }
  const auto elements = static_cast<std::size_t>(g.shape.batch * g.shape.k);
  const ExponentRange a = exponent_range(g.a.data, elements * static_cast<std::size_t>(g.shape.m));
  const ExponentRange b = exponent_range(g.b.data, elements * static_cast<std::size_t>(g.shape.n));
  const Scaling scaling = choose_scaling(a, b, g.shape.k);
  out.outputs.push_back(scaling.fits_fp32 ? full_yardsticks<float>(g, finisher, scaling)
                                          : full_yardsticks<double>(g, finisher, scaling));
  if (g.has_amax) {
    op::OutputYardsticks amax{.port = "d_amax", .magnitude = {}, .deviation = {}};
    amax.magnitude = largest_of(out.outputs[0].magnitude);
    amax.deviation = largest_of(out.outputs[0].deviation);
    out.outputs.push_back(std::move(amax));
  }
  return out;
}

}  // namespace numcheck::reference
