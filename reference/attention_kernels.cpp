// Compiled once per instruction set: NUMCHECK_ISA is the namespace.
#include "reference/attention_kernels.hpp"

#include "reference/exponential.hpp"
#include "reference/kernel_math.hpp"

namespace numcheck::reference::NUMCHECK_ISA {
namespace {

constexpr double kLargestFinite = 0x1.fffffffffffffp+1023;

template <bool kNormal>
double exponentials(double* x, std::size_t count, double shift) {
  set_exponentials<kNormal>(x, count, shift, x);
  return sum_of(x, count);
}

double exponentials(double* x, std::size_t count, double shift, const ScoreRange& range) {
  const bool normal = range.least - shift >= kLeastNormalExponent && range.largest - shift <= kLargestNormalExponent;
  return normal ? exponentials<true>(x, count, shift) : exponentials<false>(x, count, shift);
}

ScoreRange scale(double* x, std::size_t count, double factor) {
  Lanes largest = Lanes{} - kInfinity, least = Lanes{} + kInfinity, sum{};
  std::size_t n = 0;
  for (; n + kLanes <= count; n += kLanes) {
    Lanes value;
    load(x + n, kLanes, 0, value);
    value *= factor;
    __builtin_memcpy(x + n, &value, sizeof(value));
    set_larger(value, largest, largest);
    set_smaller(value, least, least);
    sum += value;
  }
  ScoreRange range{largest_of(largest), -largest_of(-least)};
  double all = total(sum);
  for (; n < count; ++n) {
    const double value = x[n] *= factor;
    range.largest = value > range.largest ? value : range.largest;
    range.least = value < range.least ? value : range.least;
    all += value;
  }
  if (all != all) {
    range.least = -kInfinity;
  }
  return range;
}

inline void set_magnitude(const Lanes& x, Lanes& out) {
  out = reinterpret_cast<Lanes>(reinterpret_cast<LaneBits>(x) & ~(std::uint64_t{1} << 63));
}

WeightSums sums(const WeighedKeys& keys) {
  const double factor = keys.factor;
  const Lanes cap = Lanes{} + (keys.cap == 0 ? kInfinity : keys.cap);
  Lanes of_keys{}, excess{}, excess2{}, squares{}, score{}, score2{}, reach{};
  for_each_group(keys.count, [&](std::size_t first, std::size_t size) {
    Lanes e, given, t, key, scaled, absolute;
    load(keys.weights + first, size, 0, e);
    load(keys.scores + first, size, 0, given);
    load(keys.products + first, size, 0, t);
    load(keys.key_squares + first, size, 0, key);
    t *= factor;
    set_magnitude(t, scaled);
    set_magnitude(given, absolute);
    Lanes larger, s, x, finite;
    set_smaller(scaled, cap, larger);
    set_larger(larger, absolute, larger);
    set_unless_zero(e, given, s);
    set_unless_zero(e, larger - s, x);
    of_keys += e * key;
    excess += e * x;
    excess2 += e * x * x;
    squares += e * (t * t);
    score += e * s;
    score2 += e * (s * s);
    by_parts(absolute, larger, finite,
             [](const Part& number, const Part& y, Part& z) { z = number <= kLargestFinite ? y : Part{}; });
    set_larger(finite, reach, reach);
  });
  return {total(of_keys), total(excess), total(excess2),   total(squares),
          total(score),   total(score2), largest_of(reach)};
}

RoundingSums rounding_sums(const WeighedKeys& keys) {
  const double factor = keys.factor;
  const Lanes cap = Lanes{} + (keys.cap == 0 ? kInfinity : keys.cap);
  Lanes inner2{}, power2{}, rounded1{}, rounded2{}, rounded3{};
  for_each_group(keys.count, [&](std::size_t first, std::size_t size) {
    Lanes e, s, inner, t;
    load(keys.weights + first, size, 0, e);
    load(keys.scores + first, size, 0, s);
    load(keys.inner + first, size, 0, inner);
    load(keys.products + first, size, 0, t);
    t *= factor;
    set_magnitude(t, t);
    set_magnitude(s, s);
    Lanes y;
    set_smaller(t, cap, y);
    set_larger(y, s, y);
    set_unless_zero(e, y, y);
    const Lanes y2 = y * y, e2 = e * e;
    set_unless_zero(e, inner, inner);
    inner2 += e * (inner * inner);
    power2 += e2;
    rounded1 += e * y2;
    rounded2 += e2 * y2;
    rounded3 += e2 * e * y2;
  });
  return {total(inner2), total(power2), total(rounded1), total(rounded2), total(rounded3)};
}

Magnitudes magnitudes(const double* x, std::size_t count) {
  Lanes largest{}, smallest = Lanes{} + kInfinity, nothing{};
  for_each_group(count, [&](std::size_t first, std::size_t size) {
    Lanes given, m;
    load(x + first, size, 0, given);
    set_magnitude(given, m);
    set_larger(m, largest, largest);
    by_parts(m, smallest, smallest, [](const Part& number, const Part& least, Part& z) {
      z = ((number < least) & (number != 0)) ? number : least;
    });
    nothing += m - m;  // NaN if m is not finite
  });
  return {largest_of(largest), -largest_of(-smallest), total(nothing) == 0};
}

void narrow(const double* x, std::size_t count, double scale, float* out) {
  for (std::size_t n = 0; n < count; ++n) {
    out[n] = static_cast<float>(scale * x[n]);
  }
}

void narrow_squares(const double* x, std::size_t count, double scale, float* out) {
  for (std::size_t n = 0; n < count; ++n) {
    const double scaled = scale * x[n];
    out[n] = static_cast<float>(scaled * scaled);
  }
}

void add(const float* x, std::size_t count, double scale, double* out) {
  for (std::size_t n = 0; n < count; ++n) {
    out[n] += scale * static_cast<double>(x[n]);
  }
}

void differentiate(const double* weights, std::size_t count, double dot, double* gradients) {
  for (std::size_t n = 0; n < count; ++n) {
    gradients[n] = (gradients[n] - dot) * weights[n];
  }
}

constexpr AttentionKernels kKernels = {scale,  exponentials,   sums, rounding_sums, magnitudes,
                                       narrow, narrow_squares, add,  differentiate};

}  // namespace

const AttentionKernels& attention_kernels() noexcept {
  return kKernels;
}

}  // namespace numcheck::reference::NUMCHECK_ISA
