// The elements of a product that are furthest off, and the products that they are sums of.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "reference/gemm_operands.hpp"

namespace numcheck::reference {

/// An element of D that is off.
struct Element {
  std::int64_t batch, row, column;
  double residual;
};

/// Where the operands of a product are read from instead.
struct Source {
  std::int64_t rows = 0;     ///< of A, further down
  std::int64_t columns = 0;  ///< of B, further right
  std::int64_t a_earlier = 0;
  std::int64_t b_earlier = 0;
};

class GemmResiduals {
 public:
  /// Of the elements that are furthest off: 1024, or fewer of very long sums, but at least 64.
  explicit GemmResiduals(const op::FindingRequest& request);

  [[nodiscard]] std::int64_t k() const noexcept { return g_.shape.k; }
  [[nodiscard]] const std::vector<Element>& elements() const noexcept { return elements_; }
  /// Elements from all over D, right or wrong: a hypothesis about the whole product must hold for them too.
  [[nodiscard]] const std::vector<Element>& controls() const noexcept { return controls_; }
  /// Sum of the squares of the residuals.
  [[nodiscard]] double energy() const noexcept { return energy_; }
  /// Elements that the error is spread over: (sum |r|)^2 / sum r^2.
  [[nodiscard]] double effective_count() const noexcept { return energy_ > 0 ? sum_ * sum_ / energy_ : 0; }

  /// alpha sA sB a b of one product.
  [[nodiscard]] double product(const Element& e, std::int64_t t) const noexcept {
    return g_.product_scale * a(e.batch, e.row, t) * b(e.batch, t, e.column);
  }
  /// The same read from elsewhere; NaN if there is no such element.
  [[nodiscard]] double product(const Element& e, std::int64_t t, const Source& from) const noexcept {
    const std::int64_t row = e.row + from.rows, column = e.column + from.columns;
    const std::int64_t ta = t - from.a_earlier, tb = t - from.b_earlier;
    if (row >= g_.shape.m || column >= g_.shape.n || ta < 0 || tb < 0) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    return g_.product_scale * a(e.batch, row, ta) * b(e.batch, tb, column);
  }

 private:
  [[nodiscard]] double a(std::int64_t batch, std::int64_t row, std::int64_t t) const noexcept {
    const std::int64_t at = g_.a.transposed ? t * g_.shape.m + row : row * g_.shape.k + t;
    return g_.a.data[batch * g_.shape.m * g_.shape.k + at];
  }
  [[nodiscard]] double b(std::int64_t batch, std::int64_t t, std::int64_t column) const noexcept {
    const std::int64_t at = g_.b.transposed ? column * g_.shape.k + t : t * g_.shape.n + column;
    return g_.b.data[batch * g_.shape.n * g_.shape.k + at];
  }

  /// Elements furthest off. Saturated ones and, with relu, those that are cut off say nothing about the sum; nor do
  /// those with infinities or NaN among their products.
  void collect(const op::FindingRequest& request);

  GemmOperands g_;
  std::vector<Element> elements_, controls_;
  double energy_ = 0;
  double sum_ = 0;  ///< of |residual|
};

}  // namespace numcheck::reference
