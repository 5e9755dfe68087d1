// What norms become where subnormal numbers are taken for zero.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "op/norm_params.hpp"
#include "op/reference.hpp"
#include "reference/flushed_number.hpp"
#include "reference/flushed_subnormals.hpp"
#include "reference/norm_rows.hpp"

namespace numcheck::reference {

/// Outputs of LayerNorm and RMSNorm, and their gradients, with every operand and the result of every multiplication flushed. Where
/// that matters, the result depends on which factors are multiplied first, so that an element has several:
///
///   y       (x - mu) rsigma gamma' + beta, its factors in any order
///   dgamma  sum_i dz (x - mu) rsigma, the factors of all terms in one order
///   dx      dz gamma' rsigma - m - c, the factors of the first term in any order,
///             m  mean(dz gamma') rsigma, or mean(dz gamma' rsigma), its factors in one order, or the one number for the whole row
///                that makes most of it right, where partial sums of it may be subnormal: that costs less than 2^-126
///             c  mean(dz gamma' xh) xh rsigma, (mean(dz gamma' xh) rsigma) rsigma (x - mu), rsigma^2 mean(dz gamma' xh) (x - mu),
///                rsigma^3 mean(dz gamma' (x - mu)) (x - mu), or the same with the powers of rsigma, or half of them, in the mean
///
/// Only those are given of which something was lost that is not zero. An infinity is none, and NaN where it is a lost factor times
/// infinity. Source: what cuDNN 9.14 and 9.19 leave on an H200: xh first in y and dgamma, and rsigma and half of its cube within the
/// means of dx.
class FlushedNorm final : public FlushedResults {
 public:
  /// `products_are_rounded`: x rsigma is rounded to x's format; then nothing is known of y.
  FlushedNorm(const op::FindingRequest& request, const op::NormParams& p, bool products_are_rounded = false);

  [[nodiscard]] std::span<const double> of(std::string_view port, std::size_t at) override;

 private:
  static constexpr std::size_t kOrders = 3, kScaled = 4, kAlong = 4 + kScaled;

  [[nodiscard]] FlushedNumber centred(std::size_t i, std::size_t j) const;
  [[nodiscard]] std::array<FlushedNumber, kOrders> first_terms(std::size_t i, std::size_t j) const;
  [[nodiscard]] std::array<FlushedNumber, kAlong> terms_along(std::size_t i, std::size_t j) const;
  void keep_row(std::size_t i);
  void keep_forward_row(std::size_t i);
  void keep_gradient_row(std::size_t i);
  void fit_means(std::size_t i);
  void find_y(std::size_t i, std::size_t j);
  void sum_dgamma();
  void find_dx(std::size_t i, std::size_t j);
  void add(const FlushedNumber& result);

  op::NormParams p_;
  bool products_are_rounded_;
  const op::Operand *x_, *dz_, *beta_, *add_;
  SavedStatistics saved_;               ///< of gradients
  std::span<const double> dx_;          ///< as delivered
  std::vector<FlushedNumber> factors_;  ///< gamma'
  std::vector<std::array<FlushedSum, kOrders>> dgamma_;
  std::vector<double> found_;

  /// Of the row that was looked at last: elements are asked for in their order.
  struct Row {
    std::size_t index = static_cast<std::size_t>(-1);
    FlushedNumber mu, rsigma;
    FlushedNumber along, unscaled;              ///< means of dz gamma' xh, and of dz gamma' (x - mu)
    std::array<FlushedNumber, kScaled> scaled;  ///< c / (x - mu) with powers of rsigma in the mean
    std::vector<FlushedNumber> means;           ///< m
  } row_;
};

}  // namespace numcheck::reference
