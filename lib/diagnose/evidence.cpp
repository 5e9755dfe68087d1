#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/dtype.hpp"
#include "diagnose/hypothesis.hpp"

namespace numcheck::diagnose {

op::Port port_of(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  return op::port_named(c.op->ports(c.params, *c.mode), evidence.port);
}

decltype(Trial::then) change_of(const Evidence& evidence, ChangeOutput change) {
  return
      [port = std::string(evidence.port), change = std::move(change)](op::Values& values, op::Yardsticks& yardsticks) {
        const auto output = std::ranges::find(values.outputs, port, &op::OutputValues::port);
        const auto yardstick = std::ranges::find(yardsticks.outputs, port, &op::OutputYardsticks::port);
        if (output != values.outputs.end()) {
          change(*output, yardstick == yardsticks.outputs.end() ? nullptr : &*yardstick);
        }
      };
}

std::optional<double> factor_of_output(const Evidence& evidence, double least) {
  double product = 0, square = 0, delivered = 0;
  for (std::size_t i = 0; i < evidence.delivered.size(); ++i) {
    const double y = evidence.values.value[i], d = evidence.delivered[i];
    if (std::isfinite(y) && std::isfinite(d)) {
      product += d * y;
      square += y * y;
      delivered += d * d;
    }
  }
  return product * product > least * square * delivered ? std::optional(product / square) : std::nullopt;
}

void expect_instead(op::OutputValues& output, std::size_t i, double y) {
  const double before = std::abs(output.value[i]);
  const double growth = before > 0 && std::isfinite(y) ? std::abs(y) / before : 1;
  const bool was_special = !std::isfinite(output.value[i]) && std::isfinite(y);
  for (core::Buffer<float>* errors : {&output.magnitude, &output.deviation}) {
    if (errors->empty()) {
      continue;
    }
    if (was_special) {
      (*errors)[i] = 0;  // that of NaN says nothing
    } else if (growth > 1) {
      (*errors)[i] = static_cast<float>(static_cast<double>((*errors)[i]) * growth);
    }
  }
  output.value[i] = y;
}

void allow_rounding(op::OutputValues& output, std::size_t i, core::Dtype dtype) {
  if (!std::isfinite(output.value[i]) || output.magnitude.empty() || output.deviation.empty()) {
    return;
  }
  const double half = 0.5 * core::ulp(output.value[i], dtype);
  output.magnitude[i] += static_cast<float>(half);
  output.deviation[i] = std::hypot(output.deviation[i], static_cast<float>(half / std::numbers::sqrt3));
}

decltype(Trial::then) change_each(const Evidence& evidence, std::function<double(double)> change) {
  return change_of(evidence, [change = std::move(change)](op::OutputValues& output, op::OutputYardsticks* yardsticks) {
    for (std::size_t i = 0; i < output.value.size(); ++i) {
      const double before = output.value[i], y = change(before);
      if (std::isfinite(before)) {
        output.value[i] = y;
      } else if (!(std::isnan(before) && std::isnan(y))) {
        expect_instead(output, i, y);
        for (core::Buffer<float>* errors : yardsticks == nullptr
                                               ? std::array<core::Buffer<float>*, 2>{}
                                               : std::array{&yardsticks->magnitude, &yardsticks->deviation}) {
          if (errors != nullptr && !errors->empty()) {
            (*errors)[i] = 0;
          }
        }
      }
    }
  });
}

}  // namespace numcheck::diagnose
