// Hypotheses about lines of an output: a few that are multiplied by something.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/parallel.hpp"
#include "core/strings.hpp"
#include "diagnose/hypothesis.hpp"
#include "diagnose/line_direction.hpp"
#include "diagnose/typed_numbers.hpp"

namespace numcheck::diagnose {
namespace {

double middle(std::vector<double> numbers) {
  const auto place = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::ranges::nth_element(numbers, place);
  return *place;
}

/// sum d y / sum y^2 of each line; 1 where nothing is known.
std::vector<double> slopes(const Evidence& evidence, const Direction& lines) {
  std::vector<double> found(lines.lines, 1);
  core::parallel_for(lines.lines, [&](std::size_t line) {
    double product = 0, square = 0;
    for (std::size_t i = 0; i < lines.length; ++i) {
      const double y = evidence.values.value[lines.at(line, i)], d = evidence.delivered[lines.at(line, i)];
      if (std::isfinite(y) && std::isfinite(d)) {
        product += d * y;
        square += y * y;
      }
    }
    found[line] = square > 0 ? product / square : 1;
  });
  return found;
}

/// Scales what is expected of each line, and its errors.
decltype(Trial::then) scaled_lines(const Evidence& evidence, const Direction& lines, std::vector<double> factors) {
  return change_of(evidence,
                   [lines, factors = std::move(factors)](op::OutputValues& output, op::OutputYardsticks* yardsticks) {
                     std::vector<core::Buffer<float>*> errors = {&output.magnitude, &output.deviation, &output.terms};
                     if (yardsticks != nullptr) {
                       errors.insert(errors.end(), {&yardsticks->magnitude, &yardsticks->deviation});
                     }
                     for (std::size_t line = 0; line < lines.lines; ++line) {
                       for (std::size_t i = 0; i < lines.length && factors[line] != 1; ++i) {
                         const std::size_t at = lines.at(line, i);
                         output.value[at] *= factors[line];
                         for (core::Buffer<float>* error : errors) {
                           if (at < error->size()) {
                             (*error)[at] *= static_cast<float>(std::abs(factors[line]));
                           }
                         }
                       }
                     }
                   });
}

/// Lines whose slope is far from those of most; empty unless they are few.
std::vector<std::size_t> other_lines(const std::vector<double>& slopes) {
  std::vector<double> off;
  for (const double slope : slopes) {
    off.push_back(std::abs(slope - 1));
  }
  constexpr double kFar = 8, kLeast = 0x1p-18, kNothing = 0.05;
  const double limit = std::max(kFar * middle(off), kLeast);
  std::vector<std::size_t> others;
  for (std::size_t line = 0; line < slopes.size(); ++line) {
    if (off[line] > limit && std::abs(slopes[line]) > kNothing) {
      others.push_back(line);
    }
  }
  return 4 * others.size() <= slopes.size() ? others : std::vector<std::size_t>{};
}

/// The number that all of these lines were multiplied by, first one that somebody may have typed; empty if they differ.
std::vector<double> common_factors(const std::vector<double>& slopes, const std::vector<std::size_t>& lines) {
  double mean = 0;
  for (const std::size_t line : lines) {
    mean += slopes[line] / static_cast<double>(lines.size());
  }
  constexpr double kAlike = 0.01;
  const bool are_alike = std::ranges::all_of(
      lines, [&](std::size_t line) { return std::abs(slopes[line] - mean) <= kAlike * std::abs(mean); });
  return are_alike ? typed_near(mean) : std::vector<double>{};
}

std::string lines_text(const std::vector<std::size_t>& lines, const Direction& direction) {
  constexpr std::size_t kMost = 6;
  const auto row_of = [&](std::size_t line) { return line / direction.heads; };
  const std::size_t head = lines.front() % direction.heads;
  bool is_range = lines.size() > kMost;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    is_range = is_range && lines[i] == (row_of(lines.front()) + i) * direction.heads + head;
  }
  if (is_range) {
    return fmt::format("{}s {} to {}{}", direction.what, row_of(lines.front()), row_of(lines.back()),
                       direction.heads == 1 ? "" : fmt::format(" of head {}", head));
  }
  std::vector<std::string> some;
  for (const std::size_t line : std::span(lines).first(std::min(lines.size(), kMost))) {
    some.push_back(direction.heads == 1 ? fmt::format("{}", line)
                                        : fmt::format("{} of head {}", line / direction.heads, line % direction.heads));
  }
  return fmt::format("{}{} {}{}", direction.what, lines.size() == 1 ? "" : "s", fmt::join(some, ", "),
                     lines.size() > kMost ? fmt::format(" and {} more", lines.size() - kMost) : "");
}

std::vector<Hypothesis> some_scaled(const Evidence& evidence) {
  std::vector<Hypothesis> all;
  for (const Direction& lines : directions(evidence)) {
    const std::vector<double> found = slopes(evidence, lines);
    const std::vector<std::size_t> others = other_lines(found);
    if (others.empty()) {
      continue;
    }
    std::vector<double> factors(lines.lines, 1);
    const std::vector<double> typed = common_factors(found, others);
    for (std::size_t i = 0; i <= typed.size(); ++i) {
      const bool each = i == typed.size();
      for (const std::size_t line : others) {
        factors[line] = each ? found[line] : typed[i];
      }
      if (each && !typed.empty()) {
        break;
      }
      Trial trial = as_declared(evidence.subject);
      trial.then = scaled_lines(evidence, lines, factors);
      const std::string times =
          each ? fmt::format("by factors from {:.4g} to {:.4g}", std::ranges::min(factors), std::ranges::max(factors))
               : "by " + core::shortest(typed[i]);
      all.push_back(
          {fmt::format("{}s_scaled{}", lines.what, each ? "" : "=" + core::shortest(typed[i])),
           fmt::format("{}s_scaled", lines.what),
           fmt::format("{}: {} {} multiplied {}, and the others are right", evidence.port, lines_text(others, lines),
                       others.size() == 1 ? "is" : "are", times),
           "Look for a scale that is indexed wrongly or applied twice there, and for a tail that is computed in "
           "another way.",
           std::move(trial)});
      all.back().is_fitted = each || i + 1 == typed.size();
      all.back().is_measured = true;
      all.back().shared_cause = fmt::format("some {}s of {} are scaled", lines.what, evidence.port);
    }
  }
  return all;
}

constexpr std::array kRows = {CatalogueRow{"rows_scaled=NUMBER, columns_scaled=NUMBER",
                                           "a few rows or columns that were multiplied by something", &some_scaled,
                                           Stage::last_resort, true}};

}  // namespace

std::span<const CatalogueRow> scaled_line_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
