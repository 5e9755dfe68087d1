#include "op/multi_tensor_scale.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/dtype.hpp"
#include "core/parallel.hpp"
#include "reference/exact_output.hpp"
#include "reference/mistake_list.hpp"
#include "reference/references.hpp"
#include "reference/scale_rule.hpp"

namespace numcheck::reference {
namespace {

using P = op::MultiTensorScaleParams;

constexpr float kSmallestNormal = std::numeric_limits<float>::min();

bool is_subnormal(float x) {
  return x != 0 && std::fabs(x) < kSmallestNormal;
}

/// What an element is depends on whether subnormal numbers are kept: so far, that they are.
void leave_open(op::OutputValues& output, std::size_t at) {
  const auto first = static_cast<std::int64_t>(at);
  output.open.push_back({first, first + 1});
}

op::Values values(const op::ReferenceRequest& request) {
  const auto p = op::from_params<P>(*request.params);
  const op::Operand& amaxes = op::operand_named(request.inputs, "amaxes");
  const ScaleRule rule{.codes = core::parse_dtype(p.format).value_or(core::Dtype::fp8_e4m3),
                       .epsilon = static_cast<float>(p.epsilon),
                       .power_of_two = p.power_of_two,
                       .at_overflow = std::numeric_limits<float>::max()};
  op::OutputValues scales = exact_output("scales", amaxes.elements());
  op::OutputValues inverses = exact_output("scale_invs", amaxes.elements());
  for (std::size_t i = 0; i < amaxes.elements(); ++i) {
    const double amax = amaxes.data[i];
    const float scale = std::isnan(amax) ? 1 : rule.scale_for(amax);
    const float inverse = 1 / scale;
    scales.value[i] = static_cast<double>(scale);
    inverses.value[i] = static_cast<double>(inverse);
    const bool is_flushed = !std::isnan(amax) && is_subnormal(std::fmax(static_cast<float>(amax), rule.epsilon));
    if (is_flushed) {
      leave_open(scales, i);
    }
    if (is_flushed || is_subnormal(inverse)) {
      leave_open(inverses, i);
    }
  }
  op::Values result;
  result.outputs.push_back(std::move(scales));
  result.outputs.push_back(std::move(inverses));
  return result;
}

const op::Delivered* delivered_as(const op::FindingRequest& request, std::string_view port) {
  const auto found = std::ranges::find(request.outputs, port, &op::Delivered::port);
  return found == request.outputs.end() || found->value.empty() ? nullptr : &*found;
}

/// Elements that a device stores which flushes subnormal numbers: the scale 1 and scale_inv 1 of a flushed amax, or the scale_inv 0.
std::vector<op::Settled> settle(const op::FindingRequest& request) {
  constexpr std::size_t kScales = 0, kInverses = 1;
  const op::Delivered* scales = delivered_as(request, "scales");
  const op::Delivered* inverses = delivered_as(request, "scale_invs");
  std::vector<op::Settled> all;
  const auto elements = [&request](std::size_t output, const auto& visit) {
    for (const op::OutputValues::Range& range : request.expected->outputs[output].open) {
      visit(static_cast<std::size_t>(range.begin));
    }
  };
  std::vector<std::size_t> flushed;
  elements(kScales, [&](std::size_t at) {
    if (scales != nullptr && scales->value[at] == 1) {
      all.push_back({.output = kScales, .element = at, .value = 1});
      flushed.push_back(at);
    }
  });
  elements(kInverses, [&](std::size_t at) {
    if (std::ranges::binary_search(flushed, at)) {
      all.push_back({.output = kInverses, .element = at, .value = 1});
    } else if (inverses != nullptr && inverses->value[at] == 0) {
      all.push_back({.output = kInverses, .element = at, .value = 0});
    }
  });
  return all;
}

std::vector<op::Mistake> mistakes(const op::Params& params, const op::Mode&) {
  Mistakes<P> list(params);
  list.add("other_format", "the largest number of the format from that of the other FP8 format",
           [](P& p) { p.format = p.format == "fp8_e4m3" ? "fp8_e5m2" : "fp8_e4m3"; });
  if (list.p.epsilon > 0) {
    list.add("epsilon_ignored", "epsilon from 0", [](P& p) { p.epsilon = 0; });
  }
  list.add(list.p.power_of_two ? "power_of_two_ignored" : "power_of_two_added", "powers of two from other scales",
           [](P& p) { p.power_of_two = !p.power_of_two; });
  return list.take();
}

void derive(const op::DeriveRequest&, std::span<double> values) {
  for (double& value : values) {
    value = std::fabs(value);
  }
}

}  // namespace

op::Reference multi_tensor_scale_reference() {
  op::Reference reference;
  reference.values = &values;
  reference.derive = &derive;
  reference.mistakes = &mistakes;
  reference.settle = &settle;
  reference.version = "multi_tensor_scale-2";
  reference.defines_bits = true;
  return reference;
}

}  // namespace numcheck::reference
