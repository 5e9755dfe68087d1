#include "diagnose/orientation.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace numcheck::diagnose {
namespace {

/// Whether the case with these parameters has the same tensors.
bool has_same_ports(const plan::Case& c, const op::Params& params) {
  const std::vector<op::Port> before = c.op->ports(c.params, *c.mode);
  const bool is_valid = c.op->check(params, *c.mode).empty();
  const std::vector<op::Port> after = is_valid ? c.op->ports(params, *c.mode) : std::vector<op::Port>();
  return after.size() == before.size() && std::ranges::all_of(after, [&before](const op::Port& port) {
           const op::Port* known = op::find_port(before, port.name);
           return known != nullptr && known->rows == port.rows && known->cols == port.cols &&
                  known->dtype == port.dtype;
         });
}

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
    if (has_same_ports(c, turned)) {
      open.push_back(i);
    }
  }
  return open;
}

/// Cosine of the angle between what is expected of the first given output and what is delivered.
double likeness_of(const Subject& subject, const Trial& trial) {
  constexpr double kFlops = 2e8;
  const Expected expected = expect(subject, trial, kFlops);
  for (const op::OutputValues& output : expected.values->outputs) {
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

std::map<std::string, std::string> settle_choices(Subject& subject, const ChosenParams& chosen) {
  constexpr double kMuchNearer = 0.3;  // of 1 - cosine
  std::map<std::string, std::string> taken;
  for (std::size_t i = 0; i < subject.c.params.size(); ++i) {
    const op::Field& field = subject.c.op->fields()[i];
    const op::Value first = subject.c.params[i];
    if (field.kind != op::FieldKind::choice || chosen.contains(field.name) || first == field.fallback) {
      continue;
    }
    double left = 1 - likeness_of(subject, as_declared(subject));
    std::optional<plan::Case> best;
    for (const std::string_view choice : field.choices) {
      Trial trial = as_declared(subject);
      trial.c.params[i] = std::string(choice);
      const bool is_other = trial.c.params[i] != first && trial.c.params[i] != field.fallback;
      const double others = is_other && has_same_ports(subject.c, trial.c.params) ? 1 - likeness_of(subject, trial) : 1;
      if (others < kMuchNearer * left) {
        left = others;
        best = std::move(trial.c);
      }
    }
    if (best.has_value()) {
      subject.c = *std::move(best);
      taken.emplace(field.name, fmt::format("{} = {}: the tensors fit {} as well, the numbers only this", field.name,
                                            op::value_text(subject.c.params[i]), op::value_text(first)));
    }
  }
  return taken;
}

}  // namespace numcheck::diagnose
