#include "run/evaluate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "data/inputs.hpp"
#include "model/expected_class.hpp"
#include "tolerance/judge.hpp"
#include "tolerance/vacuity.hpp"

namespace numcheck::run {
namespace {

using tolerance::PrecisionClass;

/// What the case's process sees: the case's own setting, else this process's. Empty: unset.
std::string override_of(const plan::Case& c) {
  constexpr const char* kVariable = "NVIDIA_TF32_OVERRIDE";
  const auto found = c.environment.find(kVariable);
  if (found != c.environment.end()) {
    return found->second.value_or("");
  }
  const char* inherited = std::getenv(kVariable);
  return inherited == nullptr ? "" : inherited;
}

/// Our own kernel multiplies in FP32 whatever was asked; libraries and the simulator follow the table.
PrecisionClass expected_of(const EvaluationContext& context) {
  const plan::Case& c = *context.prepared->c;
  const PrecisionClass requested = model::expected_class(*c.mode, override_of(c));
  return context.backend == "cuda" && requested != PrecisionClass::native ? PrecisionClass::fp32 : requested;
}

PrecisionClass parse_class(const std::string& name) {
  for (const PrecisionClass c : {PrecisionClass::fp32, PrecisionClass::tf32_rne, PrecisionClass::tf32_truncated,
                                 PrecisionClass::bf16_inputs, PrecisionClass::native}) {
    if (name == tolerance::class_name(c)) {
      return c;
    }
  }
  return PrecisionClass::unknown;
}

tolerance::ErrorModel model_of(const EvaluationContext& context, const op::Port& port, PrecisionClass expected) {
  const PreparedCase& prepared = *context.prepared;
  const plan::Case& c = *prepared.c;
  tolerance::ModelRequest request;
  request.params = &c.params;
  request.mode = c.mode;
  request.expected = expected;
  request.sm = context.device->sm;
  request.backend = context.backend;
  request.exact_leg = c.inputs.exact_leg() && c.op->exact_plan(c.params, *c.mode).reason.empty();
  const auto scale = prepared.scale.find(port.name);
  request.output_scale = scale == prepared.scale.end() ? 1.0 : static_cast<double>(scale->second);
  const std::vector<op::Operand>& operands = prepared.rounding->operands;
  const auto largest = [&](std::size_t i) { return prepared.rounding->largest_code.find(operands[i].port)->second; };
  if (!operands.empty()) {
    request.first_scale = operands[0].scale;
    request.first_max = largest(0);
    request.first_pattern = tolerance::pattern_of(c.inputs.of(operands[0].port));
  }
  if (operands.size() > 1) {
    request.second_scale = operands[1].scale;
    request.second_max = largest(1);
    request.second_pattern = tolerance::pattern_of(c.inputs.of(operands[1].port));
  }
  return context.group->row->error_model(request, port.name);
}

/// Expectation of one port: spans into the group's references, or one number for an amax port.
struct Expectation {
  std::span<const double> value;
  std::span<const float> magnitude;
  std::span<const float> second_moment;
  std::array<double, 1> own_value{};
  std::array<float, 1> own_magnitude{};
  std::array<float, 1> own_second_moment{};
};

template <class Outputs>
const auto& output_named(const Outputs& outputs, std::string_view port) {
  for (const auto& output : outputs) {
    if (output.port == port) {
      return output;
    }
  }
  throw core::InternalError("the reference gives no output " + std::string(port));
}

float largest_of(std::span<const float> values) {
  return values.empty() ? 0.0F : *std::ranges::max_element(values);
}

/// max |y|: every element's bound holds for the maximum too, so the largest yardsticks are the maximum's.
void expect_amax(Expectation& e) {
  for (const double y : e.value) {
    e.own_value[0] = std::fmax(e.own_value[0], std::fabs(y));
  }
  e.own_magnitude[0] = largest_of(e.magnitude);
  e.own_second_moment[0] = largest_of(e.second_moment);
  e.value = e.own_value;
  e.magnitude = e.own_magnitude;
  e.second_moment = e.own_second_moment;
}

void expect(Expectation& e, const EvaluationContext& context, const op::Port& port) {
  const std::string_view source = port.role == op::Role::amax ? port.of : port.name;
  const auto& values = output_named(context.prepared->rounding->values.get()->outputs, source);
  const auto& yardsticks = output_named(context.group->yardsticks.get()->outputs, source);
  e.value = values.value.span();
  e.magnitude = yardsticks.magnitude.span();
  e.second_moment = yardsticks.second_moment.span();
  if (port.role == op::Role::amax) {
    expect_amax(e);
  }
}

/// Total error where no full reference on the unrounded inputs exists: on a sample of its own.
metric::ErrorNorms total_on_sample(const EvaluationContext& context, const metric::CompareInput& input,
                                   std::string_view port) {
  const auto& values = output_named(context.group->total.get()->outputs, port);
  const std::vector<float> ones(values.value.size(), 1.0F);
  metric::CompareInput sampled = input;
  sampled.expected = values.value.span();
  sampled.unrounded = {};
  sampled.magnitude = ones;
  sampled.second_moment = ones;
  sampled.sample = &context.group->total_sample;
  sampled.have_allclose = false;
  return metric::compare(sampled).arithmetic;
}

std::shared_ptr<const ComparisonCache::Entry> compare_port(const EvaluationContext& context, const op::Port& port,
                                                           std::span<const std::byte> bytes,
                                                           const tolerance::ErrorModel& model) {
  Expectation expectation;
  expect(expectation, context, port);
  const plan::ToleranceSpec& wanted = context.prepared->c->tolerance;
  metric::CompareInput input;
  const op::Sample whole;
  input.port = &port;
  input.got = bytes;
  input.expected = expectation.value;
  input.magnitude = expectation.magnitude;
  input.second_moment = expectation.second_moment;
  input.sample = port.role == op::Role::amax ? &whole : &context.group->sample;
  input.model = &model;
  input.have_allclose = wanted.allclose_rtol.has_value() || wanted.allclose_atol.has_value();
  input.rtol = wanted.allclose_rtol.value_or(0);
  input.atol = wanted.allclose_atol.value_or(0);
  const bool main = port.role == op::Role::output;
  const bool shared_total = context.group->total_sample.indices == context.group->sample.indices;
  if (main && shared_total) {
    input.unrounded = output_named(context.group->total.get()->outputs, port.name).value.span();
  }
  auto entry = std::make_shared<ComparisonCache::Entry>();
  entry->statistics = metric::compare(input);
  if (main && !shared_total) {
    entry->statistics.total = total_on_sample(context, input, port.name);
  }
  if (main) {
    entry->certificate = tolerance::certify(input);
  }
  return entry;
}

/// The sample says nothing of the other elements; in the exact leg a linear check covers them all.
tolerance::Criterion check_whole_output(const EvaluationContext& context, const op::Port& port,
                                        std::span<const std::byte> bytes) {
  const core::Buffer<double> whole = data::load_port(port, bytes);
  const op::ReferenceRequest request{&context.group->params, context.prepared->rounding->operands, {}};
  const bool holds = context.group->row->reference.exact_holds(request, whole.span());
  return {.name = "exact whole output",
          .measured = holds ? 0.0 : 1.0,
          .limit = 0.0,
          .ok = holds,
          .source = "Freivalds' check modulo 2^61 - 1"};
}

const core::Digest* digest_named(const RunReport& run, std::string_view port) {
  const auto found = std::ranges::find(run.outputs, port, &OutputDigest::port);
  return found == run.outputs.end() ? nullptr : &found->digest;
}

report::OutputResult evaluate_port(const EvaluationContext& context, const RunReport& run, const op::Port& port,
                                   std::span<const std::byte> bytes, const tolerance::RunFacts& facts) {
  const plan::Case& c = *context.prepared->c;
  const tolerance::ErrorModel model = model_of(context, port, facts.expected);
  report::OutputResult output;
  output.port = port.name;
  output.model_source = model.source;
  output.sampled = !context.group->sample.all() && port.role == op::Role::output;
  const core::Digest* digest = digest_named(run, port.name);
  if (digest == nullptr) {
    throw core::InternalError("the worker gave no digest of output " + output.port);
  }
  output.digest = *digest;
  const std::string key =
      fmt::format("{}|{}|{}|{}|{}|{}|{}", static_cast<const void*>(context.prepared->rounding.get()), port.name,
                  digest->hex(), model.source, model.output_scale, c.tolerance.allclose_rtol.value_or(-1),
                  c.tolerance.allclose_atol.value_or(-1));
  std::shared_ptr<const ComparisonCache::Entry> entry = context.cache->find(key);
  if (entry == nullptr) {
    entry = compare_port(context, port, bytes, model);
    context.cache->store(key, entry);
  }
  output.statistics = entry->statistics;
  output.certificate = entry->certificate;
  output.criteria = tolerance::judge(entry->statistics, model, facts, c.tolerance);
  if (output.sampled && model.exact && context.group->row->reference.exact_holds != nullptr) {
    output.criteria.push_back(check_whole_output(context, port, bytes));
  }
  return output;
}

void settle(report::RunResult& result) {
  result.status = report::Status::pass;
  for (const report::OutputResult& output : result.outputs) {
    for (const tolerance::Criterion& criterion : output.criteria) {
      if (!criterion.ok && result.status != report::Status::fail) {
        result.status = report::Status::fail;
        result.failing =
            fmt::format("{}: {} {:.4g} > {:.4g}", output.port, criterion.name, criterion.measured, criterion.limit);
      }
    }
  }
  for (const report::OutputResult& output : result.outputs) {
    const std::string fake = output.certificate.vacuous_with();
    if (result.status == report::Status::pass && !fake.empty()) {
      result.status = report::Status::inconclusive;
      result.failing = fmt::format("{}: a fake result (\"{}\") would also pass, so passing proves little", output.port,
                                   fake);
    }
  }
}

}  // namespace

std::shared_ptr<const ComparisonCache::Entry> ComparisonCache::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second;
}

void ComparisonCache::store(const std::string& key, std::shared_ptr<const Entry> entry) {
  const std::lock_guard lock(mutex_);
  entries_.insert_or_assign(key, std::move(entry));
}

report::RunResult evaluate_run(const EvaluationContext& context, const RunReport& run, double& comparison_s) {
  report::RunResult result;
  result.run = run;
  if (!run.error.empty()) {
    result.status = report::Status::error;
    result.failing = run.error;
    return result;
  }
  context.group->total.wait();  // the references' own time is not the comparison's
  const auto start = std::chrono::steady_clock::now();
  tolerance::RunFacts facts{.guards_intact = run.guards_intact,
                            .inputs_intact = run.inputs_intact,
                            .deterministic = run.deterministic,
                            .expected = expected_of(context),
                            .observed = parse_class(run.observed_class)};
  result.expected_class = tolerance::class_name(facts.expected);
  const PreparedCase& prepared = *context.prepared;
  for (std::size_t i = 0; i < prepared.ports.size(); ++i) {
    const op::Port& port = prepared.ports[i];
    const bool unknowable = port.role == op::Role::amax && !context.group->sample.all();  // a sample has no maximum
    if ((port.role == op::Role::output || port.role == op::Role::amax) && !unknowable) {
      result.outputs.push_back(evaluate_port(context, run, port, prepared.host[i].bytes, facts));
    }
  }
  settle(result);
  comparison_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

void conclude(report::CaseResult& result, const Outcome& outcome, const std::string& today) {
  using report::Status;
  switch (outcome.kind) {
    case Outcome::Kind::unsupported: result.status = Status::unsupported; break;
    case Outcome::Kind::error: result.status = Status::error; break;
    case Outcome::Kind::crashed: result.status = Status::crashed; break;
    case Outcome::Kind::timeout: result.status = Status::timeout; break;
    case Outcome::Kind::done: result.status = result.runs.empty() ? Status::error : Status::pass; break;
  }
  result.reason = outcome.kind == Outcome::Kind::done && result.runs.empty() ? "the worker reported no run"
                                                                              : outcome.reason;
  for (const Status worse : {Status::inconclusive, Status::error, Status::fail}) {
    const auto found = std::ranges::find(result.runs, worse, &report::RunResult::status);
    const bool outranks = worse == Status::fail || result.status == Status::pass || result.status == Status::inconclusive;
    if (found != result.runs.end() && outranks) {
      result.status = worse;
      result.reason = found->failing;
    }
  }
  const std::optional<plan::XFail>& known = result.c->xfail;
  const bool expired = known.has_value() && !known->expires.empty() && known->expires < today;
  if (known.has_value() && result.status == Status::fail && !expired) {
    result.status = Status::xfail;
    result.reason = known->reason + " (" + result.reason + ")";
  } else if (known.has_value() && result.status == Status::pass) {
    result.status = Status::xpass;
    result.reason = "passes although listed as known to fail: " + known->reason;
  } else if (expired && result.status == Status::fail) {
    result.reason += " (its xfail entry expired on " + known->expires + ")";
  }
}

}  // namespace numcheck::run
