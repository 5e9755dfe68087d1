// Any op with its reference, for tests that spell out its inputs.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/codec.hpp"
#include "op/mode.hpp"
#include "op/op.hpp"
#include "op/reference.hpp"

namespace numcheck::reference::testing {

/// Values of inputs and scales by port.
using Inputs = std::map<std::string, std::vector<double>, std::less<>>;

struct Problem {
  const op::Op* op;
  op::Reference reference;
  op::Params params;
  std::string_view mode = "fp32";

  [[nodiscard]] std::vector<op::Port> ports() const { return op->ports(params, *op::find_mode(mode)); }
};

/// The given inputs as the reference sees them. They must outlive the operands.
inline std::vector<op::Operand> operands_of(const Problem& problem, const Inputs& inputs) {
  std::vector<op::Operand> list;
  for (const op::Port& port : problem.ports()) {
    const auto found = inputs.find(port.name);
    if (found == inputs.end()) {
      continue;
    }
    if (port.role == op::Role::input) {
      list.push_back({port.name, found->second.data(), port.batch, port.rows, port.cols, 1, port.dtype});
    } else if (port.role == op::Role::scale) {
      for (op::Operand& operand : list) {
        operand.scale = operand.port == port.of ? found->second.at(0) : operand.scale;
      }
    }
  }
  return list;
}

/// What the reference makes of the draws for a derived port, before it is rounded to the port's format.
inline std::vector<double> derived(const Problem& problem, const Inputs& inputs, std::string_view port,
                                   std::vector<double> draws) {
  const std::vector<op::Port> ports = problem.ports();
  const std::vector<op::Operand> operands = operands_of(problem, inputs);
  problem.reference.derive({&problem.params, operands, &op::port_named(ports, port)}, draws);
  return draws;
}

inline op::Values evaluate(const Problem& problem, const Inputs& inputs, bool values_only = false) {
  op::ReferenceRequest request{.params = &problem.params, .inputs = {}, .sample = {}, .values_only = values_only};
  request.inputs = operands_of(problem, inputs);
  return problem.reference.values(request);
}

inline const op::OutputValues& output_named(const op::Values& values, std::string_view port) {
  for (const op::OutputValues& output : values.outputs) {
    if (output.port == port) {
      return output;
    }
  }
  throw std::out_of_range("no output " + std::string(port));
}

inline std::vector<double> copied(const core::Buffer<double>& buffer) {
  return {buffer.span().begin(), buffer.span().end()};
}

inline std::vector<double> value_of(const op::Values& values, std::string_view port) {
  return copied(output_named(values, port).value);
}

/// A of every element: op::OutputValues::terms.
inline std::vector<double> terms_of(const op::Values& values, std::string_view port) {
  const std::span<const float> terms = output_named(values, port).terms.span();
  return {terms.begin(), terms.end()};
}

/// The only requested output.
inline std::vector<double> value_of(const Problem& problem, const Inputs& inputs, std::string_view port) {
  return value_of(evaluate(problem, inputs), port);
}

/// Normal numbers that are FP32 ones.
inline std::vector<double> noise(std::size_t count, unsigned seed, double sigma = 1, double mean = 0) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal(mean, sigma);
  std::vector<double> values(count);
  for (double& value : values) {
    value = static_cast<double>(static_cast<float>(normal(engine)));
  }
  return values;
}

/// sum_i a_i b_i of short lists.
inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += a[i] * b.at(i);
  }
  return sum;
}

}  // namespace numcheck::reference::testing
