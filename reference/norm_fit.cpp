#include "reference/norm_fit.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "core/codec.hpp"
#include "core/isa.hpp"
#include "reference/norm_fit_kernels.hpp"
#include "reference/norm_rows.hpp"

namespace numcheck::reference {

const NormFitKernels& norm_fit_kernels() noexcept {
  return NUMCHECK_ACTIVE_ISA(norm_fit_kernels)();
}

namespace {

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
bool within_an_ulp(const Fitter& f, const RowSumsToFit& sums, std::size_t hidden) {
  constexpr double kMinUlps = 0.6;
  if (!f.narrow()) {
    return false;
  }
  const double n = static_cast<double>(hidden), mean = sums.sum / n;
  const double spread = std::sqrt(std::max(0.0, sums.squares / n - mean * mean));
  const double step = core::ulp(std::sqrt(sums.squares / n) * f.delivered.scale, f.delivered.dtype);
  return spread * f.delivered.scale < kMinUlps * step;
}

/// The sums of a row with numbers that its format does not hold, one after the other.
RowSumsToFit sums_beyond(const Fitter& f, const RowToFit& row, std::size_t first) {
  RowSumsToFit sums{.alike = 0, .finite = true, .within = true};
  Normal normal;
  for (std::size_t j = 0; j < row.hidden; ++j) {
    const double y = row.y[j], best = best_of(f, first + j), error = row.got[j] - best;
    sums.alike =
        std::rotl(
            sums.alike ^ std::bit_cast<std::uint32_t>(static_cast<float>(row.beta == nullptr ? std::fabs(best) : best)),
            29) *
        0x9E3779B97F4A7C15;
    sums.finite = sums.finite && std::isfinite(error) && std::isfinite(y);
    sums.sum += y;
    sums.squares += y * y;
    sums.spread += (row.x[j] - row.mean) * (row.x[j] - row.mean) / static_cast<double>(row.hidden);
    if (const double variance = variance_of(f, first + j); variance > 0) {
      const bool centred = row.beta != nullptr;
      normal.add(centred ? y - row.beta[j] : y, centred ? row.gamma[j] + row.centre : 0, error, 1 / variance);
    }
  }
  sums.aa = normal.aa, sums.ab = normal.ab, sums.bb = normal.bb, sums.ae = normal.ae, sums.be = normal.be;
  return sums;
}

RowSumsToFit sums_of(const Fitter& f, std::size_t i) {
  const std::span<const double> x = row_of(f.x, i);
  const std::size_t first = i * x.size();
  const bool centred = f.beta != nullptr;
  const RowToFit row{x.size(),
                     x.data(),
                     centred ? f.gamma.data : nullptr,
                     centred ? f.beta->data : nullptr,
                     f.centre,
                     centred ? f.mu->value[i] : 0,
                     f.y->value.data() + first,
                     f.y->deviation.data() + first,
                     f.delivered.value.data() + first};
  const core::DtypeInfo& format = core::dtype_info(f.delivered.dtype);
  const StoredAs stored{f.narrow(), f.delivered.scale, std::ldexp(1.0, format.emin), format.max_finite,
                        std::ldexp(1.0, -format.fraction_bits)};
  const RowSumsToFit sums = norm_fit_kernels().sums(row, stored);
  return sums.within ? sums : sums_beyond(f, row, first);
}

}  // namespace

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

RowFit fit_row(const Fitter& f, std::size_t i) {
  const auto hidden = static_cast<std::size_t>(f.x.cols);
  const RowSumsToFit sums = sums_of(f, i);
  if (!sums.finite || within_an_ulp(f, sums, hidden)) {
    return {};
  }
  const Normal normal{sums.aa, sums.ab, sums.bb, sums.ae, sums.be};
  const bool fits = normal.aa > 0 && (normal.bb == 0 || normal.independent());
  const double rsigma = f.rsigma->value[i];
  const double relative = static_cast<double>(f.rsigma->deviation[i]) / rsigma;
  // Of larger relative errors the linear model of rsigma means nothing: less than nothing may be left of a variance.
  constexpr double kLinear = 0.125;
  const double own = normal.first_variance() * copies_in({f.y->value.data() + i * hidden, hidden});
  const double off = f.mu == nullptr ? 0 : static_cast<double>(f.mu->deviation[i]);
  const double bias = off * off / (2 * (sums.spread + f.epsilon));
  return {normal.first(), own, relative * relative, sums.spread, bias, fits && relative < kLinear, i, sums.alike};
}

}  // namespace numcheck::reference
