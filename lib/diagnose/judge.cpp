// Judges given tensors by the rules of every other run: same references, error models and gates.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "data/block_scales.hpp"
#include "data/inputs.hpp"
#include "diagnose/beside_given.hpp"
#include "diagnose/simulated.hpp"
#include "diagnose/subject.hpp"
#include "metric/wrong_elements.hpp"
#include "prepare/group.hpp"
#include "verdict/compared_port.hpp"
#include "verdict/conversion.hpp"
#include "verdict/evaluate.hpp"
#include "verdict/expectation.hpp"
#include "verdict/output_model.hpp"
#include "verdict/own_gates.hpp"
#include "worker/plain_block.hpp"

namespace numcheck::diagnose {
namespace {

op::Values values_of_trial(const op::Reference& reference, const Trial& trial, const op::ReferenceRequest& request) {
  op::Values values = reference.values(request);
  if (trial.instead == nullptr) {
    return values;
  }
  const op::Values others = trial.instead(request);
  for (op::OutputValues& output : values.outputs) {
    for (const op::OutputValues& other : others.outputs) {
      if (other.port == output.port && other.value.size() == output.value.size()) {
        std::ranges::copy(other.value.span(), output.value.data());
      }
    }
  }
  return values;
}

/// Whether the reference of the trial is the subject's, changed afterwards or not.
bool has_own_reference(const Trial& trial) {
  return trial.instead != nullptr || trial.fault.has_value();
}

bool changes(const Subject& subject, const Trial& trial) {
  return trial.then != nullptr || (subject.known != nullptr && subject.known->then != nullptr);
}

/// Of the reference alone, before the trial changes it.
ReferenceMemo::Results results_of(const Subject& subject, const Trial& trial, const op::Reference& reference,
                                  const op::ReferenceRequest& request) {
  if (!has_own_reference(trial)) {
    if (ReferenceMemo::Results kept = subject.memo->find(trial.c, trial.inputs, request.sample);
        kept.values != nullptr) {
      return kept;
    }
  }
  auto yardsticks = std::make_shared<op::Yardsticks>();
  if (!reference.tracked()) {
    *yardsticks = reference.yardsticks(request);
  }
  ReferenceMemo::Results results{std::make_shared<op::Values>(values_of_trial(reference, trial, request)),
                                 std::move(yardsticks)};
  const bool is_declared = trial.inputs == subject.inputs && trial.c.params == subject.c.params;
  if (is_declared && !has_own_reference(trial)) {
    subject.memo->keep(trial.c, trial.inputs, request.sample, results);
  }
  return results;
}

void change(const Subject& subject, const Trial& trial, op::Values& values, op::Yardsticks& yardsticks) {
  if (subject.known != nullptr && subject.known->then) {
    subject.known->then(values, yardsticks);
  }
  if (trial.then) {
    trial.then(values, yardsticks);
  }
}

/// The group's values for all of its promises: the inputs are given as they are stored, so there is nothing to round.
void compute_values(const Subject& subject, const Trial& trial, prepare::PreparedGroup& made) {
  prepare::Group& group = *made.group;
  const op::Reference& reference = group.row->reference;
  prepare::Rounding& rounding = *group.in_order.front();
  const op::ReferenceRequest request{&group.params, rounding.operands, group.sample};
  ReferenceMemo::Results results = results_of(subject, trial, reference, request);
  if (trial.fault.has_value() || changes(subject, trial)) {
    auto values = std::make_shared<op::Values>(copy_of(*results.values));
    auto yardsticks = std::make_shared<op::Yardsticks>(copy_of(*results.yardsticks));
    if (trial.fault.has_value()) {
      simulate(subject, trial, made.cases.front(), *values, *yardsticks);
    }
    change(subject, trial, *values, *yardsticks);
    results = {std::move(values), std::move(yardsticks)};
  }
  group.yardstick_promise.set_value(std::move(results.yardsticks));
  rounding.promise.set_value(results.values);
  group.total_sample = group.sample;
  group.total_promise.set_value(results.values);
}

/// The cases must outlive it.
prepare::PreparedGroup prepare_trial(const Subject& subject, const std::vector<plan::Case>& cases, const Trial& trial,
                                     double flops_limit) {
  const auto allocate = [](std::size_t bytes, worker::BlockUse) { return std::make_shared<worker::PlainBlock>(bytes); };
  return prepare::prepare_group(cases, {.key = {}, .cases = {0}}, subject.catalog, flops_limit, allocate,
                                prepare::References::whole, trial.inputs);
}

/// Dense elements where the port has them: outputs of attention may be packed into one tensor.
void lay_out(const op::Port& port, std::span<const std::byte> dense, std::span<std::byte> bytes) {
  const auto element = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  if (dense.size() != static_cast<std::size_t>(port.elements()) * element) {
    throw core::InternalError("another number of bytes is given for " + std::string(port.name));
  }
  const std::size_t row = static_cast<std::size_t>(port.cols) * element;
  for (std::int64_t batch = 0; batch < port.batch; ++batch) {
    for (std::int64_t r = 0; r < port.rows; ++r) {
      const auto from = static_cast<std::size_t>(batch * port.rows + r) * row;
      const auto to = static_cast<std::size_t>(port.offset_bytes) +
                      static_cast<std::size_t>(batch * port.batch_stride + r * port.ld) * element;
      std::ranges::copy(dense.subspan(from, row), bytes.subspan(to, row).begin());
    }
  }
}

/// What is drawn is judged by what else was drawn with it: y of dropout by its mask, of which the reference knows nothing.
void require_all_draws(const Subject& subject, const Trial& trial, const op::Values& values) {
  std::string given, missing;
  const std::vector<op::Port> ports = subject.c.op->ports(subject.c.params, *subject.c.mode);
  for (const op::OutputValues& output : values.outputs) {
    // References make outputs that the case does not have, of another layout.
    if (output.unpredictable && op::find_port(ports, output.port) != nullptr) {
      (given_bytes(subject, trial, output.port) == nullptr ? missing : given) = output.port;
    }
  }
  if (!given.empty() && !missing.empty()) {
    throw core::UsageError(
        fmt::format("{} is judged together with {}, because both are drawn: give {} as well", given, missing, missing));
  }
}

ElementFacts facts_of(const verdict::EvaluationContext& context, const worker::RunReport& run, std::size_t port) {
  const verdict::ComparedPort compared(*context.prepared, context.host, port, run);
  const model::ErrorModel model = verdict::output_model(context, compared.port(), context.judged);
  const verdict::Expectation expectation(context, compared, model);
  ElementFacts facts{
      metric::mark_wrong(expectation.input(), std::nullopt), metric::pair_tolerance(expectation.input()), {}};
  if (!context.group->sample.all()) {
    return facts;  // of a sample, elements have other places
  }
  for (const op::ImpossibleDraw& draw : verdict::impossible_draws(context)) {
    if (draw.port == compared.port().name && draw.element < facts.is_wrong.size()) {
      facts.possible.resize(facts.is_wrong.size());
      facts.is_wrong[draw.element] = 1;
      facts.possible[draw.element] = draw.possible;
    }
  }
  return facts;
}

}  // namespace

core::Buffer<double> delivered_numbers(const Subject& subject, std::string_view name) {
  op::Port port = op::port_named(subject.c.op->ports(subject.c.params, *subject.c.mode), name);
  port.ld = port.cols;
  port.batch_stride = port.rows * port.cols;
  port.offset_bytes = 0;
  core::Buffer<double> numbers = data::load_port(port, subject.outputs.find(name)->second->span());
  for (const op::Port& scale : subject.c.op->ports(subject.c.params, *subject.c.mode)) {
    const auto given = subject.outputs.find(scale.name);
    if (scale.name == port.scaled_by && given != subject.outputs.end()) {
      const core::Buffer<double> factors = data::load_port(scale, given->second->span());
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] *= data::block_scale(port, factors.span(), i);
      }
    }
  }
  const double factor = output_scale(subject, name);  // codes are of the number times that
  for (double& number : numbers.span()) {
    number /= factor;
  }
  return numbers;
}

double output_scale(const Subject& subject, std::string_view name) {
  for (const op::Port& port : subject.c.op->ports(subject.c.params, *subject.c.mode)) {
    if (port.role == op::Role::scale && port.of == name) {
      return static_cast<double>(subject.inputs.number(port).value_or(1));
    }
  }
  return 1;
}

Trial as_declared(const Subject& subject) {
  Trial trial = subject.known != nullptr
                    ? *subject.known
                    : Trial{.c = subject.c, .inputs = subject.inputs, .rounding = subject.ran.rounding};
  trial.then = {};  // judge applies that of the known cause first
  return trial;
}

Subject with_known(const Subject& subject, const Trial& trial) {
  Subject result = subject;
  if (result.declared == nullptr) {
    result.declared = std::make_shared<const plan::Case>(subject.c);
  }
  result.c = trial.c;
  result.inputs = trial.inputs;
  for (const auto& [port, bytes] : trial.stored) {
    result.outputs.insert_or_assign(port, bytes);
  }
  result.known = std::make_shared<const Trial>(trial);
  result.memo = std::make_shared<ReferenceMemo>();  // so that those of one cause do not take the place of the subject's
  return result;
}

Expected expect(const Subject& subject, const Trial& trial, double flops_limit) {
  const std::vector<plan::Case> cases = {trial.c};
  const prepare::PreparedGroup made = prepare_trial(subject, cases, trial, flops_limit);
  const prepare::Group& group = *made.group;
  const op::ReferenceRequest request{&group.params, group.in_order.front()->operands, group.sample, true};
  if (!has_own_reference(trial) && !changes(subject, trial)) {
    if (std::shared_ptr<const op::Values> kept = subject.memo->find(trial.c, trial.inputs, group.sample).values;
        kept != nullptr) {
      return {group.sample, std::move(kept)};
    }
  }
  auto values = std::make_shared<op::Values>(values_of_trial(group.row->reference, trial, request));
  op::Yardsticks none;
  if (trial.fault.has_value()) {
    simulate(subject, trial, made.cases.front(), *values, none);
  }
  change(subject, trial, *values, none);
  return {group.sample, std::move(values)};
}

verdict::RunResult judge(const Subject& subject, const Trial& trial, double flops_limit, Depth depth,
                         FactsByPort* elements) {
  const std::vector<plan::Case> cases = {trial.c};
  prepare::PreparedGroup made = prepare_trial(subject, cases, trial, flops_limit);
  prepare::PreparedCase& prepared = made.cases.front();
  compute_values(subject, trial, made);
  worker::RunReport run;
  run.backend = trial.c.backend;
  run.label = "given tensors";
  run.observed = trial.ran;
  run.conversion = trial.conversion;
  run.rounding = trial.rounding;
  const op::Values& values = *made.group->in_order.front()->values.get();
  require_all_draws(subject, trial, values);
  for (std::size_t i = 0; i < prepared.ports.size(); ++i) {
    const op::Port& port = prepared.ports[i];
    if (worker::use_of(port) != worker::BlockUse::output) {
      continue;
    }
    run.outputs.push_back({.port = std::string(port.name), .digest = {}});
    const std::span<std::byte> bytes = prepared.host[i].bytes;
    if (const SharedBytes given = given_bytes(subject, trial, port.name); given != nullptr) {
      lay_out(port, given->span(), bytes);
    }
  }
  fill_in_others(subject, trial, made, values);
  verdict::ComparisonCache cache;
  verdict::EvaluationContext context;
  context.group = made.group.get();
  context.prepared = &prepared;
  context.host = prepared.host;
  context.device = &subject.device;
  context.cache = &cache;
  context.gates_only = depth == Depth::gates;
  context.all_maps = depth == Depth::pictures;
  if (trial.conversion.has_value() && !trial.is_unconverted) {
    verdict::take_for_converted(context, *trial.conversion, made.group->in_order.front()->values.get());
  }
  double seconds = 0;
  verdict::RunResult result = verdict::evaluate_run(context, run, seconds);
  for (std::size_t i = 0; elements != nullptr && i < prepared.ports.size(); ++i) {
    if (prepared.ports[i].role == op::Role::output && given_bytes(subject, trial, prepared.ports[i].name) != nullptr) {
      (*elements)[std::string(prepared.ports[i].name)] = facts_of(context, run, i);
    }
  }
  std::erase_if(result.outputs, [&](const verdict::OutputResult& output) {
    return given_bytes(subject, trial, output.port) == nullptr;
  });
  return result;
}

}  // namespace numcheck::diagnose
