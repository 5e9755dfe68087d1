#include "op/fp8_recipe.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cancel.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "data/delayed_scaling.hpp"
#include "data/scaling.hpp"
#include "reference/amax_course.hpp"
#include "reference/mistake_list.hpp"
#include "reference/references.hpp"
#include "reference/scaling_loss.hpp"

namespace numcheck::reference {
namespace {

/// Where a case's numbers are: scales are counted through all modules.
struct Places {
  explicit Places(const op::Fp8RecipeParams& p)
      : tensors(static_cast<std::size_t>(p.tensors)),
        history(static_cast<std::size_t>(p.history)),
        scales(static_cast<std::size_t>(p.scales())) {}

  [[nodiscard]] std::size_t remembered(std::size_t scale, std::size_t slot) const {
    return (scale / tensors * history + slot) * tensors + scale % tensors;
  }
  [[nodiscard]] std::size_t used(std::size_t step, std::size_t scale) const { return step * scales + scale; }

  std::size_t tensors, history, scales;
};

std::vector<float> history_of(const op::Operand& history, const Places& places, std::size_t scale) {
  std::vector<float> amaxes(places.history);
  for (std::size_t slot = 0; slot < places.history; ++slot) {
    amaxes[slot] = static_cast<float>(history.data[places.remembered(scale, slot)]);
  }
  return amaxes;
}

void derive_history(const op::Fp8RecipeParams& p, std::span<double> values) {
  const AmaxCourse course(p);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    values[i] = course.remembered(values[i], at / p.tensors % p.history, at % p.tensors);
  }
}

/// 1, or what the update that ended the earlier series made of its history.
void derive_scale(const op::Fp8RecipeParams& p, const op::Operand& history, std::span<double> values) {
  const Places places(p);
  const AmaxCourse course(p);
  const data::DelayedScaling rules = data::delayed_scaling_of(p);
  for (std::size_t scale = 0; scale < values.size(); ++scale) {
    values[scale] = 1;
    if (course.keeps_scale()) {
      std::vector<float> amaxes = history_of(history, places, scale);
      std::swap(amaxes.front(), amaxes.back());  // as it was before the roll
      if (p.history == 1) {
        amaxes.front() = static_cast<float>(course.level(0));  // of which the roll has left nothing
      }
      data::ScalingState state(std::move(amaxes), 1);
      state.update(rules);
      values[scale] = static_cast<double>(state.scale());
    }
  }
}

void derive_amaxes(const op::Fp8RecipeParams& p, const op::Operand& history, std::span<double> values) {
  const Places places(p);
  const AmaxCourse course(p);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t step = i / places.scales, scale = i % places.scales;
    values[i] = course.amax(values[i], static_cast<std::int64_t>(step), static_cast<std::int64_t>(i));
    if (step == 0) {
      values[i] = std::fmax(values[i], history.data[places.remembered(scale, 0)]);
    }
  }
}

void derive_reduced(const op::Fp8RecipeParams& p, const op::Operand& amaxes, std::span<double> values) {
  const Places places(p);
  const AmaxCourse course(p);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t step = i / places.scales, others = i + values.size();  // numbered after this rank's
    values[i] = p.second_rank ? std::fmax(amaxes.data[i], course.amax(values[i], static_cast<std::int64_t>(step),
                                                                      static_cast<std::int64_t>(others)))
                              : amaxes.data[i];
  }
}

void derive(const op::DeriveRequest& request, std::span<double> values) {
  const auto p = op::from_params<op::Fp8RecipeParams>(*request.params);
  if (values.empty()) {
    return;
  }
  if (request.port->name == "history") {
    derive_history(p, values);
  } else if (request.port->name == "scale") {
    derive_scale(p, op::operand_named(request.inputs, "history"), values);
  } else if (request.port->name == "amaxes") {
    derive_amaxes(p, op::operand_named(request.inputs, "history"), values);
  } else if (request.port->name == "reduced") {
    derive_reduced(p, op::operand_named(request.inputs, "amaxes"), values);
  } else {
    throw core::InternalError("fp8_recipe does not derive " + std::string(request.port->name));
  }
}

op::OutputValues exact_output(std::string_view port, std::size_t elements) {
  op::OutputValues out;
  out.port = port;
  out.value = core::Buffer<double>(elements);
  out.bit_exact = true;
  return out;
}

op::Values series(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::Fp8RecipeParams>(*request.params);
  const op::Operand& amaxes = op::operand_named(request.inputs, "amaxes");
  const op::Operand* reduced = op::find_operand(request.inputs, "reduced");
  const op::Operand& history = op::operand_named(request.inputs, "history");
  const op::Operand& first = op::operand_named(request.inputs, "scale");
  const Places places(p);
  const data::DelayedScaling rules = data::delayed_scaling_of(p);
  const auto steps = static_cast<std::size_t>(p.steps);
  op::OutputValues scales = exact_output("scales", (steps + 1) * places.scales);
  op::OutputValues inverses = exact_output("scale_invs", steps * places.scales);
  op::OutputValues new_history = exact_output("new_history", places.history * places.scales);
  core::parallel_for(places.scales, [&](std::size_t scale) {
    data::ScalingState state(history_of(history, places, scale), static_cast<float>(first.data[scale]));
    for (std::size_t step = 0; step < steps; ++step) {
      core::throw_if_cancelled();  // a step takes as long as its history is
      const std::size_t at = places.used(step, scale);
      scales.value[at] = static_cast<double>(state.scale());
      inverses.value[at] = static_cast<double>(data::scale_inverse(state.scale()));
      state.record(static_cast<float>(amaxes.data[at]));
      state.update(rules, reduced == nullptr ? std::nullopt : std::optional(static_cast<float>(reduced->data[at])));
    }
    for (std::size_t slot = 0; slot < places.history; ++slot) {
      new_history.value[places.remembered(scale, slot)] = static_cast<double>(state.history()[slot]);
    }
    scales.value[places.used(steps, scale)] = static_cast<double>(state.scale());
  });
  op::Values result;
  result.outputs.push_back(std::move(scales));
  result.outputs.push_back(std::move(inverses));
  result.outputs.push_back(std::move(new_history));
  return result;
}

std::vector<op::Mistake> mistakes(const op::Params& params, const op::Mode&) {
  using P = op::Fp8RecipeParams;
  Mistakes<P> list(params);
  if (list.p.algorithm == "max") {
    list.add("most_recent_amax", "the largest amax from the most recent one",
             [](P& p) { p.algorithm = "most_recent"; });
  } else {
    list.add("largest_amax", "the most recent amax from the largest one", [](P& p) { p.algorithm = "max"; });
  }
  if (list.p.margin != 0) {
    list.add("margin_sign", "the margin from its negative", [](P& p) { p.margin = -p.margin; });
  }
  list.add("idle_mistaken", "how one kernel treats tensors without an amax from how the other does",
           [](P& p) { p.kernel = p.reduces() ? "single" : "after_reduction"; });
  return list.take();
}

}  // namespace

op::Reference fp8_recipe_reference() {
  op::Reference reference;
  reference.values = &series;
  reference.derive = &derive;
  reference.findings = &scaling_findings;
  reference.mistakes = &mistakes;
  reference.version = "fp8_recipe-1";
  reference.defines_bits = true;
  return reference;
}

}  // namespace numcheck::reference
