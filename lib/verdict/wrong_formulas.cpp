#include "verdict/wrong_formulas.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "verdict/comparison.hpp"
#include "verdict/decoded_outputs.hpp"

namespace numcheck::verdict {
namespace {

using tolerance::WrongFormula;

constexpr double kMostOperations = 2e9;  ///< of all mistakes of a case together
constexpr double kOwnGates = 100;        ///< operations per element of gates that judge what a device chose

/// What the mistakes cost. Only references with yardsticks of their own can be asked for a sample.
double operations(const EvaluationContext& context, std::size_t mistakes) {
  const plan::Case& c = *context.prepared->c;
  const auto main = std::ranges::find(context.prepared->ports, op::Role::output, &op::Port::role);
  const auto looked_at =
      static_cast<double>(tolerance::certificate_sample(*main, &context.group->sample).indices.size());
  const double share = context.group->row->reference.tracked() ? 1 : looked_at / static_cast<double>(main->elements());
  const double whole = c.op->flops == nullptr ? static_cast<double>(main->elements()) : c.op->flops(c.params);
  return whole * share * static_cast<double>(mistakes);
}

/// Adds what the mistake makes of every output.
void add(const EvaluationContext& context, const op::Mistake& mistake, WrongFormulas& formulas) {
  const op::Reference& reference = context.group->row->reference;
  op::ReferenceRequest request{&mistake.params, {context.inputs().begin(), context.inputs().end()}, {}, true};
  const auto main = std::ranges::find(context.prepared->ports, op::Role::output, &op::Port::role);
  if (!reference.tracked()) {
    request.sample = tolerance::certificate_sample(*main, &context.group->sample);
  }
  const op::Values wrong = (mistake.instead == nullptr ? reference.values : mistake.instead)(request);
  for (const op::Port& port : context.prepared->ports) {
    const auto output = std::ranges::find(wrong.outputs, port.name, &op::OutputValues::port);
    if ((port.role != op::Role::output && port.role != op::Role::amax) || output == wrong.outputs.end()) {
      continue;
    }
    const op::Sample looked_at = tolerance::certificate_sample(port, &context.group->sample);
    std::vector<double> values(looked_at.indices.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double y = output->value[reference.tracked() ? static_cast<std::size_t>(looked_at.indices[i]) : i];
      values[i] = mistake.then == nullptr ? y : mistake.then(y);
    }
    formulas[std::string(port.name)].push_back({mistake.name, mistake.text, std::move(values)});
  }
}

WrongFormulas compute(const EvaluationContext& context) {
  const plan::Case& c = *context.prepared->c;
  const std::vector<op::Mistake> mistakes = context.group->row->reference.mistakes(c.params, *c.mode);
  WrongFormulas formulas;
  if (operations(context, mistakes.size()) <= kMostOperations) {
    for (const op::Mistake& mistake : mistakes) {
      add(context, mistake, formulas);
    }
  }
  return formulas;
}

/// The mistake in place of what the run delivered, and the output whose gate rejects it, or the first that has it.
std::pair<std::string, tolerance::Fake> judge_in_choice(const EvaluationContext& context, const op::Mistake& mistake,
                                                        std::span<const op::Delivered> delivered) {
  op::ReferenceRequest request{&mistake.params, {context.inputs().begin(), context.inputs().end()}, {}, true};
  for (const op::Delivered& output : delivered) {
    request.inputs.push_back({.port = output.port,
                              .data = output.value.data(),
                              .cols = static_cast<std::int64_t>(output.value.size()),
                              .dtype = output.dtype});
  }
  op::Values wrong = mistake.instead(request);
  std::vector<op::Delivered> planted(delivered.begin(), delivered.end());
  for (op::OutputValues& output : wrong.outputs) {
    const auto in = std::ranges::find(planted, output.port, &op::Delivered::port);
    for (double& value : output.value.span()) {
      value = core::round_to(value, in->dtype);
    }
    in->value = output.value.span();
  }
  const op::FindingRequest gates{&context.group->params, context.inputs(), &values_of_case(context), planted,
                                 &context.group->sample};
  for (const op::Finding& finding : context.group->row->reference.findings(gates)) {
    if (std::isfinite(finding.limit) && !(finding.measured <= finding.limit)) {
      return {finding.port, {mistake.name, tolerance::Fake::Outcome::rejected, finding.name}};
    }
  }
  return {std::string(wrong.outputs.front().port), {mistake.name, tolerance::Fake::Outcome::not_told, mistake.text}};
}

/// Rows or columns whose overflows the device has settled, and elements of any value, tell nothing.
void keep_open(const op::OutputValues& expected, const op::Sample& looked_at, const metric::CompareInput& input,
               std::vector<WrongFormula>& formulas) {
  for (const auto* ranges : {&expected.open, &expected.outside}) {
    for (const op::OutputValues::Range& range : *ranges) {
      const auto first = std::ranges::lower_bound(looked_at.indices, range.begin);
      for (auto at = first; at != looked_at.indices.end() && *at < range.end; ++at) {
        for (WrongFormula& formula : formulas) {
          formula.values[static_cast<std::size_t>(at - looked_at.indices.begin())] =
              input.expected[static_cast<std::size_t>(*at)];
        }
      }
    }
  }
}

}  // namespace

std::vector<WrongFormula> wrong_formulas(const EvaluationContext& context, const op::Port& port,
                                         const metric::CompareInput& input) {
  if (context.group->row->reference.mistakes == nullptr || context.last_pass != nullptr ||
      context.converted != nullptr || port.elements() == 0) {
    return {};
  }
  const std::string key = fmt::format("{}", static_cast<const void*>(context.prepared->rounding.get()));
  const auto all = context.cache->formulas_or(key, [&] { return compute(context); });
  const auto found = all->find(port.name);
  if (found == all->end()) {
    return {};
  }
  std::vector<WrongFormula> formulas = found->second;
  keep_open(expected_values(context, port), tolerance::certificate_sample(port, input.sample), input, formulas);
  return formulas;
}

std::map<std::string, std::vector<tolerance::Fake>, std::less<>> judge_in_choices(const EvaluationContext& context) {
  const op::Reference& reference = context.group->row->reference;
  const op::Values& expected = values_of_case(context);
  if (reference.mistakes == nullptr || reference.findings == nullptr || context.last_pass != nullptr ||
      !std::ranges::all_of(expected.outputs, &op::OutputValues::unpredictable)) {
    return {};
  }
  const plan::Case& c = *context.prepared->c;
  const std::vector<op::Mistake> mistakes = reference.mistakes(c.params, *c.mode);
  double elements = 0;
  for (const op::OutputValues& output : expected.outputs) {
    elements += static_cast<double>(output.value.size());
  }
  std::map<std::string, std::vector<tolerance::Fake>, std::less<>> fakes;
  if (elements * kOwnGates * static_cast<double>(mistakes.size()) > kMostOperations) {
    return fakes;
  }
  const DecodedOutputs delivered(*context.prepared, context.host);
  for (const op::Mistake& mistake : mistakes) {
    auto [port, fake] = judge_in_choice(context, mistake, delivered.outputs());
    fakes[std::move(port)].push_back(std::move(fake));
  }
  return fakes;
}

}  // namespace numcheck::verdict
