#include "diagnose/scale_facts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace numcheck::diagnose {
namespace {

/// What is expected of an output with that scale; null if nothing is.
std::shared_ptr<const op::Values> expected_with(const Evidence& evidence, const op::Port& scale, double number) {
  constexpr double kFlops = 2e9;
  Trial trial = as_declared(evidence.subject);
  trial.inputs.set(std::string(scale.name), one_number(number));
  return expect(evidence.subject, trial, kFlops).values;
}

const op::OutputValues* output_of(const op::Values& values, std::string_view port) {
  const auto found = std::ranges::find(values.outputs, port, &op::OutputValues::port);
  return found == values.outputs.end() ? nullptr : &*found;
}

/// The scale that quantize's codes are made with; it follows from x if it is not given.
std::optional<Scale> scale_of_codes(const Evidence& evidence, const op::Port& port) {
  const Subject& subject = evidence.subject;
  Scale scale{port, std::string(evidence.port), 1, subject.inputs.has(port), AppliedTo::stored};
  if (scale.is_given) {
    scale.number = (*subject.inputs.of(port))[0];
    return scale;
  }
  const Expected expected = expect(subject, as_declared(subject), 1);
  const op::OutputValues* inverse = output_of(*expected.values, "scale_inv");
  if (inverse == nullptr) {
    return std::nullopt;
  }
  scale.number = as_float(1 / inverse->value[0]);
  return scale;
}

/// scale_inv of quantize is as declared where it is right by itself: then only the codes are of another scale.
decltype(Trial::then) with_inverse_of(const Evidence& evidence, const Scale& scale) {
  const double declared = as_float(1 / as_float(scale.number));
  if (evidence.subject.c.op->name != "quantize" || given_output(evidence.subject, "scale_inv") != declared) {
    return {};
  }
  return [declared](op::Values& values, op::Yardsticks&) {
    const auto inverse = std::ranges::find(values.outputs, "scale_inv", &op::OutputValues::port);
    if (inverse != values.outputs.end()) {
      inverse->value[0] = declared;
    }
  };
}

/// Elements of the output for a scale of 1, before they are rounded to its format, and the numbers that are stored.
struct ByUnit {
  core::Buffer<double> expected, stored;
};

/// A power of two so small that nothing saturates.
double harmless_scale(const core::Buffer<double>& x) {
  double largest = 0;
  for (const double number : x.span()) {
    largest = std::isfinite(number) ? std::max(largest, std::abs(number)) : largest;
  }
  return largest > 0 ? std::exp2(-std::ceil(std::log2(largest))) : 1;
}

ByUnit by_unit(const Evidence& evidence, const Scale& scale) {
  const Subject& subject = evidence.subject;
  ByUnit result{core::Buffer<double>(evidence.delivered.size()), core::Buffer<double>(evidence.delivered.size())};
  std::ranges::copy(evidence.delivered, result.stored.data());
  if (scale.port.role == op::Role::scale && scale.when == AppliedTo::stored) {
    std::ranges::copy(evidence.values.value.span(), result.expected.data());
    for (double& code : result.stored.span()) {  // what is delivered was divided by it
      code *= scale.number;
    }
    return result;
  }
  const std::vector<op::Port> ports = subject.c.op->ports(subject.c.params, *subject.c.mode);
  const double unit =
      scale.when == AppliedTo::operand ? 1 : harmless_scale(*subject.inputs.of(op::port_named(ports, "x")));
  const std::shared_ptr<const op::Values> values = expected_with(evidence, scale.port, unit);
  const op::OutputValues* output = output_of(*values, evidence.port);
  for (std::size_t i = 0; output != nullptr && i < result.expected.size(); ++i) {
    result.expected[i] = output->value[i] / unit;
  }
  return result;
}

}  // namespace

double as_float(double x) {
  return static_cast<double>(static_cast<float>(x));
}

bool is_scale(double x) {
  return x > 0 && as_float(x) > 0 && std::isfinite(as_float(x));
}

prepare::SharedDoubles one_number(double x) {
  auto number = std::make_shared<core::Buffer<double>>(1);
  (*number)[0] = x;
  return number;
}

std::optional<double> given_output(const Subject& subject, std::string_view port) {
  const bool is_given = subject.outputs.contains(port);
  return is_given ? std::optional(delivered_numbers(subject, port)[0]) : std::nullopt;
}

std::vector<Scale> scales_of(const Evidence& evidence) {
  const Subject& subject = evidence.subject;
  const op::Op& op = *subject.c.op;
  const std::vector<op::Port> ports = op.ports(subject.c.params, *subject.c.mode);
  std::vector<Scale> all;
  if (port_of(evidence).elements() < 2 || op.name.starts_with("attention")) {
    return all;
  }
  for (const op::Port& port : ports) {
    if (op.name == "quantize" && port.name == "scale") {
      if (std::optional<Scale> scale = scale_of_codes(evidence, port); scale.has_value()) {
        all.push_back(*std::move(scale));
      }
    } else if (port.role == op::Role::scale && port.elements() == 1) {
      const op::Port* of = op::find_port(ports, port.of);
      const bool is_of_operand = of != nullptr && of->role == op::Role::input;
      const double number = static_cast<double>(subject.inputs.number(port).value_or(1));
      if (is_of_operand || port.of == evidence.port) {
        all.push_back({port, std::string(port.of), number, subject.inputs.has(port),
                       is_of_operand ? AppliedTo::operand : AppliedTo::stored});
      }
    }
  }
  std::erase_if(all, [](const Scale& scale) { return !is_scale(scale.number); });
  return all;
}

Hypothesis with_scale(const Evidence& evidence, const Scale& scale, double number, std::string name,
                      std::string cause) {
  Trial trial = as_declared(evidence.subject);
  trial.inputs.set(std::string(scale.port.name), one_number(as_float(number)));
  trial.then = with_inverse_of(evidence, scale);
  if (trial.then) {
    cause += "; scale_inv is that of the declared one, so that dequantised values are off by that factor";
  }
  return {
      std::move(name),
      {},
      std::move(cause),
      scale.when == AppliedTo::stored
          ? "Codes and scale_inv must be of one scale: look for one of an earlier step (a stale amax), of another "
            "tensor, 1 / scale for scale, and for a cast that applies it once more. If it is right, give that scale."
          : "Look at which descale is given for which tensor, and whether somebody applies it "
            "beforehand or afterwards.",
      std::move(trial)};
}

std::optional<ScaleRange> range_of(const Evidence& evidence, const Scale& scale) {
  constexpr double kMost = 0.5;
  if (scale.when == AppliedTo::operand && evidence.subject.c.op->multiplies_matrices) {
    return std::nullopt;
  }
  const ByUnit numbers = by_unit(evidence, scale);
  const std::optional<ScaleRange> range =
      scale_range(numbers.expected.span(), numbers.stored.span(), port_of(evidence).dtype);
  const bool agrees = range.has_value() && static_cast<double>(range->fitting) > kMost * static_cast<double>(range->of);
  return agrees ? range : std::nullopt;
}

}  // namespace numcheck::diagnose
