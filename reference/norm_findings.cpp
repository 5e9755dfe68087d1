#include "reference/norm_findings.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <unordered_map>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "op/output_format.hpp"
#include "reference/norm_regression.hpp"
#include "reference/norm_rows.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kMinCount = 8;  ///< rows, and elements of a row, that a statistic needs

struct Fitter {
  op::Operand x;
  op::Operand gamma;
  const op::Operand* beta;  ///< null: RMSNorm
  const op::OutputValues* y;
  const op::OutputValues* rsigma;
  const op::OutputValues* mu;  ///< null: RMSNorm
  double epsilon;
  op::Delivered delivered;
  double centre;  ///< what is added to gamma

  [[nodiscard]] bool narrow() const { return core::dtype_info(delivered.dtype).storage_bytes < 4; }
};

const op::OutputValues& expected_named(const op::Values& values, std::string_view port) {
  const auto found = std::ranges::find(values.outputs, port, &op::OutputValues::port);
  if (found == values.outputs.end()) {
    throw core::InternalError("the reference gives no output " + std::string(port));
  }
  return *found;
}

/// V of one element, with the rounding of a 16- or 8-bit output. FP32's is already part of V.
double variance_of(const Fitter& f, std::size_t at) {
  const double deviation = static_cast<double>(f.y->deviation[at]), v = deviation * deviation;
  if (!f.narrow()) {
    return v;
  }
  const double reached = std::fabs(f.y->value[at]) + 3 * deviation;
  const double step = core::ulp(reached * f.delivered.scale, f.delivered.dtype) / f.delivered.scale;
  return v + step * step / 12;
}

/// The result as a 16- or 8-bit output holds it; of an FP32 output as it is.
double best_of(const Fitter& f, std::size_t at) {
  const double y = f.y->value[at];
  const double scale = f.delivered.scale;
  return f.narrow()
             ? core::round_to(y * scale, f.delivered.dtype,
                              core::is_fp8(f.delivered.dtype) ? core::Overflow::saturate : core::Overflow::ieee) /
                   scale
             : y;
}

/// The error of one element; that of a 16- or 8-bit output is what rounding the exact result does not explain.
double error_of(const Fitter& f, std::size_t at) {
  return f.delivered.value[at] - best_of(f, at);
}

/// A hash of one more FP32 number.
std::uint64_t with_number(std::uint64_t hash, double number) {
  constexpr std::uint64_t kMix = 0x9E3779B97F4A7C15;
  return std::rotl((hash ^ std::bit_cast<std::uint32_t>(static_cast<float>(number))) * kMix, 29);
}

/// Spread of a row around its mean or zero.
double spread_of(const Fitter& f, std::span<const double> x) {
  return f.beta == nullptr ? row_mean_square<double>(x) : row_variance<double>(x, row_mean<double>(x));
}

/// How often a magnitude occurs in the row, on average: equal elements are rounded alike, so their errors add up
/// instead of averaging out. 1 if there are many magnitudes.
double copies_in(std::span<const double> row) {
  constexpr std::size_t kMany = 32;
  std::vector<double> seen;
  for (const double value : row) {
    if (std::ranges::find(seen, std::fabs(value)) == seen.end()) {
      seen.push_back(std::fabs(value));
      if (seen.size() > kMany) {
        return 1;
      }
    }
  }
  return static_cast<double>(row.size()) / static_cast<double>(std::max<std::size_t>(1, seen.size()));
}

/// True if a row's outputs spread over less than one of their ulps: then their rounding errors do not average out, and
/// a slope through them means nothing. (0.6: a normal y of that width leaves less than 0.1 % of an ulp.)
bool within_an_ulp(const Fitter& f, std::span<const double> y) {
  constexpr double kMinUlps = 0.6;
  if (!f.narrow()) {
    return false;
  }
  double sum = 0, squares = 0;
  for (const double value : y) {
    sum += value;
    squares += value * value;
  }
  const double n = static_cast<double>(y.size());
  const double spread = std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n)));
  const double step = core::ulp(std::sqrt(squares / n) * f.delivered.scale, f.delivered.dtype);
  return spread * f.delivered.scale < kMinUlps * step;
}

RowFit fit_row(const Fitter& f, std::size_t i) {
  const std::span<const double> x = row_of(f.x, i);
  const std::span<const double> expected(f.y->value.data() + i * x.size(), x.size());
  if (within_an_ulp(f, expected)) {
    return {};
  }
  Normal normal;
  std::uint64_t alike = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const std::size_t at = i * x.size() + j;
    const double y = f.y->value[at];
    alike = with_number(alike, best_of(f, at));
    const double error = error_of(f, at);
    const double variance = variance_of(f, at);
    if (!std::isfinite(error) || !std::isfinite(y)) {
      return {};
    }
    if (variance > 0) {
      const double shift = f.beta == nullptr ? 0 : f.gamma.data[j] + f.centre;
      normal.add(f.beta == nullptr ? y : y - f.beta->data[j], shift, error, 1 / variance);
    }
  }
  const bool fits = normal.aa > 0 && (normal.bb == 0 || normal.independent());
  const double rsigma = f.rsigma->value[i];
  const double relative = static_cast<double>(f.rsigma->deviation[i]) / rsigma;
  // Beyond a relative error of 1, the linear model of rsigma means nothing.
  const double own = normal.first_variance() * copies_in(expected);
  const double spread = spread_of(f, x);
  const double off = f.mu == nullptr ? 0 : static_cast<double>(f.mu->deviation[i]);
  const double bias = off * off / (2 * (spread + f.epsilon));
  return {normal.first(), own, relative * relative, spread, bias, fits && relative < 1, i, alike};
}

/// The scale error that rounding y to FP32 alone leaves in a row, whose mean is an FP32 number: the nearest one, or `steps`
/// from it. Roundings are not independent of y where numbers are few: of x and gamma near 0.5, gamma (x - mean) is an odd
/// multiple of half an ulp and a little more, and goes away from zero every time.
double rounded_scale(const Fitter& f, std::size_t i, double steps) {
  const std::size_t hidden = row_of(f.x, i).size();
  const double mean = f.mu == nullptr ? 0 : f.mu->value[i];
  const double off =
      f.mu == nullptr ? 0 : mean - core::round_to(mean, core::Dtype::fp32) - steps * core::ulp(mean, core::Dtype::fp32);
  Normal normal;
  for (std::size_t j = 0; j < hidden; ++j) {
    const std::size_t at = i * hidden + j;
    const double variance = variance_of(f, at);
    if (variance > 0) {
      const double y = f.y->value[at];
      const double shift = f.beta == nullptr ? 0 : f.gamma.data[j] + f.centre;
      const double moved = y + off * f.rsigma->value[i] * shift;
      normal.add(f.beta == nullptr ? y : y - f.beta->data[j], shift, core::round_to(moved, core::Dtype::fp32) - moved,
                 1 / variance);
    }
  }
  return normal.first();
}

/// The fits of an FP32 output with variances no smaller than the squares of their rounded scales, and what these have in
/// common.
struct RoundedScales {
  std::vector<RowFit> fits;
  double common = 0;  ///< weighted mean
};

RoundedScales rounded_scales(const Fitter& f, const std::vector<RowFit>& fits) {
  constexpr std::array kSteps = {-1.0, 0.0, 1.0};
  RoundedScales found{fits};
  std::vector<double> means(fits.size());
  core::parallel_for(fits.size(), [&](std::size_t at) {
    double sum = 0, squares = 0;
    for (const double steps : kSteps) {
      const double rho = rounded_scale(f, fits[at].row, steps);
      sum += rho;
      squares += rho * rho;
    }
    means[at] = sum / kSteps.size();
    found.fits[at].own = std::max(fits[at].own, squares / kSteps.size());
  });
  double weights = 0;
  for (std::size_t at = 0; at < means.size(); ++at) {
    found.common += found.fits[at].weight() * means[at];
    weights += found.fits[at].weight();
  }
  found.common /= weights;
  return found;
}

/// The pooled statistics of the usable rows.
struct Pooled {
  std::size_t rows = 0;
  double scale_error = 0;
  double shared = 0;  ///< sqrt(mean R)
  double own = 0;     ///< standard error from the O_i
  double bias = 0;    ///< mean of the rows'
};

Pooled pool(const std::vector<RowFit>& fits) {
  Pooled all;
  struct Alike {
    double weight = 0, own = 0;  ///< summed, and the largest
  };
  double weights = 0;
  std::unordered_map<std::uint64_t, Alike> kinds;
  for (const RowFit& fit : fits) {
    const double weight = fit.weight();
    weights += weight;
    all.scale_error += weight * fit.rho;
    all.shared += weight * fit.shared;
    Alike& kind = kinds[fit.alike];
    kind.weight += weight;
    kind.own = std::max(kind.own, fit.own);
    all.bias += weight * fit.bias;
    ++all.rows;
  }
  all.scale_error /= weights;
  all.shared = std::sqrt(all.shared / weights);
  for (const auto& [hash, kind] : kinds) {
    all.own += kind.weight * kind.weight * kind.own;
  }
  all.own = std::sqrt(all.own) / weights;
  all.bias /= weights;
  return all;
}

/// What the mean of the rows' scale errors may be.
double limit_of(const Pooled& pooled) {
  constexpr double kKappa = 2;
  constexpr double kSlack = 4 * tolerance::kUnit32;  // of factors that all rows share
  return kKappa * (2 * pooled.shared + 5 * pooled.own) + kKappa * kKappa * pooled.bias + kSlack;
}

void add_regression(const std::vector<RowFit>& fits, const op::NormParams& p, std::vector<op::Finding>& findings) {
  const Regression found(fits, epsilon_of(p));
  if (!found.independent()) {
    return;
  }
  findings.push_back({.name = "row regression: variance",
                      .port = "y",
                      .measured = found.b(),
                      .text = fmt::format("the rows' scales fit {:.4g} times the variance", 1 + found.b())});
  findings.push_back(
      {.name = "row regression: epsilon",
       .port = "y",
       .measured = found.d(),
       .text = fmt::format("the rows' scales fit {:.3g}, requested {:.3g}", epsilon_of(p) + found.d(), epsilon_of(p))});
  const std::string cause = found.cause(p.hidden);
  if (!cause.empty()) {
    findings.front().text += "; " + cause;
  }
}

/// The row that is furthest off, as text, if only it and a few others are off; empty otherwise.
std::string single_row(const std::vector<RowFit>& fits) {
  constexpr double kClear = 10;  // standard errors
  constexpr double kFew = 0.1;   // share of the rows
  const auto distance = [](const RowFit& fit) { return std::fabs(fit.rho) * std::sqrt(fit.weight()); };
  const auto worst = std::ranges::max_element(fits, {}, distance);
  const auto off = std::ranges::count_if(fits, [&](const RowFit& fit) { return distance(fit) > kClear; });
  if (off == 0 || static_cast<double>(off) > kFew * static_cast<double>(fits.size())) {
    return {};
  }
  return fmt::format("; row {} is scaled by {:.4g}{}", worst->row, 1 + worst->rho,
                     off > 1 ? fmt::format(", and {} others are off", off - 1) : "");
}

}  // namespace

std::vector<op::Finding> norm_findings(const op::FindingRequest& request, const op::NormParams& p, bool centred) {
  const op::Operand& x = op::operand_named(request.inputs, "x");
  const auto delivered = std::ranges::find(request.outputs, std::string_view("y"), &op::Delivered::port);
  if (delivered == request.outputs.end()) {
    throw core::InternalError("norm findings: there is no output y");
  }
  const Fitter fitter{x,
                      op::operand_named(request.inputs, "gamma"),
                      centred ? &op::operand_named(request.inputs, "beta") : nullptr,
                      &expected_named(*request.expected, "y"),
                      &expected_named(*request.expected, "rsigma"),
                      centred ? &expected_named(*request.expected, "mu") : nullptr,
                      epsilon_of(p),
                      *delivered,
                      p.zero_centered_gamma ? 1.0 : 0.0};
  if (x.cols < static_cast<std::int64_t>(kMinCount) || fitter.y->deviation.empty()) {
    return {};
  }
  std::vector<RowFit> fits(static_cast<std::size_t>(x.rows));
  core::parallel_for(fits.size(), [&](std::size_t i) { fits[i] = fit_row(fitter, i); });
  std::erase_if(fits, [](const RowFit& fit) { return !fit.usable || !std::isfinite(fit.weight() * fit.rho); });
  if (fits.empty()) {
    return {};
  }
  Pooled pooled = pool(fits);
  op::Finding scale{.name = "row scale error",
                    .port = "y",
                    .measured = std::fabs(pooled.scale_error),
                    .text = fmt::format("mean of the {} rows' relative scale errors", pooled.rows)};
  if (pooled.rows >= kMinCount) {
    scale.limit = limit_of(pooled);
  }
  if (scale.measured > scale.limit && !fitter.narrow()) {
    const RoundedScales rounded = rounded_scales(fitter, fits);
    pooled = pool(rounded.fits);
    scale.measured = std::fabs(pooled.scale_error);
    scale.limit = limit_of(pooled) + 2 * std::fabs(rounded.common);
  }
  scale.text += single_row(fits);
  std::vector<op::Finding> findings = {scale};
  add_regression(fits, p, findings);
  return findings;
}

std::string rounded_gamma_note(core::Dtype format) {
  return fmt::format("gamma + 1 is rounded to {}", core::dtype_info(format).name);
}

std::string rounded_product_note(core::Dtype format) {
  return fmt::format("x rsigma is rounded to {} before gamma is applied", core::dtype_info(format).name);
}

std::span<const op::OwnGate> norm_gates() {
  static constexpr std::array kGates = {
      op::OwnGate{"row scale error", "mean relative error of the rows' scales, by regression of y on its rows"},
  };
  return kGates;
}

}  // namespace numcheck::reference
