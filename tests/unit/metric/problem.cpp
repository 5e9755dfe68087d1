#include "problem.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "core/codec.hpp"

namespace numcheck::metric {
namespace {

using Real = long double;

std::size_t offset_of(const op::Port& port, std::int64_t index) {
  const std::int64_t matrix = port.rows * port.cols;
  const std::int64_t element =
      index / matrix * port.batch_stride + index % matrix / port.cols * port.ld + index % port.cols;
  return static_cast<std::size_t>(port.offset_bytes + element * core::dtype_info(port.dtype).storage_bytes);
}

/// All values of one element that the gates use.
struct Element {
  std::int64_t index = 0;
  Real y = 0, e = 0, ulp = 0, bound = 0, arithmetic = 0, variance = 0, rounded = 0, magnitude = 0;
};

Element element_of(const Problem& p, std::size_t i) {
  const model::ErrorModel& m = p.model;
  const core::Dtype dtype = p.port.dtype;
  Element out;
  out.index = p.sample.all() ? static_cast<std::int64_t>(i) : p.sample.indices[i];
  const double y = p.expected[i];
  const Real a = p.magnitude[i];
  const Real s2 = Real(p.deviation[i]) * Real(p.deviation[i]);
  out.y = y;
  out.magnitude = a;
  out.e = Real(p.got_at(out.index)) - y;
  out.ulp = core::ulp(y, dtype);
  out.rounded = core::round_to(y, dtype);
  const Real bound = m.bound_magnitude * a + m.bound_value * std::abs(y) + m.bound_absolute;
  out.bound = bound + Real(core::ulp(static_cast<double>(std::abs(Real(y)) + bound), dtype)) / 2;
  const Real coherent = a > 0 ? out.y * out.y / a : 0;
  out.arithmetic = m.var_second * s2 + m.var_magnitude * a * a + m.var_value * out.y * out.y +
                   m.var_coherent * coherent * coherent + m.var_absolute;
  const Real reach = std::abs(out.y) + 3 * std::sqrt(out.arithmetic);
  const Real out_ulp = core::ulp(static_cast<double>(reach), dtype);
  out.variance = out.arithmetic + out_ulp * out_ulp / 12;
  return out;
}

ErrorNorms naive_norms(const std::vector<Real>& e, const std::vector<Real>& y) {
  Real abs = 0, e2 = 0, y2 = 0, sum = 0, got2 = 0, dot = 0;
  ErrorNorms norms;
  for (std::size_t i = 0; i < e.size(); ++i) {
    const Real got = y[i] + e[i];
    abs += std::abs(e[i]);
    sum += e[i];
    e2 += e[i] * e[i];
    y2 += y[i] * y[i];
    got2 += got * got;
    dot += got * y[i];
    norms.max_abs = std::max(norms.max_abs, static_cast<double>(std::abs(e[i])));
    if (y[i] != 0) {
      norms.max_rel = std::max(norms.max_rel, static_cast<double>(std::abs(e[i] / y[i])));
    }
  }
  const auto n = static_cast<Real>(e.size());
  norms.linf = norms.max_abs;
  norms.l1 = static_cast<double>(abs);
  norms.l2 = static_cast<double>(std::sqrt(e2));
  norms.nmse = static_cast<double>(e2 / y2);
  norms.rel_l2 = static_cast<double>(std::sqrt(e2 / y2));
  norms.rms = static_cast<double>(std::sqrt(e2 / n));
  norms.mean_signed = static_cast<double>(sum / n);
  norms.sqnr_db = static_cast<double>(-10 * std::log10(e2 / y2));
  norms.cosine = got2 == 0 ? 0 : static_cast<double>(dot / std::sqrt(y2 * got2));
  return norms;
}

void naive_slope(const Problem& p, const std::vector<Element>& elements, Statistics& out) {
  const bool narrow = core::dtype_info(p.port.dtype).storage_bytes < 4;
  Real wye = 0, wyy = 0, coherence = 0;
  for (const Element& x : elements) {
    const Real target = narrow ? x.rounded : x.y;
    wye += x.y * (x.y + x.e - target) / x.variance;
    wyy += x.y * x.y / x.variance;
    coherence += x.magnitude > 0 ? x.y * x.y / x.variance * std::abs(x.y) / x.magnitude : 0;
  }
  const Real s = wye / wyy;
  Real q2 = 0;
  std::map<std::int64_t, Real> rows, columns;
  for (const Element& x : elements) {
    const Real target = narrow ? x.rounded : x.y;
    const Real q = x.y / x.variance * (x.y + x.e - target - s * x.y);
    const std::int64_t matrix = p.port.rows * p.port.cols;
    rows[x.index / p.port.cols] += q;
    columns[x.index / matrix * p.port.cols + x.index % p.port.cols] += q;
    q2 += q * q;
  }
  Real r2 = 0, c2 = 0;
  for (const auto& [key, q] : rows) {
    r2 += q * q;
  }
  for (const auto& [key, q] : columns) {
    c2 += q * q;
  }
  out.slope = static_cast<double>(s);
  out.slope_se = static_cast<double>(std::sqrt(std::max({r2 + c2 - q2, r2, c2, q2})) / wyy);
  out.coherence = p.model.var_coherent != 0 || p.model.slope_coherent != 0 ? static_cast<double>(coherence / wyy) : 0;
}

void naive_rounding(const std::vector<Element>& elements, core::Dtype dtype, double lambda_kappa, Statistics& out) {
  Real ratio = 0, perfect = 0, perfect2 = 0, arith = 0;
  for (const Element& x : elements) {
    const Real deviation = std::sqrt(x.arithmetic);
    const Real ulp = core::ulp(static_cast<double>(std::abs(x.y) + 3 * deviation), dtype);
    const Real limit = ulp / 2 + lambda_kappa * deviation;
    out.max_over_half_ulp = std::max(out.max_over_half_ulp, static_cast<double>(std::abs(x.e) / limit));
    if (x.y != 0 && deviation <= x.ulp / 16) {
      ++out.rounding_elements;
      const Real best = (x.rounded - x.y) / x.ulp;
      ratio += x.e / x.ulp * (x.e / x.ulp);
      perfect += best * best;
      perfect2 += best * best * best * best;
      arith += x.arithmetic / (x.ulp * x.ulp);
    }
  }
  if (out.rounding_elements > 0) {
    const auto n = static_cast<Real>(out.rounding_elements);
    out.rounding_ratio = static_cast<double>(12 * ratio / n);
    out.rounding_ratio_perfect = static_cast<double>(12 * perfect / n);
    out.rounding_sd = static_cast<double>(12 * std::sqrt(perfect2 / n - perfect / n * (perfect / n)));
    out.rounding_arith = static_cast<double>(arith / n);
  }
}

Real normal_tail(Real x) {
  return std::erfc(x / std::sqrt(Real(2))) / 2;
}

/// Probability that an error of that deviation moves x across the nearest boundary, and across the other one.
std::array<Real, 2> flip_chances(const Element& x, core::Dtype dtype, Real deviation) {
  const Real up = core::ulp(static_cast<double>(x.rounded), dtype);
  const Real below = core::ulp(std::nextafter(static_cast<double>(std::abs(x.rounded)), 0.0), dtype);
  const Real off = std::abs(x.y) - std::abs(x.rounded);  // away from zero
  const Real away = normal_tail((up / 2 - off) / deviation);
  const Real toward = normal_tail((off + below / 2) / deviation);
  return off >= 0 ? std::array{away, toward} : std::array{toward, away};
}

void naive_flips(const std::vector<Element>& elements, core::Dtype dtype, Statistics& out) {
  Real predicted = 0, spread = 0, drift = 0, nearer = 0, step = 0, wyy = 0;
  out.flips[0].width = 1.0 / 64, out.flips[1].width = 1.0 / 16, out.flips[2].width = 1e30;
  for (const Element& x : elements) {
    const Real deviation = std::sqrt(x.arithmetic), wy = x.y / x.variance;
    const auto [near, far] = flip_chances(x, dtype, deviation);
    const auto [allowed_near, allowed_far] = flip_chances(x, dtype, deviation * std::sqrt(Real(2)));
    const Real allowed = allowed_near + allowed_far;
    const Real away = std::abs(x.rounded) >= std::abs(x.y) ? -1 : 1;  // where the nearest boundary lies
    wyy += wy * x.y;
    spread += wy * wy * (2 * x.arithmetic + allowed * x.ulp * x.ulp);
    drift += std::abs(wy) * x.ulp * away * (allowed_near - allowed_far);
    nearer += std::abs(wy) * x.ulp * away * (near - far);
    step = std::max(step, std::abs(wy) * (x.ulp + 3 * std::sqrt(Real(2)) * deviation));
    predicted += near + far;
    for (Flips& flips : out.flips) {
      if (x.y != 0 && allowed <= 0.5 && deviation <= flips.width * x.ulp) {
        ++flips.count;
        flips.found += x.y + x.e == x.rounded ? 0 : 1;
        flips.allowed += static_cast<double>(allowed);
      }
    }
  }
  out.flip_rate_predicted = static_cast<double>(predicted) / static_cast<double>(elements.size());
  out.slope_flip_se = static_cast<double>(std::sqrt(spread) / wyy);
  out.slope_flip_drift = static_cast<double>(std::max(std::abs(drift), std::abs(nearer)) / wyy);
  out.slope_flip_step = static_cast<double>(step / wyy);
}

int ulp_bin(Real error) {
  if (error == 0) {
    return 0;
  }
  int bin = 1;
  for (Real edge = 0.5L; error > edge && bin < 15; edge *= 2) {
    ++bin;
  }
  return bin;
}

void naive_ulps(const std::vector<Element>& elements, Statistics& out) {
  Real sum = 0;
  for (const Element& x : elements) {
    const Real error = std::abs(x.e) / x.ulp;
    sum += error;
    out.max_ulp = std::max(out.max_ulp, static_cast<double>(error));
    ++out.ulp_histogram[static_cast<std::size_t>(ulp_bin(error))];
    out.exact_mismatch += x.y + x.e == x.rounded ? 0 : 1;
    out.zeros_got += x.y + x.e == 0 ? 1 : 0;
  }
  out.mean_ulp = static_cast<double>(sum / static_cast<Real>(elements.size()));
}

double nonzero_rms(const std::vector<Element>& elements) {
  Real squares = 0, count = 0;
  for (const Element& x : elements) {
    squares += x.y * x.y;
    count += x.y != 0 ? 1 : 0;
  }
  return static_cast<double>(std::sqrt(squares / count));
}

void naive_spread(const std::vector<Element>& elements, Statistics& out) {
  std::vector<Real> z;
  Real z2 = 0, y = 0, y2 = 0, nonzero = 0;
  for (const Element& x : elements) {
    z.push_back(std::abs(x.e) / std::sqrt(x.variance));
    z2 += z.back() * z.back();
    y += x.y;
    y2 += x.y * x.y;
    nonzero += x.y != 0 ? 1 : 0;
    out.max_over_bound = std::max(out.max_over_bound, static_cast<double>(std::abs(x.e) / x.bound));
  }
  std::sort(z.begin(), z.end());
  const auto n = static_cast<Real>(z.size());
  const auto rank = static_cast<std::size_t>(std::ceil(0.999 * static_cast<double>(z.size())));
  out.z_rms = static_cast<double>(std::sqrt(z2 / n));
  out.z_max = static_cast<double>(z.back());
  out.z_q999 = static_cast<double>(z[rank - 1]);
  out.rms_expected = static_cast<double>(std::sqrt(y2 / n));
  out.spread_ulps = static_cast<double>(std::sqrt(y2 / nonzero - y / nonzero * (y / nonzero)));
}

}  // namespace

CompareInput Problem::input() const {
  CompareInput in;
  in.port = &port;
  in.got = got;
  in.expected = expected;
  in.unrounded = unrounded;
  in.magnitude = magnitude;
  in.deviation = deviation;
  in.terms = model.terms ? std::span<const float>(magnitude) : std::span<const float>();
  in.term_count = model.reduction;
  in.sample = sample.all() ? nullptr : &sample;
  in.model = &model;
  return in;
}

void Problem::set_bits(std::int64_t index, std::uint64_t bits) {
  std::memcpy(got.data() + offset_of(port, index), &bits,
              static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes));
}

void Problem::set_got(std::int64_t index, double value) {
  set_bits(index, core::encode(value, port.dtype));
}

double Problem::got_at(std::int64_t index) const {
  std::uint64_t bits = 0;
  std::memcpy(&bits, got.data() + offset_of(port, index),
              static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes));
  return core::decode(bits, port.dtype);
}

Problem make_problem(core::Dtype dtype, const Shape& shape, double noise, std::uint64_t seed) {
  Problem p;
  p.port = {.name = "d", .role = op::Role::output, .dtype = dtype};
  p.port.batch = shape.batch;
  p.port.rows = shape.rows;
  p.port.cols = shape.cols;
  p.port.ld = shape.cols + shape.pad;
  p.port.batch_stride = shape.rows * p.port.ld + 3 * shape.pad;
  p.port.offset_bytes = shape.offset * core::dtype_info(dtype).storage_bytes;
  p.got.assign(p.port.extent_bytes(), std::byte{1});
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  constexpr double kTerms = 64;
  for (std::int64_t i = 0; i < p.port.elements(); ++i) {
    const double y = std::sqrt(kTerms) * normal(engine);
    p.expected.push_back(y);
    p.magnitude.push_back(static_cast<float>(0.64 * kTerms + std::abs(y)));
    p.deviation.push_back(static_cast<float>(std::sqrt(kTerms * (1 + 0.1 * std::abs(normal(engine))))));
    p.set_got(i, y * (1 + noise * normal(engine)));
  }
  p.model.bound_magnitude = 2 * noise + 0x1p-22;
  p.model.bound_value = 0x1p-24;
  p.model.bound_absolute = 1e-9;
  p.model.var_second = noise * noise / 2;
  p.model.var_value = noise * noise / 2;
  p.model.var_magnitude = 1e-16;
  p.model.var_coherent = noise * noise;
  p.model.var_absolute = 1e-20;
  p.model.output = dtype;
  return p;
}

Problem quiet(core::Dtype dtype) {
  Problem p = make_problem(dtype, {1, 5, 13, 2, 1}, 0, 1);
  for (std::int64_t i = 0; i < p.port.elements(); ++i) {
    p.expected[static_cast<std::size_t>(i)] = p.got_at(i);
  }
  return p;
}

Statistics naive_statistics(const Problem& problem) {
  std::vector<Element> elements;
  std::vector<Real> e, y, total_e, total_y;
  for (std::size_t i = 0; i < problem.expected.size(); ++i) {
    elements.push_back(element_of(problem, i));
    e.push_back(elements.back().e);
    y.push_back(elements.back().y);
    if (!problem.unrounded.empty()) {
      total_y.push_back(problem.unrounded[i]);
      total_e.push_back(y.back() + e.back() - total_y.back());
    }
  }
  Statistics out;
  out.elements = out.finite = elements.size();
  out.arithmetic = naive_norms(e, y);
  if (!total_e.empty()) {
    out.total = naive_norms(total_e, total_y);
  }
  naive_ulps(elements, out);
  naive_spread(elements, out);
  out.spread_ulps /= core::ulp(nonzero_rms(elements), problem.port.dtype);
  naive_slope(problem, elements, out);
  if (core::dtype_info(problem.port.dtype).storage_bytes < 4) {
    const double lambda = std::sqrt(2 * std::log(2e6 * static_cast<double>(elements.size())));
    naive_rounding(elements, problem.port.dtype, lambda * problem.model.kappa, out);
    naive_flips(elements, problem.port.dtype, out);
  }
  return out;
}

}  // namespace numcheck::metric
