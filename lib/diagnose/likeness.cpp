#include "diagnose/likeness.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace numcheck::diagnose {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 20;  // numbers that are looked at
constexpr std::size_t kFewValues = 16;

struct Moments {
  double count = 0, sum = 0, sum_abs = 0, sum_squares = 0, sum_fourth = 0, beside = 0, pairs = 0, below = 0,
         columns = 0;
  double lowest = std::numeric_limits<double>::infinity();
  double highest = -std::numeric_limits<double>::infinity();
  std::vector<double> values;  ///< different ones, up to kFewValues + 1
};

void add(Moments& m, double x) {
  m.count += 1;
  m.sum += x;
  m.sum_abs += std::abs(x);
  m.sum_squares += x * x;
  m.sum_fourth += x * x * x * x;
  m.lowest = std::min(m.lowest, x);
  m.highest = std::max(m.highest, x);
  if (m.values.size() <= kFewValues && std::ranges::find(m.values, x) == m.values.end()) {
    m.values.push_back(x);
  }
}

Moments measure(std::span<const double> numbers, std::size_t cols) {
  Moments m;
  cols = std::clamp<std::size_t>(cols, 1, std::max<std::size_t>(numbers.size(), 1));
  // Whole rows, so that neighbours are neighbours.
  const std::size_t rows = numbers.size() / cols;
  const std::size_t step = std::max<std::size_t>(numbers.size() / kMost, 1);
  for (std::size_t row = 0; row < rows; row += step) {
    for (std::size_t col = 0; col < cols; ++col) {
      const double x = numbers[row * cols + col];
      if (!std::isfinite(x)) {
        continue;
      }
      add(m, x);
      if (col + 1 < cols && std::isfinite(numbers[row * cols + col + 1])) {
        m.beside += x * numbers[row * cols + col + 1];
        m.pairs += 1;
      }
      if (row + 1 < rows && std::isfinite(numbers[(row + 1) * cols + col])) {
        m.below += x * numbers[(row + 1) * cols + col];
        m.columns += 1;
      }
    }
  }
  return m;
}

data::Distribution with(std::string_view name, std::vector<op::Value> params) {
  data::Distribution distribution = data::make_distribution(name);
  std::ranges::copy(params, distribution.params.begin());
  return distribution;
}

}  // namespace

data::Distribution likeness(std::span<const double> numbers, std::size_t cols) {
  const Moments m = measure(numbers, cols);
  if (m.count < 2 || m.sum_squares == 0) {
    return data::make_distribution("normal");
  }
  if (m.lowest == m.highest) {
    return with("constant", {m.lowest});
  }
  if (m.values.size() <= kFewValues) {
    return data::make_distribution("signs");
  }
  const double mean = m.sum / m.count;
  const double variance = std::max(m.sum_squares / m.count - mean * mean, 0.0);
  constexpr double kHeavy = 12;   // fourth moment over the square of the second: 3 of normal numbers
  constexpr double kAgree = 0.2;  // correlation of neighbours that random numbers of a tensor do not reach
  const double tails = m.sum_fourth / m.sum_squares * m.count / m.sum_squares;
  const auto agreement = [&](double products, double pairs) {
    return pairs > 0 && variance > 0 ? std::abs(products / pairs - mean * mean) / variance : 0;
  };
  constexpr double kAlike = 0.8;  // each is much like the one before, or its opposite: partial sums grow and fall
  if (std::max(agreement(m.beside, m.pairs), agreement(m.below, m.columns)) > kAlike) {
    return data::make_distribution("structured");
  }
  if (tails > kHeavy || agreement(m.beside, m.pairs) > kAgree || agreement(m.below, m.columns) > kAgree) {
    return data::make_distribution("activations");
  }
  if (m.lowest >= 0 || m.highest <= 0) {
    return with("uniform", {m.lowest, m.highest});
  }
  constexpr double kSigmas = 4;
  const bool has_mean = std::abs(mean) > kSigmas * std::sqrt(variance / m.count);
  return has_mean ? with("large_mean", {mean, std::sqrt(variance)}) : data::make_distribution("normal");
}

}  // namespace numcheck::diagnose
