#include "diagnose/one_pass.hpp"

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/likeness.hpp"

namespace numcheck::diagnose {
namespace {

bool is_output(const op::Port& port) {
  return port.role == op::Role::output || port.role == op::Role::amax;
}

/// The parameters of a pass if what it reads of other passes is given to it: as if nothing ran before it.
op::Params alone(const op::Pass& pass) {
  op::Params params = pass.params;
  // What makes ops run others before them, and the seed of what these draw.
  constexpr std::array<std::string_view, 3> kFields = {"dropout_mask", "rng_seed", "statistics"};
  for (const std::string_view field : kFields) {
    const auto index = op::field_index(*pass.op, field);
    if (index.has_value() && pass.op->passes != nullptr) {
      params[*index] = pass.op->fields()[*index].fallback;
    }
  }
  return params;
}

/// The pass that has the port as an output that it does not read.
std::optional<op::Pass> pass_that_left(const plan::Case& c, std::string_view port) {
  for (op::Pass& pass : op::passes_of(*c.op, c.params)) {
    pass.params = alone(pass);
    const std::vector<op::Port> ports = pass.op->ports(pass.params, *c.mode);
    if (const op::Port* found = op::find_port(ports, port); found != nullptr && is_output(*found)) {
      return std::move(pass);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Subject> one_pass(const Subject& subject, std::string_view port) {
  std::optional<op::Pass> pass = pass_that_left(subject.c, port);
  if (!pass.has_value() || !pass->op->check(pass->params, *subject.c.mode).empty() ||
      !op::passes_of(*pass->op, pass->params).empty()) {
    return std::nullopt;
  }
  Subject alone = subject;
  alone.c.op = pass->op;
  alone.c.params = std::move(pass->params);
  alone.outputs.clear();
  const std::vector<op::Port> all = subject.c.op->ports(subject.c.params, *subject.c.mode);
  for (const op::Port& own : alone.c.op->ports(alone.c.params, *alone.c.mode)) {
    const auto given = subject.outputs.find(own.name);
    if (is_output(own)) {
      if (given != subject.outputs.end()) {
        alone.outputs.insert(*given);
      }
      continue;
    }
    if (subject.inputs.has(own)) {
      continue;
    }
    const op::Port* left = op::find_port(all, own.name);
    if (left != nullptr && left->passed_on && given == subject.outputs.end()) {
      return std::nullopt;
    }
    if (left != nullptr && left->passed_on) {
      auto numbers = std::make_shared<core::Buffer<double>>(delivered_numbers(subject, own.name));
      alone.c.inputs.ports[std::string(own.name)] = likeness(numbers->span(), static_cast<std::size_t>(own.cols));
      alone.inputs.set(std::string(own.name), std::move(numbers));
    }
  }
  return alone;
}

}  // namespace numcheck::diagnose
