// The fits behind the findings of the normalisations: a scale per row, and what the rows' scales have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace numcheck::reference {

/// The fit of one row.
struct RowFit {
  double rho = 0;
  double own = 0;     ///< O: variance of the fit
  double shared = 0;  ///< R: variance of rsigma, relative
  double spread = 0;  ///< v
  double bias = 0;  ///< what the mean's error, squared, adds to the variance: it makes the scale smaller, never larger
  bool usable = false;
  std::size_t row = 0;
  std::uint64_t alike = 0;  ///< equal for rows with the same results: their errors are the same, too

  [[nodiscard]] double weight() const { return 1 / (own + shared); }
};

/// Normal equations of two regressors.
struct Normal {
  double aa = 0, ab = 0, bb = 0, ae = 0, be = 0;

  void add(double a, double b, double e, double weight) {
    aa += weight * a * a;
    ab += weight * a * b;
    bb += weight * b * b;
    ae += weight * a * e;
    be += weight * b * e;
  }
  [[nodiscard]] double determinant() const { return aa * bb - ab * ab; }
  /// True if the regressors can be told apart.
  [[nodiscard]] bool independent() const { return determinant() > 1e-9 * aa * bb; }
  /// The coefficient of the first regressor and its variance; fitted alone if the second one is zero.
  [[nodiscard]] double first() const { return bb == 0 ? ae / aa : (ae * bb - be * ab) / determinant(); }
  [[nodiscard]] double first_variance() const { return bb == 0 ? 1 / aa : bb / determinant(); }
  [[nodiscard]] double second() const { return (be * aa - ae * ab) / determinant(); }
  [[nodiscard]] double second_variance() const { return aa / determinant(); }
};

/// (v_i + epsilon) / (1 + rho_i)^2 is what was under the root: (1 + b) v_i + epsilon + d.
class Regression {
 public:
  Regression(const std::vector<RowFit>& fits, double epsilon);

  [[nodiscard]] bool independent() const { return normal_.independent(); }
  [[nodiscard]] double b() const { return normal_.first(); }
  [[nodiscard]] double d() const { return normal_.second(); }

  /// The cause as text; empty if none is clear.
  [[nodiscard]] std::string cause(std::int64_t hidden) const;

 private:
  double epsilon_;
  Normal normal_;
  double explained_ = 0;
};

}  // namespace numcheck::reference
