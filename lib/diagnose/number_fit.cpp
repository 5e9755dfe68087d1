#include "diagnose/number_fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "op/field.hpp"

namespace numcheck::diagnose {
namespace {

constexpr double kFitFlops = 2e9;      // of a reference that a fit computes, if the op computes parts
constexpr double kAllFitFlops = 4e11;  // of all of them

/// The formula with other numbers in one field, and how far the output is from what it gives.
class Formula {
 public:
  struct Point {
    double x = 0;
    Expected expected;
    std::span<const double> y;  ///< of the output; empty if it cannot be compared
    double square = 0;          ///< of the distance, over finite elements
  };

  Formula(const Evidence& evidence, std::size_t field)
      : evidence_(evidence), field_(field), trial_(as_declared(evidence.subject)) {
    if (const auto rounding = rounding_field(*trial_.c.op, field); rounding.has_value()) {
      trial_.c.params[*rounding] = std::string("ideal");
    }
    const plan::Case& c = trial_.c;
    const double all = c.op->flops == nullptr ? 1 : std::max(c.op->flops(c.params), 1.0);
    const double each = c.op->name == "gemm" ? std::min(all, kFitFlops) : all;  // others are computed as a whole
    constexpr double kFewest = 4, kMost = 48;
    points_left_ = static_cast<int>(std::clamp(kAllFitFlops / each, kFewest, kMost));
  }

  [[nodiscard]] bool may_go_on() const { return points_left_ > 0; }

  [[nodiscard]] Point at(double x) {
    const op::Field& field = trial_.c.op->fields()[field_];
    --points_left_;
    Point point;
    point.x = std::clamp(x, field.minimum, field.maximum);
    trial_.c.params[field_] = point.x;
    point.expected = expect(evidence_.subject, trial_, kFitFlops);
    for (const op::OutputValues& output : point.expected.values->outputs) {
      if (output.port == evidence_.port && output.value.size() == evidence_.delivered.size()) {
        point.y = output.value.span();
      }
    }
    for (std::size_t i = 0; i < point.y.size(); ++i) {
      const double error = evidence_.delivered[i] - point.y[i];
      point.square += std::isfinite(error) ? error * error : 0;
    }
    return point;
  }

  /// From there to where the output would fit best if the formula were linear; NaN if it does not depend on the number.
  [[nodiscard]] double step_from(const Point& here) {
    constexpr double kDifference = 0x1p-10;
    const Point beside = at(here.x == 0 ? kDifference : here.x * (1 + kDifference));
    double along = 0, length = 0;
    for (std::size_t i = 0; i < std::min(here.y.size(), beside.y.size()); ++i) {
      const double step = beside.y[i] - here.y[i];
      const double error = evidence_.delivered[i] - here.y[i];
      if (std::isfinite(step) && std::isfinite(error)) {
        along += error * step;
        length += step * step;
      }
    }
    return length > 0 ? (beside.x - here.x) * along / length : std::numeric_limits<double>::quiet_NaN();
  }

 private:
  const Evidence& evidence_;
  std::size_t field_;
  Trial trial_;
  int points_left_ = 0;
};

}  // namespace

std::optional<std::size_t> rounding_field(const op::Op& op, std::size_t field) {
  const std::optional<std::size_t> found = op::field_index(op, std::string(op.fields()[field].name) + "_rounding");
  const bool has_ideal =
      found.has_value() && std::ranges::find(op.fields()[*found].choices, "ideal") != op.fields()[*found].choices.end();
  return has_ideal ? found : std::nullopt;
}

double fitted_number(const Evidence& evidence, std::size_t field, double start) {
  constexpr double kSettled = 1e-9, kShorter = 0.25;
  Formula formula(evidence, field);
  Formula::Point here = formula.at(start);
  while (formula.may_go_on()) {
    double step = formula.step_from(here);
    if (!std::isfinite(step)) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    Formula::Point next = formula.at(here.x + step);
    const bool leaves_zero = here.x == 0;  // which often stands for something else: no cap, no limit
    while (!leaves_zero && next.square > here.square && formula.may_go_on() &&
           std::abs(step) > kSettled * std::abs(here.x)) {
      step *= kShorter;
      next = formula.at(here.x + step);
    }
    if (!leaves_zero && !(next.square <= here.square)) {
      break;
    }
    const bool has_settled = std::abs(next.x - here.x) <= kSettled * std::abs(here.x);
    here = std::move(next);
    if (has_settled) {
      break;
    }
  }
  return here.x;
}

}  // namespace numcheck::diagnose
