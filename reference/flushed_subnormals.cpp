#include "reference/flushed_subnormals.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/buffer.hpp"
#include "reference/cause.hpp"

namespace numcheck::reference {
namespace {

constexpr double kLeastNormal = 0x1p-126;
constexpr double kRelative = 0x1p-6;  // more than the rounding of any format but FP8 and what FP32 arithmetic does

double flushed(double x) {
  return std::fabs(x) < kLeastNormal ? 0 : x;
}

/// Copies of the inputs without subnormal numbers.
class Flushed {
 public:
  explicit Flushed(std::span<const op::Operand> inputs) : operands_(inputs.begin(), inputs.end()) {
    for (op::Operand& operand : operands_) {
      core::Buffer<double>& copy = numbers_.emplace_back(operand.elements());
      std::transform(operand.data, operand.data + operand.elements(), copy.span().begin(), flushed);
      operand.data = copy.span().data();
    }
  }
  [[nodiscard]] const std::vector<op::Operand>& operands() const noexcept { return operands_; }

 private:
  std::vector<core::Buffer<double>> numbers_;
  std::vector<op::Operand> operands_;
};

bool is_broken(double got, double expected) {
  return (!std::isfinite(got) || !std::isfinite(expected)) && got != expected &&
         !(std::isnan(got) && std::isnan(expected));
}

/// A result near the least normal number may be flushed or not.
bool is_near(double got, double expected) {
  const double off = std::fabs(got - expected);
  return off <= kRelative * std::fabs(expected) || (got == 0 && std::fabs(expected) < kLeastNormal * (1 + kRelative));
}

struct Count {
  double wrong = 0, explained = 0;
};

}  // namespace

void explain_flushes(const op::FindingRequest& request, op::Values (*values)(const op::ReferenceRequest&),
                     std::vector<op::Finding>& findings) {
  if (!request.sample->all()) {
    return;
  }
  const Flushed inputs(request.inputs);
  const op::Values without =
      values({.params = request.params, .inputs = inputs.operands(), .sample = *request.sample, .values_only = true});
  for (const op::Delivered& output : request.outputs) {
    const auto expected = std::ranges::find(request.expected->outputs, output.port, &op::OutputValues::port);
    const auto other = std::ranges::find(without.outputs, output.port, &op::OutputValues::port);
    if (expected == request.expected->outputs.end() || other == without.outputs.end() ||
        expected->value.size() != output.value.size()) {
      continue;  // an amax, of which only the tensor is expected
    }
    Count numbers, pattern;
    for (std::size_t at = 0; at < output.value.size(); ++at) {
      const double got = output.value[at], y = expected->value[at], alternative = other->value[at];
      if (is_broken(got, y)) {
        pattern.wrong += 1;
        pattern.explained += is_broken(got, alternative) ? 0 : 1;
      } else if (std::isfinite(got) && !(std::fabs(got - y) <= kRelative * std::fabs(y))) {
        numbers.wrong += 1;
        numbers.explained += !is_broken(got, alternative) && is_near(got, alternative) ? 1 : 0;
      }
    }
    const auto add = [&](const Count& count, op::Finding::About about) {
      if (count.explained / count.wrong >= kLeastExplained) {
        findings.push_back(cause_finding("cause", output.port, count.explained / count.wrong,
                                         "subnormal numbers are taken for zero", "what is wrong", about));
      }
    };
    add(numbers, op::Finding::About::numbers);
    add(pattern, op::Finding::About::pattern);
  }
}

}  // namespace numcheck::reference
