#include "reference/flushed_norms.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace numcheck::reference {
namespace {

std::vector<FlushedNumber> flushed_factors(const op::Operand& gamma, const op::NormParams& p) {
  std::vector<FlushedNumber> factors;
  factors.reserve(gamma.elements());
  for (std::size_t j = 0; j < gamma.elements(); ++j) {
    const FlushedNumber given = gamma.data[j];
    factors.emplace_back(gamma_factor<double>(given.y, p, gamma.dtype), given.lost, false);
  }
  return factors;
}

}  // namespace

FlushedNorm::FlushedNorm(const op::FindingRequest& request, const op::NormParams& p, bool products_are_rounded)
    : p_(p),
      products_are_rounded_(products_are_rounded),
      x_(&op::operand_named(request.inputs, "x")),
      dz_(op::find_operand(request.inputs, "dz")),
      beta_(op::find_operand(request.inputs, "beta")),
      add_(op::find_operand(request.inputs, "add")),
      saved_{op::find_operand(request.inputs, "mu"), op::find_operand(request.inputs, "rsigma")},
      factors_(flushed_factors(op::operand_named(request.inputs, "gamma"), p)) {
  const auto dx = std::ranges::find(request.outputs, "dx", &op::Delivered::port);
  dx_ = dx == request.outputs.end() ? std::span<const double>() : dx->value;
}

FlushedNumber FlushedNorm::centred(std::size_t i, std::size_t j) const {
  return FlushedNumber(row_of(*x_, i)[j]) - row_.mu;
}

void FlushedNorm::keep_row(std::size_t i) {
  if (i != row_.index) {
    row_ = {.index = i};
    dz_ == nullptr ? keep_forward_row(i) : keep_gradient_row(i);
  }
}

void FlushedNorm::keep_forward_row(std::size_t i) {
  const auto n = static_cast<double>(factors_.size());
  FlushedSum sum, squares;
  for (std::size_t j = 0; j < factors_.size(); ++j) {
    sum.add(row_of(*x_, i)[j]);
  }
  row_.mu = beta_ == nullptr ? FlushedNumber() : sum.over(n);
  for (std::size_t j = 0; j < factors_.size(); ++j) {
    const FlushedNumber x = centred(i, j);
    squares.add(x * x);
  }
  // Squares beside epsilon, or beside larger ones, are no loss that shows.
  row_.rsigma = row_rsigma(squares.over(n).y, epsilon_of(p_));
}

void FlushedNorm::keep_gradient_row(std::size_t i) {
  const auto n = static_cast<double>(factors_.size());
  row_.mu = saved_.mu == nullptr ? FlushedNumber() : FlushedNumber(saved_.mu->data[i]);
  row_.rsigma = saved_.rsigma->data[i];
  const FlushedNumber square = row_.rsigma * row_.rsigma, cube = square * row_.rsigma;
  FlushedSum along, unscaled, mean;
  std::array<FlushedSum, kScaled> scaled;
  std::array<FlushedSum, kOrders> scaled_means;
  for (std::size_t j = 0; j < factors_.size(); ++j) {
    const FlushedNumber dz = row_of(*dz_, i)[j], x = centred(i, j), weighted = dz * factors_[j];
    const FlushedNumber with_xh = weighted * (x * row_.rsigma), with_x = weighted * x;
    along.add(with_xh);
    unscaled.add(with_x);
    scaled[0].add(with_xh * square);
    scaled[1].add(2 * (with_xh * (0.5 * square)));
    scaled[2].add(with_x * cube);
    scaled[3].add(2 * (with_x * (0.5 * cube)));
    mean.add(weighted);
    const std::array terms = products(dz, row_.rsigma, factors_[j]);
    for (std::size_t k = 0; k < kOrders; ++k) {
      scaled_means[k].add(terms[k]);
    }
  }
  row_.along = along.over(n);
  row_.unscaled = unscaled.over(n);
  std::ranges::transform(scaled, row_.scaled.begin(), [n](const FlushedSum& sum) { return sum.over(n); });
  row_.means = {FlushedNumber()};
  if (saved_.mu != nullptr) {
    row_.means = {mean.over(n) * row_.rsigma};
    std::ranges::transform(scaled_means, std::back_inserter(row_.means),
                           [n](const FlushedSum& sum) { return sum.over(n); });
    fit_means(i);
  }
}

/// What most elements lack, if partial sums of the mean may have lost it.
void FlushedNorm::fit_means(std::size_t i) {
  constexpr double kSmall = 0x1p-102;  // terms that leave partial sums below 2^-126
  double magnitude = 0, sum = 0;
  bool small = false;
  for (std::size_t j = 0; j < factors_.size(); ++j) {
    const double term = row_of(*dz_, i)[j] * factors_[j].y * row_.rsigma.y;
    sum += term;
    magnitude += std::fabs(term);
    small = small || (term != 0 && std::fabs(term) < kSmall);
  }
  const double most = std::min(tolerance::kFlush, magnitude);
  if (!small || !std::isfinite(sum) || dx_.size() != x_->elements()) {
    return;
  }
  std::array<std::vector<double>, kAlong> lacking;
  for (std::size_t j = 0; j < factors_.size(); ++j) {
    const double got = dx_[i * factors_.size() + j];
    const double added = add_ == nullptr ? 0 : row_of(*add_, i)[j];
    if (got != 0 && std::isfinite(got)) {
      const std::array along = terms_along(i, j);
      const FlushedNumber first = first_terms(i, j)[0];
      for (std::size_t k = 0; k < kAlong; ++k) {
        lacking[k].push_back(first.y - along[k].y + added - got);
      }
    }
  }
  for (std::vector<double>& of_form : lacking) {
    if (!of_form.empty()) {
      const auto middle = of_form.begin() + static_cast<std::ptrdiff_t>(of_form.size() / 2);
      std::ranges::nth_element(of_form, middle);
      if (std::fabs(*middle - sum / static_cast<double>(factors_.size())) <= most) {
        row_.means.emplace_back(0, true, false);
        row_.means.back().y = *middle;  // may be subnormal: it is added in the same instruction
      }
    }
  }
}

std::array<FlushedNumber, FlushedNorm::kOrders> FlushedNorm::first_terms(std::size_t i, std::size_t j) const {
  const FlushedNumber dz = row_of(*dz_, i)[j];
  return {(dz * factors_[j]) * row_.rsigma, (dz * row_.rsigma) * factors_[j], (row_.rsigma * factors_[j]) * dz};
}

std::array<FlushedNumber, FlushedNorm::kAlong> FlushedNorm::terms_along(std::size_t i, std::size_t j) const {
  const FlushedNumber x = centred(i, j), square = row_.rsigma * row_.rsigma;
  std::array<FlushedNumber, kAlong> along = {(row_.along * (x * row_.rsigma)) * row_.rsigma,
                                             ((row_.along * row_.rsigma) * row_.rsigma) * x, (square * row_.along) * x,
                                             ((square * row_.rsigma) * row_.unscaled) * x};
  std::ranges::transform(row_.scaled, along.begin() + (kAlong - kScaled),
                         [&x](const FlushedNumber& scaled) { return scaled * x; });
  return along;
}

void FlushedNorm::add(const FlushedNumber& result) {
  const bool counts = std::isnan(result.y) ? result.nan_of_loss : result.lost && std::isfinite(result.y);
  if (counts) {
    found_.push_back(result.y);
  }
}

void FlushedNorm::find_y(std::size_t i, std::size_t j) {
  for (const FlushedNumber& y : products(centred(i, j), row_.rsigma, factors_[j])) {
    add(beta_ == nullptr ? y : y + FlushedNumber(beta_->data[j]));
  }
}

/// Of all columns when the first one is asked for.
void FlushedNorm::sum_dgamma() {
  dgamma_.resize(factors_.size());
  for (std::size_t i = 0; i < static_cast<std::size_t>(x_->rows); ++i) {
    row_ = {.mu = saved_.mu == nullptr ? FlushedNumber() : FlushedNumber(saved_.mu->data[i])};
    const FlushedNumber rsigma = saved_.rsigma->data[i];
    for (std::size_t j = 0; j < factors_.size(); ++j) {
      const std::array terms = products(centred(i, j), rsigma, row_of(*dz_, i)[j]);
      for (std::size_t k = 0; k < kOrders; ++k) {
        dgamma_[j][k].add(terms[k]);
      }
    }
  }
}

void FlushedNorm::find_dx(std::size_t i, std::size_t j) {
  const std::array along = terms_along(i, j);
  const FlushedNumber added = add_ == nullptr ? FlushedNumber() : FlushedNumber(row_of(*add_, i)[j]);
  const std::array firsts = first_terms(i, j);
  const auto any_lost = [](const auto& terms) { return std::ranges::any_of(terms, &FlushedNumber::lost); };
  if (!added.lost && !any_lost(firsts) && !any_lost(along) && !any_lost(row_.means)) {
    return;  // nor is a sum of what is left, which would be a rounding error of its terms
  }
  for (const FlushedNumber& first : firsts) {
    for (const FlushedNumber& mean : row_.means) {
      for (const FlushedNumber& second : along) {
        add(FlushedNumber(first.y - mean.y - second.y + added.y, first.lost || mean.lost || second.lost || added.lost,
                          first.nan_of_loss || mean.nan_of_loss || second.nan_of_loss));
      }
    }
  }
}

std::span<const double> FlushedNorm::of(std::string_view port, std::size_t at) {
  const std::size_t hidden = factors_.size();
  found_.clear();
  if (port == "dgamma") {
    if (dgamma_.empty()) {
      sum_dgamma();
    }
    for (const FlushedSum& sum : dgamma_[at]) {
      add(sum.over(1));
    }
  } else if (port == "dx" || (port == "y" && !products_are_rounded_)) {
    keep_row(at / hidden);
    port == "y" ? find_y(at / hidden, at % hidden) : find_dx(at / hidden, at % hidden);
  }
  return found_;
}

}  // namespace numcheck::reference
