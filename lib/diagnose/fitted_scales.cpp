// Hypotheses about scales of tensors in FP8: another number, which the tensor's own numbers tell.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/strings.hpp"
#include "diagnose/hypothesis.hpp"
#include "diagnose/scale_facts.hpp"
#include "diagnose/typed_numbers.hpp"

namespace numcheck::diagnose {
namespace {

std::string factor_text(const Evidence& evidence, const Scale& scale, double number) {
  const std::string declared = scale.is_given ? fmt::format("{}, {:.7g}", scale.port.name, scale.number)
                                              : fmt::format("the one that follows from max |x|, {:.7g}", scale.number);
  const std::string times = core::shortest(std::strtod(fmt::format("{:.7g}", number / scale.number).c_str(), nullptr));
  if (scale.when == AppliedTo::operand) {
    return fmt::format("codes of {} were multiplied by {:.7g}: {} times {}", scale.of, number, times, declared);
  }
  const double amax = core::dtype_info(port_of(evidence).dtype).max_finite / number;
  return fmt::format("the codes of {} are of a scale of {:.7g} (as for an amax of {:.6g}): {} times {}", scale.of,
                     number, amax, times, declared);
}

/// A power of two, or a number of three digits.
bool is_round(double x) {
  return std::exp2(std::round(std::log2(x))) == x || std::strtod(fmt::format("{:.3g}", x).c_str(), nullptr) == x;
}

/// Roots and inverses of large whole numbers lie everywhere.
bool may_be_typed(double factor) {
  constexpr double kMost = 16;
  return is_round(factor) || (std::max(factor, 1 / factor) < kMost &&
                              factor != std::strtod(fmt::format("{:.7g}", factor).c_str(), nullptr));
}

/// Another scale, which the numbers of the output tell: a multiple that somebody may have typed, a number like that, and the
/// one that fits.
std::vector<Hypothesis> other_scales(const Evidence& evidence) {
  std::vector<Hypothesis> all;
  for (const Scale& scale : scales_of(evidence)) {
    const std::optional<ScaleRange> range = range_of(evidence, scale);
    if (!range.has_value() || range->has(scale.number, kSameFloat)) {
      continue;
    }
    constexpr double kArithmetic = 0x1p-10;  // errors of what is rounded to codes, as a share of it
    const double within = evidence.values.bit_exact ? kSameFloat : kArithmetic;
    const double middle = as_float(range->middle());
    const std::string family = fmt::format("{}_scaled", scale.port.name);
    std::vector<double> seen;
    const auto add = [&](double number, const std::string& name, bool is_fitted) {
      if (!range->has(number, within) || !is_scale(number) || std::ranges::find(seen, as_float(number)) != seen.end()) {
        return;
      }
      seen.push_back(as_float(number));
      all.push_back(with_scale(evidence, scale, number, name, factor_text(evidence, scale, as_float(number))));
      all.back().family = family;
      all.back().is_measured = true;
      all.back().is_fitted = is_fitted;
      all.back().shared_cause = fmt::format("{} was made with another {}", evidence.port, scale.port.name);
    };
    const std::vector<double> factors = typed_near(middle / scale.number), numbers = typed_near(middle);
    for (const double factor : factors) {
      if (may_be_typed(factor)) {
        add(factor * scale.number, fmt::format("{}={}", family, core::shortest(factor)), false);
      }
    }
    for (const double number : numbers) {
      if (is_round(number)) {
        add(number, fmt::format("{}={}", scale.port.name, core::shortest(number)), false);
      }
    }
    add(factors.back() * scale.number, fmt::format("{}={}", family, core::shortest(factors.back())), true);
    add(middle, fmt::format("{}={}", family, core::shortest(factors.back())), true);
  }
  return all;
}

constexpr std::array kRows = {
    CatalogueRow{"SCALE_scaled=NUMBER, SCALE=NUMBER", "codes of another scale, fitted: scale_scaled=2", &other_scales}};

}  // namespace

std::span<const CatalogueRow> fitted_scale_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
