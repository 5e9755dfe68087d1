#include "op/amax.hpp"

#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/dtype.hpp"
#include "reference/casts.hpp"
#include "reference/exact_output.hpp"
#include "reference/mistake_list.hpp"
#include "reference/references.hpp"
#include "reference/scale_rule.hpp"

namespace numcheck::reference {
namespace {

op::OutputValues number(std::string_view port, double value) {
  op::OutputValues out = exact_output(port, 1);
  out.value[0] = value;
  return out;
}

ScaleRule rule_of(const op::AmaxParams& p) {
  return {.codes = core::parse_dtype(p.format).value_or(core::Dtype::fp8_e4m3),
          .epsilon = static_cast<float>(p.epsilon),
          .power_of_two = p.power_of_two,
          .at_overflow = std::numeric_limits<float>::max()};
}

/// `largest`: the maximum that is taken.
op::Values values_by(const op::ReferenceRequest& request, double (*largest)(std::span<const double>)) {
  const auto p = op::from_params<op::AmaxParams>(*request.params);
  const op::Operand& x = op::operand_named(request.inputs, "x");
  const double amax = largest({x.data, x.elements()});
  op::Values result;
  result.outputs.push_back(number("amax", amax));
  if (p.has_scale()) {
    result.outputs.push_back(number("scale", static_cast<double>(rule_of(p).scale_for(amax))));
  }
  return result;
}

op::Values values(const op::ReferenceRequest& request) {
  return values_by(request, &amax_of);
}

op::Values values_of_signed_maximum(const op::ReferenceRequest& request) {
  return values_by(request, &largest_value);
}

std::vector<op::Mistake> mistakes(const op::Params& params, const op::Mode&) {
  using P = op::AmaxParams;
  Mistakes<P> list(params);
  list.add_instead("signed_maximum", "the largest magnitude from the largest number", &values_of_signed_maximum);
  if (!list.p.has_scale()) {
    return list.take();
  }
  list.add("other_format", "the largest number of the format from that of the other FP8 format",
           [](P& p) { p.format = p.format == "fp8_e4m3" ? "fp8_e5m2" : "fp8_e4m3"; });
  if (list.p.epsilon > 0) {
    list.add("epsilon_ignored", "epsilon from 0", [](P& p) { p.epsilon = 0; });
  }
  if (list.p.power_of_two) {
    list.add("power_of_two_ignored", "a scale that is a power of two from others",
             [](P& p) { p.power_of_two = false; });
  } else {
    list.add("power_of_two_added", "the scale from one rounded down to a power of two",
             [](P& p) { p.power_of_two = true; });
  }
  return list.take();
}

}  // namespace

op::Reference amax_reference() {
  op::Reference reference;
  reference.values = &values;
  reference.mistakes = &mistakes;
  reference.version = "amax-1";
  reference.defines_bits = true;
  return reference;
}

}  // namespace numcheck::reference
