#include "diagnose/glance.hpp"

#include <algorithm>
#include <cmath>

#include "core/cancel.hpp"
#include "core/codec.hpp"
#include "core/error.hpp"

namespace numcheck::diagnose {
namespace {

bool is_costly(const Subject& subject) {
  const op::Op& op = *subject.c.op;
  return op.multiplies_matrices && prepare::find_row(subject.catalog, op.name)->reference.tracked();
}

/// Whether it says nothing but other results.
bool is_of_values(const Subject& subject, const Trial& trial) {
  return trial.c.mode == subject.c.mode && !trial.ran.has_value() && !trial.conversion.has_value() &&
         trial.stored.empty() &&
         trial.rounding == (subject.known == nullptr ? subject.ran.rounding : subject.known->rounding);
}

}  // namespace

Glance::Glance(const Evidence& evidence, bool at_any)
    : evidence_(evidence),
      port_(port_of(evidence)),
      scale_(output_scale(evidence.subject, evidence.port)),
      looks_((at_any || is_costly(evidence.subject)) && !evidence.values.unpredictable) {
  if (looks_) {
    expected_ = distance_to(evidence.values.value.span());
  }
}

Glance::Distance Glance::distance_to(std::span<const double> y) const {
  const core::Overflow overflow = core::is_fp8(port_.dtype) ? core::Overflow::saturate : core::Overflow::ieee;
  Distance found;
  double product = 0, d_square = 0, y_square = 0, count = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double d = evidence_.delivered[i];
    if (!std::isfinite(d) || !std::isfinite(y[i])) {
      found.broken += std::isfinite(d) == std::isfinite(y[i]) ? 0 : 1;
      continue;
    }
    found.equal += core::round_to(y[i] * scale_, port_.dtype, overflow) == d * scale_ ? 1 : 0;
    found.square += (d - y[i]) * (d - y[i]);
    product += d * y[i];
    d_square += d * d;
    y_square += y[i] * y[i];
    count += 1;
  }
  found.square = count > 0 ? found.square / count : 0;
  found.cosine = product / std::sqrt(d_square * y_square);
  return found;
}

std::optional<Explanation> Glance::dismissed(const Hypothesis& hypothesis, const Declared& declared,
                                             double flops) const {
  if (!looks_ || !is_of_values(evidence_.subject, hypothesis.trial)) {
    return std::nullopt;
  }
  try {
    const Expected expected = expect(evidence_.subject, hypothesis.trial, flops);
    const auto values = std::ranges::find(expected.values->outputs, evidence_.port, &op::OutputValues::port);
    if (values == expected.values->outputs.end() || values->value.size() != evidence_.delivered.size()) {
      return std::nullopt;
    }
    const Distance found = distance_to(values->value.span());
    constexpr double kSomething = 0.02;
    const auto of = static_cast<std::uint64_t>(evidence_.delivered.size());
    if (found.square < (1 - kSomething) * expected_.square || gains_bits(found.equal, expected_.equal, of) ||
        found.broken < expected_.broken) {
      return std::nullopt;
    }
    Explanation result = unjudged_explanation(hypothesis);
    result.failing = "it explains nothing";
    result.of = of;
    result.equal_bits = found.equal;
    const double square = found.square * scale_ * scale_;  // errors are those of codes
    result.rms_left = std::sqrt(square);
    result.cosine = found.cosine;
    result.share = found.broken == 0 && declared.rms_error > 0 ? 1 - square / std::pow(declared.rms_error, 2) : 0;
    return result;
  } catch (const core::Cancelled&) {
    throw;
  } catch (const core::Error&) {
    return std::nullopt;  // the judge says why
  }
}

}  // namespace numcheck::diagnose
