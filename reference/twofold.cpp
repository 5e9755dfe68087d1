#include "reference/twofold.hpp"

#include <cmath>

namespace numcheck::reference {
namespace {

/// Unevaluated sum hi + lo, with lo accumulating the rounding errors of hi.
struct Twofold {
  double hi = 0;
  double lo = 0;

  void add(double x) noexcept {
    const double sum = hi + x;
    const double part = sum - hi;
    lo += (hi - (sum - part)) + (x - part);
    hi = sum;
  }
  void add_product(double x, double y) noexcept {
    const double product = x * y;
    add(product);
    lo += std::fma(x, y, -product);
  }
  [[nodiscard]] double value() const noexcept { return hi + lo; }
};

}  // namespace

TwofoldOutput twofold_output(const GemmOperands& g, std::int64_t index) {
  const ProductShape& s = g.shape;
  const std::int64_t batch = index / (s.m * s.n);
  const std::int64_t row = index / s.n % s.m;
  const std::int64_t col = index % s.n;
  const double* a = g.a.data + batch * s.m * s.k + (g.a.transposed ? row : row * s.k);
  const double* b = g.b.data + batch * s.k * s.n + (g.b.transposed ? col * s.k : col);
  const std::int64_t a_step = g.a.transposed ? s.m : 1;
  const std::int64_t b_step = g.b.transposed ? 1 : s.n;

  Twofold sum;
  double plain = 0;
  double magnitude = 0;
  for (std::int64_t t = 0; t < s.k; ++t) {
    const double x = a[t * a_step];
    const double y = b[t * b_step];
    sum.add_product(x, y);
    plain += x * y;
    magnitude += std::abs(x * y);
  }
  Twofold z;
  z.add_product(g.product_scale, sum.hi);
  z.lo += g.product_scale * sum.lo;
  TwofoldOutput out;
  out.magnitude = std::abs(g.product_scale) * magnitude;
  if (g.c != nullptr) {
    z.add_product(g.c_scale, g.c[index]);
    out.magnitude += std::abs(g.c_scale * g.c[index]);
  }
  if (g.bias != nullptr) {
    z.add_product(g.bias_scale, g.bias[col]);
    out.magnitude += std::abs(g.bias_scale * g.bias[col]);
  }
  // The error terms of infinities are NaN; the plain sum tells whether the result is infinite or NaN.
  out.z = std::isfinite(out.magnitude) ? z.value() : affine(g, plain, index, col);
  return out;
}

}  // namespace numcheck::reference
