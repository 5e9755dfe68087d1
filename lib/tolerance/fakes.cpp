#include "tolerance/fakes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/rng.hpp"

namespace numcheck::tolerance {
namespace {

/// Standard normal number of an index, by Box and Muller.
double normal(std::size_t index, std::uint32_t stream) {
  const auto i = static_cast<std::uint64_t>(index);
  const core::PhiloxCounter words = core::philox4x32(
      {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32), stream, 0}, {0x6e756d63U, 0x6865636bU});
  const double radius = std::sqrt(-2 * std::log((words[0] + 1.0) * 0x1p-32));
  return radius * std::cos(2 * std::numbers::pi * words[1] * 0x1p-32);
}

/// f(i, y) where y is finite, y itself elsewhere.
template <class F>
FakeValues replace_finite(const CertificateData& data, F f) {
  FakeValues out = data.expected;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (std::isfinite(out[i])) {
      out[i] = f(i, out[i]);
    }
  }
  return out;
}

/// Mean of g(y) over finite y.
template <class G>
double mean_of(const CertificateData& data, G g) {
  double sum = 0;
  std::size_t count = 0;
  for (const double y : data.expected) {
    if (std::isfinite(y)) {
      sum += g(y);
      ++count;
    }
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace

FakeValues fake_zeros(const CertificateData& data) {
  return replace_finite(data, [](std::size_t, double) { return 0.0; });
}

FakeValues fake_mean(const CertificateData& data) {
  const double mean = mean_of(data, [](double y) { return y; });
  return replace_finite(data, [mean](std::size_t, double) { return mean; });
}

FakeValues fake_sign_flipped(const CertificateData& data) {
  return replace_finite(data, [](std::size_t, double y) { return -y; });
}

FakeValues fake_noise(const CertificateData& data) {
  const double rms = std::sqrt(mean_of(data, [](double y) { return y * y; }));
  return replace_finite(data, [rms](std::size_t i, double) { return rms * normal(i, 1); });
}

FakeValues fake_transposed(const CertificateData& data, std::span<const double> expected) {
  return replace_finite(data, [&](std::size_t i, double y) {
    const double other = expected[static_cast<std::size_t>(data.transposed[i])];
    return std::isfinite(other) ? other : y;
  });
}

FakeValues fake_tile_zeroed(const CertificateData& data, const op::Port& port) {
  constexpr std::int64_t kTile = 64;
  const std::int64_t middle =
      data.indices[(static_cast<std::size_t>(data.port.rows) / 2) * static_cast<std::size_t>(data.port.cols) +
                   static_cast<std::size_t>(data.port.cols) / 2];
  const auto tile_of = [&port](std::int64_t index) {
    const std::int64_t row = index / port.cols;
    return std::pair(row / port.rows * port.rows + row % port.rows / kTile * kTile, index % port.cols / kTile);
  };
  return replace_finite(data,
                        [&](std::size_t i, double y) { return tile_of(data.indices[i]) == tile_of(middle) ? 0.0 : y; });
}

FakeValues fake_missing_tail(const CertificateData& data, double share) {
  return replace_finite(data, [&](std::size_t i, double y) {
    const double second = data.second_moment.empty() ? 0 : static_cast<double>(data.second_moment[i]);
    const double tail = share * y + std::sqrt(share * (1 - share) * std::min(second, 1e38)) * normal(i, 2);
    return y - tail;
  });
}

FakeValues fake_coarser(const CertificateData& data, int fraction_bits) {
  return replace_finite(data, [fraction_bits](std::size_t, double y) {
    int exponent = 0;
    const double significand = std::frexp(y, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(significand, fraction_bits + 1)), exponent - fraction_bits - 1);
  });
}

}  // namespace numcheck::tolerance
