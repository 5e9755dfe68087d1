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
#include "reference/norm_formula.hpp"
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

/// Kernels multiply by 1 / n, which is exact only for powers of two. Fast division is documented with 2 ulp (CUDA C++
/// Programming Guide, intrinsic functions), and cuDNN's 1 / 9 has been seen to be off by 2.
inline tolerance::Tracked divided_by_count(const tolerance::Tracked& total, std::size_t n) {
  using tolerance::kUnit32;
  const double inverse = 1 / static_cast<double>(n);
  const bool exact = (n & (n - 1)) == 0;
  const double step = 2 * 2 * kUnit32 * inverse;
  const tolerance::Tracked factor =
      exact ? tolerance::Tracked(inverse) : tolerance::Tracked(inverse, step, step * step / 3);
  tolerance::Tracked mean = total * factor;
  mean.y = total.y / static_cast<double>(n);
  return mean;
}
inline tolerance::Flushable divided_by_count(const tolerance::Flushable& total, std::size_t n) {
  return tolerance::detail::stored(total.y / static_cast<double>(n), total.lost / static_cast<double>(n),
                                   total.may_be_nan);
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

/// mean_j |x_j|
[[nodiscard]] inline double mean_magnitude(std::span<const double> x) {
  double sum = 0;
  for (const double value : x) {
    sum += std::fabs(value);
  }
  return sum / static_cast<double>(x.size());
}

/// mean_j x_j^2
template <class Scalar>
Scalar row_mean_square(std::span<const double> x) {
  tolerance::Sum<Scalar> squares;
  for (const double value : x) {
    squares.add(square_of(Scalar(value)));
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
inline tolerance::Flushable with_shifted_mean(const tolerance::Flushable& squares, const tolerance::Flushable& /*mean*/,
                                              std::size_t /*n*/) {
  return squares;
}

/// mean_j (x_j - mean)^2, in a second pass.
template <class Scalar>
Scalar row_variance(std::span<const double> x, const Scalar& mean) {
  tolerance::Sum<Scalar> squares;
  for (const double value : x) {
    squares.add(centred_square(Scalar(value), mean));
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
inline tolerance::Flushable row_rsigma(const tolerance::Flushable& spread, double epsilon) {
  const tolerance::Flushable rsigma = tolerance::reciprocal_root(spread + tolerance::Flushable(epsilon));
  return {rsigma.y, std::min(rsigma.lost, 1 / std::sqrt(epsilon))};
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

/// x - mu
[[nodiscard]] inline double centred(const SavedStatistics& saved, std::size_t i, double x) {
  return saved.mu == nullptr ? x : x - saved.mu->data[i];
}

/// |x - mu| or more, even where (x - mu) f is written as x f - mu f.
[[nodiscard]] inline double largest_distance(const SavedStatistics& saved, std::size_t i, double x) {
  return std::fabs(x) + (saved.mu == nullptr ? 0 : std::fabs(saved.mu->data[i]));
}

/// The largest intermediate result of f xh, where f and rsigma are multiplied by x - mu, or by one another, in any order:
/// PyTorch's kernels, for one, form dz (x - mu) first.
[[nodiscard]] inline double largest_intermediate(const SavedStatistics& saved, std::size_t i, double x, double f) {
  const double distance = largest_distance(saved, i, x), rsigma = saved.rsigma->data[i], factor = std::fabs(f);
  return std::max(std::max(distance, factor) * (1 + rsigma), distance * factor);
}

/// What dx = rsigma (w - along - mean) is made of.
struct GradientParts {
  double along, mean, rsigma;
  double coefficient;  ///< of x - mu in rsigma along
  double unscaled;     ///< the largest intermediate result of along / rsigma^2
};

/// dx, where a kernel may multiply by rsigma first, and form rsigma^3, and its product with mean(dz gamma (x - mu)), for `along`:
/// 0, times what may be infinite then.
template <class Scalar>
Scalar in_parts(const Scalar& dx, const GradientParts& /*parts*/) {
  return dx;
}
template <>
inline tolerance::Flushable in_parts(const tolerance::Flushable& dx, const GradientParts& parts) {
  using tolerance::kMayFlush;
  const double along_part = std::fabs(parts.along * parts.rsigma), mean_part = std::fabs(parts.mean * parts.rsigma);
  const bool flushes = parts.rsigma * parts.rsigma * parts.rsigma < kMayFlush;
  Reach reach;
  reach.pass(parts.unscaled);
  const bool loses_along = flushes || parts.coefficient < kMayFlush || along_part < kMayFlush;
  return tolerance::detail::stored(dx.y,
                                   dx.lost + (loses_along ? along_part : 0) + (mean_part < kMayFlush ? mean_part : 0),
                                   dx.may_be_nan || (flushes && reach.may_overflow()));
}

/// dx of row i: put(j, value, whether something in it may overflow, sum of the magnitudes of its
/// terms). False, and nothing is put, if terms are infinite: what is
/// left then depends on how the formula is written.
template <class Scalar, class Put>
[[nodiscard]] bool input_gradient(const NormGradient& g, std::span<const Scalar> factors, std::size_t i,
                                  const Put& put) {
  const std::span<const double> dz = row_of(*g.dz, i);
  const std::span<const double> x = row_of(*g.x, i);
  RowSum<Scalar> sum;
  RowSum<Scalar> sum_xh;
  const double rsigma = g.saved.rsigma->data[i];
  Reach reach;
  double largest = 1, absolute = 0, absolute_xh = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const Scalar weighted = factors[j] * Scalar(dz[j]);
    const Scalar xh = normalised<Scalar>(g.saved, i, x[j]);
    const double factor = tolerance::value_of(weighted);
    sum.add(weighted);
    sum_xh.add(in_any_order(weighted * xh, factor, centred(g.saved, i, x[j]), rsigma));
    const double along = 1 + std::fabs(tolerance::value_of(xh));
    absolute += g.saved.mu == nullptr ? 0 : std::fabs(factor);
    absolute_xh += std::fabs(factor) * (along - 1);
    reach.add(std::fabs(factor) * along);
    reach.pass(largest_intermediate(g.saved, i, x[j], factor));
    largest = std::isfinite(along) ? std::max(largest, along) : largest;
  }
  if (reach.infinite()) {
    return false;
  }
  const bool open = reach.may_overflow(largest * (1 + rsigma));
  const Scalar mean = divided_by_count(sum.result(), x.size());
  const Scalar mean_xh = divided_by_count(sum_xh.result(), x.size());
  const double n = static_cast<double>(x.size());
  for (std::size_t j = 0; j < x.size(); ++j) {
    const Scalar xh = normalised<Scalar>(g.saved, i, x[j]);
    Scalar along = in_any_order(mean_xh * xh, tolerance::value_of(mean_xh), centred(g.saved, i, x[j]), rsigma);
    const double projection = tolerance::value_of(along);
    if (g.saved.mu != nullptr) {
      along += mean;
    }
    const double factor = tolerance::value_of(factors[j]);
    const double sum_of_products = absolute_xh / rsigma;
    const double coefficient = std::fabs(tolerance::value_of(mean_xh)) * rsigma * rsigma;
    Scalar dx =
        in_parts(in_any_order(Scalar(rsigma) * (factors[j] * Scalar(dz[j]) - along), rsigma, factor, dz[j]),
                 {.along = projection,
                  .mean = g.saved.mu == nullptr ? 0 : tolerance::value_of(mean),
                  .rsigma = rsigma,
                  .coefficient = coefficient,
                  .unscaled = std::max(1.0, largest_distance(g.saved, i, x[j])) * std::max(n, sum_of_products)});
    if (g.add != nullptr) {
      dx += Scalar(row_of(*g.add, i)[j]);
    }
    Reach own;
    own.pass(std::max(std::fabs(factor), std::fabs(dz[j])) * rsigma);
    own.pass(
        coefficient);  // rsigma^3 mean(dz gamma (x - mu)), which PyTorch and cuDNN form before they multiply by x - mu
    const bool may_overflow = open || own.may_overflow();
    const double added = g.add == nullptr ? 0 : std::fabs(row_of(*g.add, i)[j]);
    const double terms = std::fabs(factor * dz[j]) + (absolute + absolute_xh * std::fabs(tolerance::value_of(xh))) / n;
    put(j, may_overflow && !std::isfinite(tolerance::value_of(dx)) ? unchecked(dx) : dx, may_overflow,
        std::fabs(rsigma) * terms + added);
  }
  return true;
}

/// Sums over rows of columns [first, first + count): sum_i dz_ij xh_ij and sum_i dz_ij.
template <class Scalar>
struct ColumnSums {
  std::vector<tolerance::Sum<Scalar>> gamma;
  std::vector<tolerance::Sum<Scalar>> beta;
  std::vector<Reach> gamma_reach;               ///< of |dz| (1 + |xh|)
  std::vector<Reach> beta_reach;                ///< of |dz|
  std::vector<double> gamma_terms, beta_terms;  ///< sums of magnitudes
};

template <class Scalar>
ColumnSums<Scalar> weight_gradients(const NormGradient& g, std::size_t first, std::size_t count) {
  ColumnSums<Scalar> sums{std::vector<tolerance::Sum<Scalar>>(count),
                          std::vector<tolerance::Sum<Scalar>>(count),
                          std::vector<Reach>(count),
                          std::vector<Reach>(count),
                          std::vector<double>(count),
                          std::vector<double>(count)};
  const auto rows = static_cast<std::size_t>(g.x->rows);
  for (std::size_t i = 0; i < rows; ++i) {
    const double* dz = row_of(*g.dz, i).data() + first;
    const double* x = row_of(*g.x, i).data() + first;
    for (std::size_t j = 0; j < count; ++j) {
      const Scalar xh = normalised<Scalar>(g.saved, i, x[j]);
      sums.gamma[j].add(in_any_order(Scalar(dz[j]) * xh, dz[j], centred(g.saved, i, x[j]), g.saved.rsigma->data[i]));
      sums.beta[j].add(Scalar(dz[j]));
      sums.gamma_reach[j].add(std::fabs(dz[j]) * (1 + std::fabs(tolerance::value_of(xh))));
      sums.gamma_reach[j].pass(largest_intermediate(g.saved, i, x[j], dz[j]));
      sums.beta_reach[j].add(std::fabs(dz[j]));
      sums.gamma_terms[j] += std::fabs(dz[j] * tolerance::value_of(xh));
      sums.beta_terms[j] += std::fabs(dz[j]);
    }
  }
  return sums;
}

}  // namespace numcheck::reference
