#include "reference/norm_findings.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <unordered_map>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "op/output_format.hpp"
#include "reference/norm_fit.hpp"
#include "reference/norm_regression.hpp"
#include "reference/norm_rows.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kMinCount = 8;  ///< rows, and elements of a row, that a statistic needs

const op::OutputValues& expected_named(const op::Values& values, std::string_view port) {
  const auto found = std::ranges::find(values.outputs, port, &op::OutputValues::port);
  if (found == values.outputs.end()) {
    throw core::InternalError("the reference gives no output " + std::string(port));
  }
  return *found;
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

/// What the rows of the request are fitted from.
Fitter fitter_of(const op::FindingRequest& request, const op::NormParams& p, bool centred) {
  const auto delivered = std::ranges::find(request.outputs, std::string_view("y"), &op::Delivered::port);
  if (delivered == request.outputs.end()) {
    throw core::InternalError("norm findings: there is no output y");
  }
  return {op::operand_named(request.inputs, "x"),
          op::operand_named(request.inputs, "gamma"),
          centred ? &op::operand_named(request.inputs, "beta") : nullptr,
          &expected_named(*request.expected, "y"),
          &expected_named(*request.expected, "rsigma"),
          centred ? &expected_named(*request.expected, "mu") : nullptr,
          epsilon_of(p),
          *delivered,
          p.zero_centered_gamma ? 1.0 : 0.0};
}

class NormFindings : public op::RowFindings {
 public:
  NormFindings(const op::NormParams& p, std::int64_t rows, bool centred)
      : p_(p),
        centred_(centred),
        fits_(p.hidden < static_cast<std::int64_t>(kMinCount) ? 0 : static_cast<std::size_t>(rows)) {}

  void add(const op::FindingRequest& rows, std::int64_t first) override {
    const Fitter fitter = fitter_of(rows, p_, centred_);
    if (fits_.empty() || fitter.y->deviation.empty()) {
      return;
    }
    core::parallel_for(static_cast<std::size_t>(fitter.x.rows), [&](std::size_t i) {
      RowFit& fit = fits_[static_cast<std::size_t>(first) + i];
      fit = fit_row(fitter, i);
      fit.row = static_cast<std::size_t>(first) + i;
    });
  }

  [[nodiscard]] std::vector<op::Finding> result(const op::FindingRequest* all) const override {
    std::vector<RowFit> fits = fits_;
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
    if (const bool is_off = scale.measured > scale.limit; is_off && all != nullptr) {
      if (const Fitter fitter = fitter_of(*all, p_, centred_); !fitter.narrow()) {
        const RoundedScales rounded = rounded_scales(fitter, fits);
        pooled = pool(rounded.fits);
        scale.measured = std::fabs(pooled.scale_error);
        scale.limit = limit_of(pooled) + 2 * std::fabs(rounded.common);
      }
    }
    scale.text += single_row(fits);
    std::vector<op::Finding> findings = {scale};
    add_regression(fits, p_, findings);
    return findings;
  }

 private:
  op::NormParams p_;
  bool centred_;
  std::vector<RowFit> fits_;
};

}  // namespace

std::unique_ptr<op::RowFindings> norm_row_findings(const op::NormParams& p, std::int64_t rows, bool centred) {
  return std::make_unique<NormFindings>(p, rows, centred);
}

std::vector<op::Finding> norm_findings(const op::FindingRequest& request, const op::NormParams& p, bool centred) {
  NormFindings findings(p, op::operand_named(request.inputs, "x").rows, centred);
  findings.add(request, 0);
  return findings.result(&request);
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
