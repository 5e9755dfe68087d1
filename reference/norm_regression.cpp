#include "reference/norm_regression.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace numcheck::reference {
namespace {

constexpr double kClear = 10;           ///< standard errors
constexpr double kExplainedRows = 0.8;  ///< share of the rows that a cause must explain

/// One row: excess ~ b variance_part + d epsilon_part.
struct Point {
  double variance_part, epsilon_part, excess, variance;
};

Point point_of(const RowFit& fit, double epsilon) {
  const double whole = fit.spread + epsilon;
  const double scale = std::max(std::fabs(1 + fit.rho), 0x1p-20);
  return {fit.spread / whole, 1 / whole, 1 / (scale * scale) - 1, 4 / (fit.weight() * std::pow(scale, 6))};
}

}  // namespace

Regression::Regression(const std::vector<RowFit>& fits, double epsilon) : epsilon_(epsilon) {
  for (const RowFit& fit : fits) {
    const Point point = point_of(fit, epsilon);
    normal_.add(point.variance_part, point.epsilon_part, point.excess, 1 / point.variance);
  }
  for (const RowFit& fit : fits) {
    const Point point = point_of(fit, epsilon);
    const double rest = std::fabs(point.excess - b() * point.variance_part - d() * point.epsilon_part);
    explained_ += rest <= 0.2 * std::fabs(point.excess) + 5 * std::sqrt(point.variance) ? 1 : 0;
  }
  explained_ /= static_cast<double>(fits.size());
}

std::string Regression::cause(std::int64_t hidden) const {
  const double relative = d() / epsilon_;
  const bool variance_is_off = std::fabs(b()) > kClear * std::sqrt(normal_.first_variance());
  const bool epsilon_is_off = std::fabs(d()) > kClear * std::sqrt(normal_.second_variance());
  if (explained_ < kExplainedRows) {
    return {};
  }
  if (variance_is_off && epsilon_is_off && std::fabs(b() - relative) < 0.2 * std::fabs(b())) {
    return fmt::format("all rows are scaled by {:.4g}", 1 / std::sqrt(1 + b()));
  }
  if (epsilon_is_off && std::fabs(b()) < 0.1 * std::fabs(relative)) {
    return fmt::format("rows are scaled as if epsilon were {:.3g}, not {:.3g}", epsilon_ + d(), epsilon_);
  }
  if (!variance_is_off || std::fabs(relative) > 0.5 * std::fabs(b())) {
    return {};
  }
  const double bessel = 1 / (static_cast<double>(hidden) - 1);
  return std::fabs(b() - bessel) < 0.2 * bessel
             ? "rows are scaled as if the sum were divided by n - 1, not n"
             : fmt::format("rows are scaled as if the variance were off by {:.2g}", b());
}

}  // namespace numcheck::reference
