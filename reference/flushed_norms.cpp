#include "reference/flushed_norms.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace numcheck::reference {
namespace {

/// An FP32 number that is used or stored; its roundings are not what this is about.
double flushed(double x) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (std::fabs(x) < tolerance::kFlush) {
    return std::copysign(0.0, x);
  }
  return std::fabs(x) > kLargest ? std::copysign(std::numeric_limits<double>::infinity(), x) : x;
}

double product(double a, double b) {
  return flushed(flushed(a) * flushed(b));
}

/// a b c, a different factor multiplied last in each.
std::array<double, 3> products(double a, double b, double c) {
  return {product(product(a, b), c), product(product(a, c), b), product(product(b, c), a)};
}

std::vector<double> flushed_factors(const op::Operand& gamma, const op::NormParams& p) {
  std::vector<double> factors;
  factors.reserve(gamma.elements());
  for (std::size_t j = 0; j < gamma.elements(); ++j) {
    factors.push_back(flushed(gamma_factor<double>(flushed(gamma.data[j]), p, gamma.dtype)));
  }
  return factors;
}

}  // namespace

FlushedNorm::FlushedNorm(std::span<const op::Operand> inputs, const op::NormParams& p)
    : p_(p),
      x_(&op::operand_named(inputs, "x")),
      dz_(op::find_operand(inputs, "dz")),
      beta_(op::find_operand(inputs, "beta")),
      add_(op::find_operand(inputs, "add")),
      saved_{op::find_operand(inputs, "mu"), op::find_operand(inputs, "rsigma")},
      factors_(flushed_factors(op::operand_named(inputs, "gamma"), p)) {}

double FlushedNorm::centred(std::size_t i, std::size_t j) const {
  return flushed(flushed(row_of(*x_, i)[j]) - row_.mu);
}

void FlushedNorm::keep_row(std::size_t i) {
  if (i == row_.index) {
    return;
  }
  const std::size_t hidden = factors_.size();
  const auto n = static_cast<double>(hidden);
  row_ = {.index = i};
  if (dz_ == nullptr) {
    std::vector<double> x(row_of(*x_, i).begin(), row_of(*x_, i).end());
    std::ranges::transform(x, x.begin(), &flushed);
    row_.mu = beta_ == nullptr ? 0 : flushed(row_mean<double>(x));
    double squares = 0;
    for (std::size_t j = 0; j < hidden; ++j) {
      squares += product(centred(i, j), centred(i, j));
    }
    row_.rsigma = row_rsigma(flushed(squares / n), epsilon_of(p_));
    return;
  }
  row_.mu = saved_.mu == nullptr ? 0 : flushed(saved_.mu->data[i]);
  row_.rsigma = flushed(saved_.rsigma->data[i]);
  const double square = product(row_.rsigma, row_.rsigma), cube = product(square, row_.rsigma);
  for (std::size_t j = 0; j < hidden; ++j) {
    const double dz = row_of(*dz_, i)[j], x = centred(i, j), weighted = product(dz, factors_[j]);
    const double along = product(weighted, product(x, row_.rsigma)), unscaled = product(weighted, x);
    row_.along += along / n;
    row_.unscaled += unscaled / n;
    const std::array scaled = {product(along, square), 2 * product(along, square / 2), product(unscaled, cube),
                               2 * product(unscaled, cube / 2)};
    for (std::size_t k = 0; k < scaled.size(); ++k) {
      row_.scaled[k] += scaled[k] / n;
    }
    if (saved_.mu != nullptr) {
      const std::array terms = {weighted, product(weighted, row_.rsigma),
                                product(product(dz, row_.rsigma), factors_[j])};
      for (std::size_t k = 0; k < terms.size(); ++k) {
        row_.mean[k] += terms[k] / n;
      }
    }
  }
  row_.mean[0] = product(row_.mean[0], row_.rsigma);
}

void FlushedNorm::find_y(std::size_t i, std::size_t j) {
  for (const double y : products(centred(i, j), row_.rsigma, factors_[j])) {
    found_.push_back(beta_ == nullptr ? y : flushed(y + flushed(beta_->data[j])));
  }
}

void FlushedNorm::find_dgamma(std::size_t j) {
  found_.assign(kOrders, 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(x_->rows); ++i) {
    row_ = {.mu = saved_.mu == nullptr ? 0 : flushed(saved_.mu->data[i])};
    const std::array terms = products(centred(i, j), saved_.rsigma->data[i], row_of(*dz_, i)[j]);
    std::ranges::transform(found_, terms, found_.begin(), std::plus<>{});
  }
}

void FlushedNorm::find_dx(std::size_t i, std::size_t j) {
  const double x = centred(i, j), square = product(row_.rsigma, row_.rsigma);
  std::vector<double> along = {product(product(row_.along, product(x, row_.rsigma)), row_.rsigma),
                               product(product(product(row_.along, row_.rsigma), row_.rsigma), x),
                               product(product(square, row_.along), x),
                               product(product(product(square, row_.rsigma), row_.unscaled), x)};
  for (const double coefficient : row_.scaled) {
    along.push_back(product(coefficient, x));
  }
  const std::span<const double> means(row_.mean.data(), saved_.mu == nullptr ? 1 : row_.mean.size());
  const double added = add_ == nullptr ? 0 : flushed(row_of(*add_, i)[j]);
  for (const double first : products(row_of(*dz_, i)[j], row_.rsigma, factors_[j])) {
    for (const double mean : means) {
      for (const double second : along) {
        found_.push_back(flushed(first - mean - second + added));
      }
    }
  }
}

std::span<const double> FlushedNorm::of(std::string_view port, std::size_t at) {
  const std::size_t hidden = factors_.size();
  found_.clear();
  if (port == "dgamma") {
    find_dgamma(at);
  } else if (port == "y" || port == "dx") {
    keep_row(at / hidden);
    port == "y" ? find_y(at / hidden, at % hidden) : find_dx(at / hidden, at % hidden);
  }
  return found_;
}

}  // namespace numcheck::reference
