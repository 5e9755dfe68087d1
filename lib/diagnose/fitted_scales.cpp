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
                              factor != std::strtod(fmt::format("{:.{}g}", factor, kFittedDigits).c_str(), nullptr));
}

/// The number of FP32 in the middle. Many elements leave a range as narrow as what the rounding of their products with the scale
/// moves it by: then the neighbours of that number as well.
std::vector<double> floats_near(const ScaleRange& range) {
  constexpr double kNarrow = 0x1p-21;
  const auto middle = static_cast<float>(range.middle());
  std::vector<double> all = {static_cast<double>(middle)};
  if (range.high - range.low < kNarrow * range.low) {
    float below = middle, above = middle;
    for (int i = 0; i < 2; ++i) {
      below = std::nextafter(below, 0.0F);
      above = std::nextafter(above, INFINITY);
      all.insert(all.end(), {static_cast<double>(above), static_cast<double>(below)});
    }
  }
  return all;
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
    const auto try_number = [&](double number, const std::string& name, bool is_fitted) {
      all.push_back(with_scale(evidence, scale, number, name, factor_text(evidence, scale, as_float(number))));
      all.back().family = family;
      all.back().is_measured = true;
      all.back().is_fitted = is_fitted;
      all.back().shared_cause = fmt::format("{} was made with another {}", evidence.port, scale.port.name);
    };
    const auto try_typed = [&](double number, const std::string& name) {
      if (range->has(number, within) && is_scale(number)) {
        try_number(number, name, false);
        // Where every bit counts, so does in which order FP32 operations made the number.
        if (evidence.values.bit_exact) {
          try_number(middle, name, false);
        }
      }
    };
    const std::vector<double> factors = typed_near(middle / scale.number);
    for (const double factor : factors) {
      if (may_be_typed(factor)) {
        try_typed(factor * scale.number, fmt::format("{}={}", family, core::shortest(factor)));
      }
    }
    if (scale.is_given) {  // otherwise it is a parameter, which has a row of its own
      for (const double number : typed_near(middle)) {
        if (is_round(number)) {
          try_typed(number, fmt::format("{}={}", scale.port.name, core::shortest(number)));
        }
      }
    }
    const std::string fitted = fmt::format("{}={}", family, core::shortest(factors.back()));
    try_number(factors.back() * scale.number, fitted, true);
    for (const double number : floats_near(*range)) {
      try_number(number, fitted, true);
    }
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
