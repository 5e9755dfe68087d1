#include "tolerance/fakes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "data/generators.hpp"

namespace numcheck::tolerance {
namespace {

/// Standard normal numbers.
std::vector<double> normals(std::size_t count, std::uint32_t stream) {
  constexpr std::uint64_t kSeed = 0x6e756d6368656b;
  std::vector<double> out(count);
  data::generate_normal({}, {.seed = kSeed, .op = 0, .port = stream}, 0, out);
  return out;
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

FakeValues fake_everywhere(const CertificateData& data, double value) {
  FakeValues everywhere;
  everywhere.assign(data.expected.size(), value);
  return everywhere;
}

FakeValues fake_constant(const CertificateData& data) {
  const double rms = std::sqrt(mean_of(data, [](double y) { return y * y; }));
  return fake_everywhere(data, rms > 0 && std::isfinite(rms) ? rms : 1);
}

FakeValues fake_zeros(const CertificateData& data) {
  return replace_finite(data, [](std::size_t, double) { return 0.0; });
}

FakeValues fake_mean(const CertificateData& data) {
  const auto has_terms = [&data](std::size_t i, double y) {
    const bool is_outside = !data.outside.empty() && data.outside[i];
    return !is_outside && (y != 0 || data.magnitude.empty() || data.magnitude[i] != 0);
  };
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < data.expected.size(); ++i) {
    const double y = data.expected[i];
    if (std::isfinite(y) && has_terms(i, y)) {
      sum += y;
      count += 1;
    }
  }
  const double mean = count > 0 ? sum / count : 0;
  return replace_finite(data, [&](std::size_t i, double y) { return has_terms(i, y) ? mean : y; });
}

FakeValues fake_sign_flipped(const CertificateData& data) {
  return replace_finite(data, [](std::size_t, double y) { return -y; });
}

FakeValues fake_enlarged(const CertificateData& data, double factor) {
  return replace_finite(data, [factor](std::size_t, double y) { return factor * y; });
}

FakeValues fake_noise(const CertificateData& data) {
  const double rms = std::sqrt(mean_of(data, [](double y) { return y * y; }));
  const std::vector<double> xi = normals(data.expected.size(), 1);
  return replace_finite(data, [&](std::size_t i, double) { return rms * xi[i]; });
}

FakeValues fake_transposed(const CertificateData& data) {
  return replace_finite(
      data, [&](std::size_t i, double y) { return std::isfinite(data.transposed[i]) ? data.transposed[i] : y; });
}

FakeValues fake_tile_zeroed(const CertificateData& data, const op::Port& port) {
  constexpr std::int64_t kTile = 64;
  const std::int64_t middle =
      data.indices[(static_cast<std::size_t>(data.port.rows) / 2) * static_cast<std::size_t>(data.port.cols) +
                   static_cast<std::size_t>(data.port.cols) / 2];
  const std::int64_t middle_row = middle / port.cols;
  const std::int64_t matrix = middle_row / port.rows * port.rows;  // its first row, numbered across the batch
  const std::int64_t row = matrix + (middle_row - matrix) / kTile * kTile;
  const std::int64_t row_end = std::min(row + kTile, matrix + port.rows);
  const std::int64_t column = middle % port.cols / kTile * kTile;
  return replace_finite(data, [&](std::size_t i, double y) {
    const std::int64_t r = data.indices[i] / port.cols;
    const std::int64_t c = data.indices[i] - r * port.cols;
    return r >= row && r < row_end && c >= column && c < column + kTile ? 0.0 : y;
  });
}

FakeValues fake_missing_tail(const CertificateData& data, double share) {
  const std::vector<double> xi = normals(data.expected.size(), 2);
  return replace_finite(data, [&](std::size_t i, double y) {
    const double known = data.deviation.empty() ? 0 : static_cast<double>(data.deviation[i]);
    const double deviation = std::isfinite(known) ? known : 0;
    const double tail = share * y + std::sqrt(share * (1 - share)) * deviation * xi[i];
    return y - tail;
  });
}

FakeValues fake_coarser(const CertificateData& data, int fraction_bits) {
  // Nearest even multiple of the last bit that is kept; a carry moves into the exponent.
  const int shift = std::numeric_limits<double>::digits - 1 - fraction_bits;
  const std::uint64_t dropped = (std::uint64_t{1} << shift) - 1;
  return replace_finite(data, [=](std::size_t, double y) {
    const auto bits = std::bit_cast<std::uint64_t>(y);
    const std::uint64_t odd = bits >> shift & 1;
    return std::bit_cast<double>((bits + (dropped >> 1) + odd) & ~dropped);
  });
}

}  // namespace numcheck::tolerance
