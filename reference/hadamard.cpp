#include "reference/hadamard.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "core/parallel.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kPoints = 16;
constexpr std::array<double, kPoints> kSigns = {1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1};
using Points = std::array<double, kPoints>;

double rounded(double value) {
  return core::round_to(value, core::Dtype::bf16);
}

/// Sums in double, which are exact unless terms are 2^40 apart.
Points sums_of(const double* x, bool has_signs) {
  Points sums{};
  for (std::size_t j = 0; j < kPoints; ++j) {
    sums.at(j) = has_signs ? kSigns.at(j) * x[j] : x[j];
  }
  for (std::size_t half = 1; half < kPoints; half *= 2) {
    for (std::size_t j = 0; j < kPoints; ++j) {
      if ((j & half) == 0) {
        const double a = sums.at(j), b = sums.at(j | half);
        sums.at(j) = a + b;
        sums.at(j | half) = a - b;
      }
    }
  }
  return sums;
}

/// True if FP32 sums of the terms are exact in any order: all of them are multiples of the smallest one's last bit.
bool is_exact(double magnitudes, const double* x) {
  constexpr double kSignificand = 0x1p24;
  double unit = std::numeric_limits<double>::infinity();
  for (std::size_t j = 0; j < kPoints; ++j) {
    unit = x[j] == 0 ? unit : std::min(unit, core::ulp(x[j], core::Dtype::bf16));
  }
  return magnitudes == 0 || magnitudes <= kSignificand * unit;
}

/// Whether a device may round one of the results another way. Sums in FP32, by adders or matrix units that truncate, are off by
/// less than 2^-19 of the sum of magnitudes.
bool is_uncertain(const Points& sums, const double* x) {
  constexpr double kError = 0x1p-19, kMost = 0x1p126, kQuarter = 0.25;
  double magnitudes = 0;
  bool all_finite = true;
  for (std::size_t j = 0; j < kPoints; ++j) {
    all_finite = all_finite && std::isfinite(x[j]);
    magnitudes += std::isfinite(x[j]) ? std::fabs(x[j]) : 0;
  }
  if (magnitudes > kMost) {
    return true;  // a partial sum may overflow in one order and not in another
  }
  if (!all_finite || is_exact(magnitudes, x)) {
    return false;  // of infinities, any order gives the same
  }
  return std::ranges::any_of(sums, [magnitudes](double sum) {
    const double error = kError * magnitudes;
    return rounded(kQuarter * (sum - error)) != rounded(kQuarter * (sum + error));
  });
}

}  // namespace

Transformed hadamard_transformed(std::span<const double> x, bool has_signs) {
  constexpr std::size_t kChunk = 1024;
  constexpr double kQuarter = 0.25;
  Transformed all{core::Buffer<double>(x.size()), std::vector<std::uint8_t>(x.size() / kPoints)};
  core::parallel_chunks(all.uncertain.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t block = begin; block < end; ++block) {
      const double* from = x.data() + block * kPoints;
      const Points sums = sums_of(from, has_signs);
      for (std::size_t k = 0; k < kPoints; ++k) {
        all.values[block * kPoints + k] = rounded(kQuarter * (sums.at(k) + 0.0));
      }
      all.uncertain[block] = is_uncertain(sums, from) ? 1 : 0;
    }
  });
  return all;
}

}  // namespace numcheck::reference
