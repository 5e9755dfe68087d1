// Hypotheses about what was added to an output: a row, a column or a number.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "core/strings.hpp"
#include "diagnose/added_vector.hpp"
#include "diagnose/hypothesis.hpp"
#include "diagnose/line_direction.hpp"
#include "diagnose/typed_numbers.hpp"

namespace numcheck::diagnose {
namespace {

/// What every line has besides what is expected: the mean of its error, and how well that is known. Of 16- and 8-bit outputs a
/// number from which each element rounds to what is delivered is known better.
struct Offset {
  double mean = 0, error = 0;
  double square = 0;    ///< mean square of the error
  double rounding = 0;  ///< what the output's rounding leaves of it on average, as an ulp
};

/// Whether it is no chance, and more than rounding makes.
bool is_known(const Offset& offset) {
  constexpr double kDeviations = 8;
  return std::abs(offset.mean) > std::max(kDeviations * offset.error, offset.rounding);
}

/// Whether most lines have one, and these are most of the error.
bool explain_most(const std::vector<Offset>& offsets) {
  double all = 0, left = 0;
  for (const Offset& offset : offsets) {
    all += offset.square;
    left += std::max(offset.square - offset.mean * offset.mean, 0.0);
  }
  constexpr double kMost = 0.9;
  return 2 * std::ranges::count_if(offsets, is_known) >= std::ssize(offsets) && left <= (1 - kMost) * all;
}

/// Of numbers d and what is expected of them. `deviation` is what is predicted of their errors, and may be empty.
std::vector<Offset> offsets(std::span<const double> delivered, std::span<const double> expected,
                            std::span<const float> deviation, core::Dtype dtype, const Direction& lines) {
  std::vector<Offset> all(lines.lines);
  core::parallel_for(lines.lines, [&](std::size_t line) {
    double count = 0, sum = 0, squares = 0, rounding = 0, predicted = 0;
    double least = -std::numeric_limits<double>::infinity(), most = -least;
    for (std::size_t i = 0; i < lines.length; ++i) {
      const std::size_t at = lines.at(line, i);
      const double off = delivered[at] - expected[at];
      if (std::isfinite(off)) {
        const double half = 0.5 * core::ulp(delivered[at], dtype);
        least = std::max(least, off - half);
        most = std::min(most, off + half);
        count += 1;
        sum += off;
        squares += off * off;
        rounding += 2 * half;
        predicted += (deviation.empty() ? 0 : std::pow(static_cast<double>(deviation[at]), 2)) + half * half / 3;
      }
    }
    const double mean = count > 0 ? sum / count : 0;
    const double scatter = count > 0 ? std::sqrt(std::max(squares / count - mean * mean, 0.0) / count) : 0;
    // A number for the line leaves no more than errors: what scatters further is not known any worse, but wrong.
    constexpr double kTimesPredicted = 4;
    const double limit = kTimesPredicted * std::sqrt(predicted) / std::max(count, 1.0);
    const bool is_narrow = core::dtype_info(dtype).storage_bytes <= 2;
    all[line] = {is_narrow && count > 0 && least <= most ? std::midpoint(least, most) : mean,
                 deviation.empty() ? scatter : std::min(scatter, limit), count > 0 ? squares / count : 0,
                 count > 0 ? rounding / count : 0};
  });
  return all;
}

std::vector<Offset> offsets(const Evidence& evidence, const Direction& lines) {
  return offsets(evidence.delivered, evidence.values.value.span(), evidence.values.deviation.span(),
                 port_of(evidence).dtype, lines);
}

/// An offset more is expected of every element, which is known to that error.
void add_offsets(const Direction& lines, const std::vector<Offset>& offsets, op::OutputValues& output,
                 op::OutputYardsticks* yardsticks) {
  constexpr double kDeviations = 4;
  const auto allow = [](core::Buffer<float>& errors, std::size_t at, double more) {
    if (at < errors.size()) {
      errors[at] += static_cast<float>(more);
    }
  };
  for (std::size_t line = 0; line < lines.lines; ++line) {
    for (std::size_t i = 0; i < lines.length; ++i) {
      const std::size_t at = lines.at(line, i);
      expect_instead(output, at, output.value[at] + offsets[line].mean);
      // One more rounding of the sum, in FP32.
      const double more = 0x1p-24 * std::abs(output.value[at]);
      allow(output.magnitude, at, kDeviations * offsets[line].error + more);
      allow(output.deviation, at, offsets[line].error + more);
      if (yardsticks != nullptr) {
        allow(yardsticks->magnitude, at, kDeviations * offsets[line].error + more);
        allow(yardsticks->deviation, at, offsets[line].error + more);
      }
    }
  }
}

decltype(Trial::then) with_offsets(const Evidence& evidence, const Direction& lines, std::vector<Offset> offsets) {
  return change_of(evidence,
                   [lines, offsets = std::move(offsets)](op::OutputValues& output, op::OutputYardsticks* yardsticks) {
                     add_offsets(lines, offsets, output, yardsticks);
                   });
}

/// The offsets that fit best beside whatever else is supposed: with operands in TF32, a bias is another one.
decltype(Trial::then) with_best_offsets(const Evidence& evidence, const Direction& lines) {
  auto delivered = std::make_shared<const std::vector<double>>(evidence.delivered.begin(), evidence.delivered.end());
  return change_of(evidence, [lines, delivered = std::move(delivered), dtype = port_of(evidence).dtype](
                                 op::OutputValues& output, op::OutputYardsticks* yardsticks) {
    add_offsets(lines, offsets(*delivered, output.value.span(), output.deviation.span(), dtype, lines), output,
                yardsticks);
  });
}

/// A number for each line that nobody has given.
Hypothesis unknown_added(const Evidence& evidence, const Direction& lines, const std::vector<Offset>& found) {
  const auto [least, most] = std::ranges::minmax(found, {}, &Offset::mean);
  const std::string range = fmt::format("{:.4g} to {:.4g}", least.mean, most.mean);
  const bool is_bias = lines.what == "column";
  const std::string given = given_to_add(evidence);
  Trial trial = as_declared(evidence.subject);
  trial.then = with_best_offsets(evidence, lines);
  std::string cause = fmt::format("{} that is not among the tensors was added: to every {} of {} a number, from {}",
                                  is_bias ? "a bias" : "something", lines.what, evidence.port, range);
  std::string remedy =
      is_bias ? "Give the bias if the op should have one, or call the layer without it (bias=False) on both "
                "sides."
              : "Look for a term that depends on the row alone: a residual, a mean that is not subtracted.";
  if (!given.empty()) {
    cause = fmt::format("a number was added to every {} of {}, from {}, besides the {} that is given", lines.what,
                        evidence.port, range, given);
    remedy = is_bias ? fmt::format(
                           "Compare the {} that the layer has with the one that is given, and what it does with "
                           "it; or look for a second one.",
                           given)
                     : remedy;
  }
  Hypothesis made{is_bias ? "bias_added" : "row_offsets_added", is_bias ? "column_added" : "row_added",
                  std::move(cause), std::move(remedy), std::move(trial)};
  made.is_fitted = made.is_measured = true;
  made.shared_cause = fmt::format("{} was added to {}", is_bias ? "a bias" : "something", evidence.port);
  return made;
}

/// A number for each column (a bias), or for each row: what a given vector leaves that is used in another way, or a new one.
std::vector<Hypothesis> line_added(const Evidence& evidence) {
  std::vector<Hypothesis> all;
  if (evidence.values.unpredictable) {  // nothing is added to what is drawn
    return all;
  }
  for (const Direction& lines : directions(evidence)) {
    std::vector<Offset> found = offsets(evidence, lines);
    if (lines.heads > 1 || !explain_most(found)) {
      continue;
    }
    std::vector<double> means;
    std::ranges::transform(found, std::back_inserter(means), &Offset::mean);
    for (AddedVector& vector : misused_vectors(evidence, lines.what == "column", means)) {
      std::vector<Offset> exact = found;
      for (std::size_t i = 0; i < exact.size(); ++i) {
        exact[i].mean = vector.offsets[i];
        exact[i].error = vector.errors[i];
      }
      Trial trial = as_declared(evidence.subject);
      trial.then = with_offsets(evidence, lines, std::move(exact));
      all.push_back({std::move(vector.name), lines.what == "column" ? "column_added" : "row_added",
                     std::move(vector.cause), std::move(vector.remedy), std::move(trial)});
      all.back().is_fitted = vector.is_fitted;
      all.back().is_measured = true;
    }
    all.push_back(unknown_added(evidence, lines, found));
  }
  return all;
}

/// One number more in all of the output, first one that somebody may have typed.
std::vector<Hypothesis> constant_added(const Evidence& evidence) {
  if (!evidence.sample.all() || evidence.values.unpredictable) {
    return {};
  }
  const Direction all_of_it{"element", 1, evidence.delivered.size()};
  const Offset found = offsets(evidence, all_of_it).front();
  if (!explain_most({found})) {
    return {};
  }
  std::vector<Hypothesis> all;
  for (const double number : typed_near(found.mean)) {
    Trial trial = as_declared(evidence.subject);
    trial.then = with_offsets(evidence, all_of_it, {{.mean = number, .error = found.error}});
    const std::string text = core::shortest(number);
    all.push_back({"output_offset=" + text, "output_offset",
                   fmt::format("{} was added to every element of {}", text, evidence.port),
                   "Look for a constant that one side leaves out: a shift of the scores, the logarithm of a scale.",
                   std::move(trial)});
    all.back().is_measured = true;
    all.back().shared_cause = fmt::format("a constant was added to {}", evidence.port);
  }
  if (!all.empty()) {
    all.back().is_fitted = true;
  }
  return all;
}

constexpr std::array kRows = {
    CatalogueRow{"output_offset=NUMBER", "the output plus a constant, fitted", &constant_added},
    CatalogueRow{
        "bias_added_NUMBER_times, bias_scaled=NUMBER, bias_rolled, bias_on_rows, beta_times_gamma, bias_added, "
        "row_offsets_added",
        "a bias that was added several times, scaled, shifted or to the other axis, or a row or a column that nobody "
        "gave",
        &line_added, Stage::last_resort, true}};

}  // namespace

std::span<const CatalogueRow> added_line_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
