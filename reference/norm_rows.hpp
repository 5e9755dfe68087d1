// The row formulas of the normalisations, over a scalar that is double or tolerance::Tracked.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/codec.hpp"
#include "op/norm_params.hpp"
#include "op/reference.hpp"
#include "reference/norm_range.hpp"
#include "reference/row_sum.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference {

/// epsilon as passed to kernels: an FP32 number.
[[nodiscard]] inline double epsilon_of(const op::NormParams& p) {
  return static_cast<double>(static_cast<float>(p.epsilon));
}

/// Row i of a matrix.
[[nodiscard]] inline std::span<const double> row_of(const op::Operand& matrix, std::size_t i) {
  const auto cols = static_cast<std::size_t>(matrix.cols);
  return {matrix.data + i * cols, cols};
}

/// total / n.
inline double divided_by_count(double total, std::size_t n) {
  return total / static_cast<double>(n);
}

/// Kernels multiply by 1 / n, rounded, which is exact only for powers of two.
inline tolerance::Tracked divided_by_count(const tolerance::Tracked& total, std::size_t n) {
  using tolerance::kUnit32;
  const double inverse = 1 / static_cast<double>(n);
  const bool exact = (n & (n - 1)) == 0;
  const double step = kUnit32 * inverse;
  const tolerance::Tracked factor =
      exact ? tolerance::Tracked(inverse) : tolerance::Tracked(inverse, step, tolerance::kRoundVariance * step * step);
  tolerance::Tracked mean = total * factor;
  mean.y = total.y / static_cast<double>(n);
  return mean;
}

/// mean_j x_j
template <class Scalar>
Scalar row_mean(std::span<const double> x) {
  RowSum<Scalar> sum;
  for (const double value : x) {
    sum.add(Scalar(value));
  }
  return divided_by_count(sum.result(), x.size());
}

/// mean_j x_j^2
template <class Scalar>
Scalar row_mean_square(std::span<const double> x) {
  tolerance::Sum<Scalar> squares;
  for (const double value : x) {
    squares.add(Scalar(value) * Scalar(value));
  }
  return divided_by_count(squares.result(), x.size());
}

/// What an error d of the mean does to the sum of squares around it, beyond the part 2 d sum(x - mean) that is tracked
/// as independent: it adds n d^2, the same d in every term. E d^4 = 3 V^2 for a normal d.
inline double with_shifted_mean(double squares, double /*mean*/, std::size_t /*n*/) {
  return squares;
}
inline tolerance::Tracked with_shifted_mean(tolerance::Tracked squares, const tolerance::Tracked& mean, std::size_t n) {
  const double count = static_cast<double>(n);
  squares.v += 3 * count * count * mean.v * mean.v;
  return squares;
}

/// mean_j (x_j - mean)^2, in a second pass.
template <class Scalar>
Scalar row_variance(std::span<const double> x, const Scalar& mean) {
  tolerance::Sum<Scalar> squares;
  for (const double value : x) {
    const Scalar centred = Scalar(value) - mean;
    squares.add(centred * centred);
  }
  return divided_by_count(with_shifted_mean(squares.result(), mean, x.size()), x.size());
}

/// 1 / sqrt(spread + epsilon)
inline double row_rsigma(double spread, double epsilon) {
  return tolerance::reciprocal_root(spread + epsilon);
}
/// No computed spread is negative, so no rsigma exceeds 1 / sqrt(epsilon).
inline tolerance::Tracked row_rsigma(const tolerance::Tracked& spread, double epsilon) {
  constexpr double kRoundings = 1 + 8 * tolerance::kUnit32;
  tolerance::Tracked rsigma = tolerance::reciprocal_root(spread + tolerance::Tracked(epsilon));
  rsigma.b = std::min(rsigma.b, kRoundings / std::sqrt(epsilon));
  // The mean of squares beyond FP32, which only a kernel that scales them has, has a subnormal root.
  return rsigma.y < tolerance::kFlush ? tolerance::detail::with_underflow(rsigma, tolerance::kUnderflow) : rsigma;
}

/// gamma' of a column, see op::NormParams.
template <class Scalar>
Scalar gamma_factor(double gamma, const op::NormParams& p, core::Dtype format) {
  if (!p.zero_centered_gamma) {
    return Scalar(gamma);
  }
  return p.gamma_add == "weight" ? Scalar(core::round_to(gamma + 1, format)) : Scalar(gamma) + Scalar(1.0);
}

/// gamma' of all columns.
template <class Scalar>
std::vector<Scalar> gamma_factors(const op::Operand& gamma, const op::NormParams& p) {
  std::vector<Scalar> factors;
  factors.reserve(gamma.elements());
  for (std::size_t j = 0; j < gamma.elements(); ++j) {
    factors.push_back(gamma_factor<Scalar>(gamma.data[j], p, gamma.dtype));
  }
  return factors;
}

/// True if gamma' is rounded to fewer bits than FP32's.
[[nodiscard]] inline bool rounds_gamma(const op::NormParams& p, core::Dtype format) {
  return p.zero_centered_gamma && p.gamma_add == "weight" && core::dtype_info(format).storage_bytes < 4;
}

/// The statistics that a backward pass receives: mu and rsigma of x's rows.
struct SavedStatistics {
  const op::Operand* mu;  ///< null: RMSNorm, which has none
  const op::Operand* rsigma;
};

/// What a backward pass is computed from.
struct NormGradient {
  const op::Operand* dz;
  const op::Operand* x;
  const op::Operand* add;  ///< null: no residual gradient
  SavedStatistics saved;
};

/// xh = rsigma (x - mu)
template <class Scalar>
Scalar normalised(const SavedStatistics& saved, std::size_t i, double x) {
  const Scalar centred = saved.mu == nullptr ? Scalar(x) : Scalar(x) - Scalar(saved.mu->data[i]);
  return centred * Scalar(saved.rsigma->data[i]);
}

/// The largest intermediate result of xh, even where (x - mu) rsigma is written as x rsigma - mu rsigma.
[[nodiscard]] inline double largest_intermediate(const SavedStatistics& saved, std::size_t i, double x) {
  const double mu = saved.mu == nullptr ? 0 : saved.mu->data[i];
  return (std::fabs(x) + std::fabs(mu)) * (1 + saved.rsigma->data[i]);
}

/// What becomes of a gradient's sums.
enum class SumsFate : std::uint8_t {
  certain,
  may_overflow,  ///< of finite terms
  infinite       ///< terms are: what is left depends on how the formula is written
};

/// dx of row i: put(j, value). Nothing is put if terms are infinite.
template <class Scalar, class Put>
[[nodiscard]] SumsFate input_gradient(const NormGradient& g, std::span<const Scalar> factors, std::size_t i,
                                      const Put& put) {
  const std::span<const double> dz = row_of(*g.dz, i);
  const std::span<const double> x = row_of(*g.x, i);
  RowSum<Scalar> sum;
  RowSum<Scalar> sum_xh;
  Reach reach;
  double largest = 1;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const Scalar weighted = factors[j] * Scalar(dz[j]);
    const Scalar xh = normalised<Scalar>(g.saved, i, x[j]);
    sum.add(weighted);
    sum_xh.add(weighted * xh);
    const double along = 1 + std::fabs(tolerance::value_of(xh));
    reach.add(std::fabs(tolerance::value_of(weighted)) * along);
    reach.pass(largest_intermediate(g.saved, i, x[j]));
    largest = std::isfinite(along) ? std::max(largest, along) : largest;
  }
  if (reach.infinite()) {
    return SumsFate::infinite;
  }
  const bool open = reach.may_overflow(largest * (1 + g.saved.rsigma->data[i]));
  const Scalar mean = divided_by_count(sum.result(), x.size());
  const Scalar mean_xh = divided_by_count(sum_xh.result(), x.size());
  for (std::size_t j = 0; j < x.size(); ++j) {
    Scalar along = mean_xh * normalised<Scalar>(g.saved, i, x[j]);
    if (g.saved.mu != nullptr) {
      along += mean;
    }
    Scalar dx = Scalar(g.saved.rsigma->data[i]) * (factors[j] * Scalar(dz[j]) - along);
    if (g.add != nullptr) {
      dx += Scalar(row_of(*g.add, i)[j]);
    }
    put(j, open && !std::isfinite(tolerance::value_of(dx)) ? unchecked(dx) : dx);
  }
  return open ? SumsFate::may_overflow : SumsFate::certain;
}

/// Sums over rows of columns [first, first + count): sum_i dz_ij xh_ij and sum_i dz_ij.
template <class Scalar>
struct ColumnSums {
  std::vector<tolerance::Sum<Scalar>> gamma;
  std::vector<tolerance::Sum<Scalar>> beta;
  std::vector<Reach> gamma_reach;  ///< of |dz| (1 + |xh|)
  std::vector<Reach> beta_reach;   ///< of |dz|
};

template <class Scalar>
ColumnSums<Scalar> weight_gradients(const NormGradient& g, std::size_t first, std::size_t count) {
  ColumnSums<Scalar> sums{std::vector<tolerance::Sum<Scalar>>(count), std::vector<tolerance::Sum<Scalar>>(count),
                          std::vector<Reach>(count), std::vector<Reach>(count)};
  const auto rows = static_cast<std::size_t>(g.x->rows);
  for (std::size_t i = 0; i < rows; ++i) {
    const double* dz = row_of(*g.dz, i).data() + first;
    const double* x = row_of(*g.x, i).data() + first;
    for (std::size_t j = 0; j < count; ++j) {
      const Scalar xh = normalised<Scalar>(g.saved, i, x[j]);
      sums.gamma[j].add(Scalar(dz[j]) * xh);
      sums.beta[j].add(Scalar(dz[j]));
      sums.gamma_reach[j].add(std::fabs(dz[j]) * (1 + std::fabs(tolerance::value_of(xh))));
      sums.gamma_reach[j].pass(largest_intermediate(g.saved, i, x[j]));
      sums.beta_reach[j].add(std::fabs(dz[j]));
    }
  }
  return sums;
}

}  // namespace numcheck::reference
