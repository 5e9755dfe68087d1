#include "reference/exact_product.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "core/buffer.hpp"
#include "core/parallel.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kChunk = 1 << 16;  // elements per task

/// What numbers have in common: all are multiples of 2^power.
struct Lattice {
  static constexpr int kNone = 1 << 20;  ///< of zeros: a multiple of any power

  double largest = 0;
  int power = kNone;
  bool finite = true;

  void add(double x) {
    constexpr int kMantissaBits = 52, kBias = 1023, kExponents = 2047;
    const auto bits = std::bit_cast<std::uint64_t>(std::fabs(x));
    const auto exponent = static_cast<int>(bits >> kMantissaBits);
    if (exponent == kExponents) {
      finite = false;
    } else if (bits != 0) {
      const std::uint64_t one = std::uint64_t{1} << kMantissaBits;
      const std::uint64_t mantissa = (bits & (one - 1)) | (exponent == 0 ? 0 : one);
      largest = std::max(largest, std::fabs(x));
      power = std::min(power, std::max(exponent, 1) - kBias - kMantissaBits + std::countr_zero(mantissa));
    }
  }
  void merge(const Lattice& other) {
    largest = std::max(largest, other.largest);
    power = std::min(power, other.power);
    finite = finite && other.finite;
  }
};

bool is_exact(const Lattice& a, const Lattice& b, std::int64_t k) {
  constexpr double kExact = 0x1p24;  // integers up to here are FP32 numbers
  constexpr int kLeast = -50;        // of powers of two, and the largest operand: products are far from FP32's limits
  constexpr double kLargest = 0x1p60;
  if (!a.finite || !b.finite || a.largest > kLargest || b.largest > kLargest) {
    return false;
  }
  if (a.power == Lattice::kNone || b.power == Lattice::kNone) {
    return true;  // zeros only
  }
  return std::min(a.power, b.power) >= kLeast &&
         static_cast<double>(k) * a.largest * b.largest <= std::ldexp(kExact, a.power + b.power);
}

Lattice lattice_of(std::span<const double> numbers) {
  Lattice lattice;
  std::ranges::for_each(numbers, [&lattice](double x) { lattice.add(x); });
  return lattice;
}

Lattice lattice_of_all(std::span<const double> numbers) {
  std::mutex mutex;
  Lattice all;
  core::parallel_chunks(numbers.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    const Lattice part = lattice_of(numbers.subspan(begin, end - begin));
    const std::scoped_lock lock(mutex);
    all.merge(part);
  });
  return all;
}

core::Buffer<float> narrowed(std::span<const double> numbers) {
  core::Buffer<float> narrow(numbers.size());
  core::parallel_chunks(numbers.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    const double* from = numbers.data();
    float* to = narrow.data();
    for (std::size_t i = begin; i < end; ++i) {
      to[i] = static_cast<float>(from[i]);
    }
  });
  return narrow;
}

std::size_t elements(const ProductShape& shape, std::int64_t rows_or_columns) {
  return static_cast<std::size_t>(shape.batch * rows_or_columns * shape.k);
}

}  // namespace

bool is_exact_in_fp32(const ProductShape& shape, const double* first, const double* second) {
  constexpr std::size_t kFew = 1024;  // show of nearly all random numbers that they are no small integers
  const std::span<const double> a(first, elements(shape, shape.m)), b(second, elements(shape, shape.n));
  return is_exact(lattice_of(a.first(std::min(kFew, a.size()))), lattice_of(b.first(std::min(kFew, b.size()))),
                  shape.k) &&
         is_exact(lattice_of_all(a), lattice_of_all(b), shape.k);
}

void multiply_in_fp32(const ProductShape& shape, Factor<double> first, Factor<double> second, double* out,
                      const TileFunction& finish) {
  const core::Buffer<float> a = narrowed({first.data, elements(shape, shape.m)}),
                            b = narrowed({second.data, elements(shape, shape.n)});
  core::Buffer<float> sums(static_cast<std::size_t>(shape.batch * shape.m * shape.n));
  multiply(shape, Factor<float>{a.data(), first.transposed}, Factor<float>{b.data(), second.transposed}, sums.data(),
           [&](const Tile& tile) {
             for (std::int64_t r = 0; r < tile.rows; ++r) {
               const std::int64_t begin = (tile.batch * shape.m + tile.row + r) * shape.n + tile.col;
               std::copy_n(sums.data() + begin, tile.cols, out + begin);
             }
             finish(tile);
           });
}

}  // namespace numcheck::reference
