#include "verdict/last_pass.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "data/inputs.hpp"
#include "verdict/compared_port.hpp"

namespace numcheck::verdict {
namespace {

/// "o and lse"
std::string passed_on_names(const prepare::PreparedCase& prepared) {
  std::vector<std::string_view> names;
  for (const op::Port& port : prepared.ports) {
    if (port.passed_on && !is_chosen(prepared, port)) {
      names.push_back(port.name);
    }
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

const op::OutputValues* find_output(const op::Values& values, std::string_view port) {
  const auto found = std::ranges::find(values.outputs, port, &op::OutputValues::port);
  return found == values.outputs.end() ? nullptr : &*found;
}

}  // namespace

std::shared_ptr<LastPass> passed_on_by(const prepare::PreparedCase& prepared, std::span<const worker::HostPort> host,
                                       const worker::RunReport& run) {
  if (std::ranges::none_of(prepared.ports, &op::Port::passed_on)) {
    return nullptr;
  }
  auto last = std::make_shared<LastPass>();
  last->inputs = prepared.rounding->operands;
  for (std::size_t i = 0; i < prepared.ports.size(); ++i) {
    const op::Port& port = prepared.ports[i];
    if (port.passed_on) {
      const core::Buffer<double>& values = last->passed_on.emplace_back(data::load_port(port, host[i].bytes));
      last->inputs.push_back({.port = port.name,
                              .data = values.data(),
                              .batch = port.batch,
                              .rows = port.rows,
                              .cols = port.cols,
                              .dtype = port.dtype});
      last->key += fmt::format("{}={};", port.name, output_named(run, port.name).digest.hex());
    }
  }
  return last;
}

const op::Op& pass_of(const plan::Case& c, const op::Port& port) {
  for (const op::Pass& pass : op::passes_of(*c.op, c.params)) {
    const std::vector<op::Port> ports = pass.op->ports(pass.params, *c.mode);
    const op::Port* found = op::find_port(ports, port.name);
    if (found != nullptr && found->role != op::Role::input) {
      return *pass.op;
    }
  }
  return *c.op;
}

const op::OutputValues* LastPass::own(const op::Values& of_case, std::string_view port) const {
  if (given_choice == nullptr) {
    return find_output(of_case, port);
  }
  return given_choice == values ? nullptr : find_output(*given_choice, port);
}

bool is_chosen(const prepare::PreparedCase& prepared, const op::Port& port) {
  const op::OutputValues* values = port.passed_on ? find_output(*prepared.rounding->values.get(), port.name) : nullptr;
  return values != nullptr && values->unpredictable;
}

std::string own_passes_note(const prepare::PreparedCase& prepared) {
  return fmt::format("with the reference's own {} instead of the device's", passed_on_names(prepared));
}

op::Finding pass_finding(const plan::Case& c, const OutputResult& output) {
  const double own = output.statistics.arithmetic.rel_l2;
  if (!output.pass.empty()) {
    return {.name = "pass",
            .port = output.port,
            .measured = own,
            .text = fmt::format("{} runs first and leaves this; {} is judged by what it makes of it", output.pass,
                                c.op->name)};
  }
  const double all = output.ideal.value_or(output.statistics.arithmetic).rel_l2;
  std::vector<std::string_view> names;
  for (const op::Pass& pass : op::passes_of(*c.op, c.params)) {
    names.push_back(pass.op->name);
  }
  return {.name = "passes",
          .port = output.port,
          .measured = all,
          .text = fmt::format("relative L2 error of {} alone {:.2e}, of {} {:.2e}", c.op->name, own,
                              fmt::join(names, ", "), all)};
}

}  // namespace numcheck::verdict
