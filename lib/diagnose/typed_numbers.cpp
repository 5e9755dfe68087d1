#include "diagnose/typed_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include <fmt/format.h>

namespace numcheck::diagnose {
namespace {

constexpr double kDecimal = 0.02;  // of one to three digits: what a noisy fit gives

double with_digits(double x, int digits) {
  return std::strtod(fmt::format("{:.{}g}", x, digits).c_str(), nullptr);
}

}  // namespace

std::vector<double> typed_near(double x, double near) {
  if (x == 0 || !std::isfinite(x)) {
    return x == 0 ? std::vector<double>{0.0} : std::vector<double>{};
  }
  std::vector<double> numbers;
  const double magnitude = std::abs(x);
  const auto add = [&](double number, double within) {
    const bool is_near = std::abs(number - magnitude) <= within * magnitude;
    if (is_near && number > 0 && std::ranges::find(numbers, std::copysign(number, x)) == numbers.end()) {
      numbers.push_back(std::copysign(number, x));
    }
  };
  const auto root_near = [](double y) { return std::sqrt(std::round(y * y)); };
  // Inverses and roots of large numbers lie everywhere, so that they say nothing.
  constexpr double kMost = 1024;
  add(with_digits(magnitude, 1), kDecimal);
  add(std::exp2(std::round(std::log2(magnitude))), near);
  add(std::round(magnitude), near);
  add(std::numbers::log2e, near);
  add(std::numbers::ln2, near);
  if (1 / magnitude < kMost) {
    add(1 / std::round(1 / magnitude), near);
    add(1 / root_near(1 / magnitude), near);
    add(1 / with_digits(1 / magnitude, 1), near);  // temperatures: scores are divided by them
  }
  if (magnitude < kMost) {
    add(root_near(magnitude), near);
  }
  add(with_digits(magnitude, 2), kDecimal);
  add(with_digits(magnitude, 3), kDecimal);
  if (1 / magnitude < kMost) {
    add(1 / with_digits(1 / magnitude, 2), near);
  }
  add(with_digits(magnitude, kFittedDigits), kDecimal);
  return numbers;
}

}  // namespace numcheck::diagnose
