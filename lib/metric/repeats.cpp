#include "metric/repeats.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/codec.hpp"

namespace numcheck::metric {
namespace {

constexpr std::size_t kSampled = 4096;
/// Sums of the same terms in another order differ in their last bits.
constexpr std::uint64_t kIgnored = 0xffff;

/// Bits of a number's pseudo-random order (Steele, Lea and Flood's SplitMix64).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e37'79b9'7f4a'7c15;
  x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9;
  x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11eb;
  return x ^ (x >> 31);
}

/// Estimated from some magnitudes other than 0 of so many.
double repeats_among(std::vector<std::uint64_t> sampled, std::size_t size) {
  if (sampled.size() < 2) {
    return 1;
  }
  std::ranges::sort(sampled);
  double pairs = 0;
  for (auto first = sampled.begin(); first != sampled.end();) {
    const auto last = std::find_if(first, sampled.end(), [&](std::uint64_t bits) { return bits != *first; });
    const auto run = static_cast<double>(last - first);
    pairs += run * (run - 1);
    first = last;
  }
  const auto n = static_cast<double>(sampled.size());
  const double all = std::max(n, static_cast<double>(size));
  return 1 + (all - 1) * pairs / (n * (n - 1));
}

}  // namespace

double repeats_of(std::span<const double> values) {
  SampledMagnitudes magnitudes(values.size());
  magnitudes.add(0, values);
  return magnitudes.repeats();
}

// All values, or one in each of kSampled parts, which rows and columns do not align with.
SampledMagnitudes::SampledMagnitudes(std::size_t size)
    : size_(size), stride_(std::max<std::size_t>(1, size / kSampled)), bits_(size / stride_) {}

void SampledMagnitudes::add(std::size_t first, std::span<const double> values) {
  const std::size_t end = first + values.size();
  for (std::size_t part = first / stride_; part < bits_.size() && part * stride_ < end; ++part) {
    const std::size_t begin = part * stride_, at = begin + mixed(begin) % stride_;
    if (at >= first && at < end) {
      const double y = std::fabs(values[at - first]);
      bits_[part] = y > 0 ? std::bit_cast<std::uint64_t>(y) & ~kIgnored : 0;
    }
  }
}

double SampledMagnitudes::repeats() const {
  std::vector<std::uint64_t> found = bits_;
  std::erase(found, 0);
  return repeats_among(std::move(found), size_);
}

double rounded_together(std::span<const double> values, const Lines& lines, core::Dtype format, double scale) {
  const auto length = static_cast<std::uint64_t>(lines.length), stride = static_cast<std::uint64_t>(lines.stride);
  if (length < 2 || values.size() < length * stride) {
    return 1;
  }
  double together = 0;
  std::size_t pairs = 0;
  for (std::uint64_t n = 0; n < kSampled; ++n) {
    const std::uint64_t at = mixed(2 * n) % values.size(), position = at / stride % length;
    const std::uint64_t other = (position + 1 + mixed(2 * n + 1) % (length - 1)) % length;
    const double x = values[at], y = values[at + (other - position) * stride];  // modulo 2^64
    const double ulp = core::ulp(x * scale, format) / std::fabs(scale);
    if (x != 0 && std::isfinite(x) && std::isfinite(y)) {
      together += std::max(0.0, 1 - 2 * std::fabs(x - y) / ulp);
      ++pairs;
    }
  }
  return pairs == 0 ? 1 : 1 + static_cast<double>(length - 1) * together / static_cast<double>(pairs);
}

}  // namespace numcheck::metric
