#include "diagnose/orientation.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace numcheck::diagnose {
namespace {

/// Switches that exchange dimensions, and that leave every given tensor its shape.
std::vector<std::size_t> open_switches(const Subject& subject, const ChosenParams& chosen) {
  const plan::Case& c = subject.c;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < c.params.size(); ++i) {
    const op::Field& field = c.op->fields()[i];
    if (!field.name.starts_with("trans_") || field.kind != op::FieldKind::boolean || chosen.contains(field.name)) {
      continue;
    }
    op::Params turned = c.params;
    turned[i] = !std::get<bool>(c.params[i]);
    bool same = c.op->check(turned, *c.mode).empty();
    const std::vector<op::Port> before = c.op->ports(c.params, *c.mode);
    for (const op::Port& port : same ? c.op->ports(turned, *c.mode) : std::vector<op::Port>()) {
      const op::Port* known = op::find_port(before, port.name);
      same = same && known != nullptr && known->rows == port.rows && known->cols == port.cols;
    }
    if (same) {
      open.push_back(i);
    }
  }
  return open;
}

/// Cosine of the angle between what is expected of the first given output and what is delivered.
double likeness_of(const Subject& subject, const Trial& trial) {
  constexpr double kFlops = 2e8;
  const Expected expected = expect(subject, trial, kFlops);
  for (const op::OutputValues& output : expected.values.outputs) {
    if (!subject.outputs.contains(output.port)) {
      continue;
    }
    const core::Buffer<double> delivered = delivered_numbers(subject, output.port);
    double product = 0, squares = 0, delivered_squares = 0;
    for (std::size_t i = 0; i < output.value.size(); ++i) {
      const double y = output.value[i];
      const double d = delivered[expected.sample.all() ? i : static_cast<std::size_t>(expected.sample.indices[i])];
      if (std::isfinite(y) && std::isfinite(d)) {
        product += y * d;
        squares += y * y;
        delivered_squares += d * d;
      }
    }
    return squares > 0 && delivered_squares > 0 ? std::abs(product) / std::sqrt(squares * delivered_squares) : 0;
  }
  return 0;
}

}  // namespace

std::vector<std::string> settle_orientation(Subject& subject, const ChosenParams& chosen) {
  const std::vector<std::size_t> open = open_switches(subject, chosen);
  constexpr double kAlike = 0.9, kUnlike = 0.5;
  std::vector<std::string> turned;
  if (open.empty() || likeness_of(subject, as_declared(subject)) > kUnlike) {
    return turned;
  }
  for (std::size_t bits = 1; bits < (std::size_t{1} << open.size()); ++bits) {
    Trial trial = as_declared(subject);
    for (std::size_t i = 0; i < open.size(); ++i) {
      if ((bits >> i & 1U) != 0) {
        trial.c.params[open[i]] = !std::get<bool>(trial.c.params[open[i]]);
      }
    }
    if (likeness_of(subject, trial) < kAlike) {
      continue;
    }
    for (std::size_t i = 0; i < open.size(); ++i) {
      if ((bits >> i & 1U) != 0) {
        turned.push_back(fmt::format("{} = {}: the shapes fit both ways, the numbers only this one",
                                     subject.c.op->fields()[open[i]].name,
                                     std::get<bool>(trial.c.params[open[i]]) ? "true" : "false"));
      }
    }
    subject.c = std::move(trial.c);
    return turned;
  }
  return turned;
}

}  // namespace numcheck::diagnose
