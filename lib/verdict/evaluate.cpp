#include "verdict/evaluate.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/trace.hpp"
#include "model/expected_class.hpp"
#include "op/gemm.hpp"
#include "op/grouped_gemm.hpp"
#include "tolerance/judge.hpp"
#include "verdict/conversion.hpp"
#include "verdict/declared_rounding.hpp"
#include "verdict/doubt.hpp"
#include "verdict/exact_bits.hpp"
#include "verdict/line_factors.hpp"
#include "verdict/output_model.hpp"
#include "verdict/output_picture.hpp"
#include "verdict/own_gates.hpp"
#include "verdict/replayed_amax.hpp"
#include "verdict/replayed_scale.hpp"
#include "verdict/settled.hpp"
#include "verdict/streamed_values.hpp"
#include "verdict/whole_output.hpp"

namespace numcheck::verdict {
namespace {

using model::PrecisionClass;

/// NVIDIA_TF32_OVERRIDE as the case's process sees it: the case's own setting or this process's. Empty: unset.
std::string override_of(const plan::Case& c) {
  constexpr const char* kVariable = "NVIDIA_TF32_OVERRIDE";
  const auto found = c.environment.find(kVariable);
  if (found != c.environment.end()) {
    return found->second.value_or("");
  }
  const char* inherited = std::getenv(kVariable);
  return inherited == nullptr ? "" : inherited;
}

PrecisionClass expected_of(const EvaluationContext& context) {
  const plan::Case& c = *context.prepared->c;
  if (!c.op->multiplies_matrices) {
    return PrecisionClass::native;
  }
  const bool fp32_chain = context.arithmetic == model::MatrixArithmetic::fp32_chain;
  if (!fp32_chain && op::promotes_sums(*c.op, c.params, *c.mode)) {
    return PrecisionClass::fp8_promoted;
  }
  const PrecisionClass requested = model::expected_class(*c.mode, override_of(c));
  return fp32_chain && requested != PrecisionClass::native ? PrecisionClass::fp32 : requested;
}

bool all_ok(const std::vector<tolerance::Criterion>& criteria) {
  return std::ranges::all_of(criteria, &tolerance::Criterion::ok);
}

/// Of repeated runs, by whose cause known issues excuse that they differ, and nothing else.
op::Finding finding_of_repeats(std::string_view port) {
  op::Finding finding;
  finding.name = "repeated runs";
  finding.port = port;
  finding.measured = 1;
  finding.cause = "repeated runs give different bits";
  finding.about = op::Finding::About::repetition;
  return finding;
}

/// True unless the output differed from run to run although the backend does not declare that it may.
bool repeats(const worker::RunReport& run, std::string_view port) {
  return output_named(run, port).repeats || std::ranges::find(run.unordered, port) != run.unordered.end();
}

/// Gates that compute products of their own, or read all of a sampled output.
void judge_by_slow_gates(const EvaluationContext& context, const worker::RunReport& run, const ComparedPort& compared,
                         const model::ErrorModel& model, OutputResult& output) {
  if (std::optional<tolerance::Criterion> replayed = judge_replayed_scale(context, run, compared, model)) {
    output.criteria.push_back(*std::move(replayed));
  }
  if (std::optional<tolerance::Criterion> replayed = judge_replayed_amax(context, run, compared, model)) {
    output.criteria.push_back(*std::move(replayed));
  }
  if (std::optional<tolerance::Criterion> lines = judge_line_factors(context, compared, model, output.statistics)) {
    output.criteria.push_back(*std::move(lines));
  }
  if (output.sampled && model.exact && context.group->row->reference.exact_holds != nullptr) {
    output.criteria.push_back(check_whole_output(context, compared.port(), compared.bytes()));
  }
  if (output.sampled) {
    judge_whole_output(context, run, compared, model, output.statistics, output.criteria);
  }
}

OutputResult evaluate_port(const EvaluationContext& context, const worker::RunReport& run, std::size_t index,
                           const tolerance::RunFacts& facts) {
  const core::Span span("judge", context.prepared->ports[index].name);
  const plan::Case& c = *context.prepared->c;
  const ComparedPort compared(*context.prepared, context.host, index, run);
  const op::Port& port = compared.port();
  const model::ErrorModel model = output_model(context, port, facts.expected);
  OutputResult output;
  output.port = port.name;
  output.pass = port.passed_on ? pass_of(c, port).name : std::string_view();
  output.model_source = model.source;
  output.sampled = !context.group->sample.all() && port.role == op::Role::output;
  output.digest = output_named(run, port.name).digest;
  const auto entry = compare_output(context, compared, model);
  output.statistics = entry->statistics;
  output.certificate = entry->certificate;
  output.ideal = entry->ideal;
  output.judged = entry->judged;
  if (entry->judged.has_value()) {
    output.judged_note = fmt::format("with operands as the run converted them ({})", model::describe(*run.conversion));
  }
  output.vanishes = entry->vanishes;
  output.wrong = entry->wrong;
  if (entry->ideal.has_value()) {
    output.ideal_note =
        context.last_pass != nullptr ? own_passes_note(*context.prepared) : expected_values(context, port).ideal_note;
  }
  output.criteria = tolerance::judge(entry->statistics, model, facts, c.tolerance);
  judge_bits(context, compared, entry->statistics, output.criteria);
  if (!context.gates_only || std::ranges::none_of(output.criteria, has_wrong_numbers)) {
    const core::Span slow("slow gates", port.name);
    judge_by_slow_gates(context, run, compared, model, output);
  }
  if (!all_ok(output.criteria)) {
    if (context.streamed != nullptr) {
      throw metric::NeedsAllRows();  // to say where, and why
    }
    if (!context.gates_only && std::ranges::any_of(output.criteria, has_wrong_numbers)) {
      output.findings = diagnosis_of(context, port);
    }
    judge_declared_rounding(context, run, compared, facts, model, output);
  }
  if (!facts.deterministic) {
    output.findings.push_back(finding_of_repeats(port.name));
  }
  const bool has_own = entry->ideal.has_value() && output.pass.empty();
  if (context.last_pass != nullptr && (has_own || (!output.pass.empty() && !all_ok(output.criteria)))) {
    output.findings.push_back(pass_finding(c, output));
  }
  return output;
}

void decide_status(RunResult& result, const prepare::PreparedCase& prepared) {
  const std::vector<op::Port>& ports = prepared.ports;
  const plan::ToleranceSpec& wanted = prepared.c->tolerance;
  result.status = Status::pass;
  for (const OutputResult& output : result.outputs) {
    if (std::string failure = failure_of(output); !failure.empty() && result.status != Status::fail) {
      result.status = Status::fail;
      result.failing = std::move(failure);
    }
  }
  const bool proven = std::ranges::any_of(result.outputs, proves_something);
  const OutputResult& main_output = main_output_of(result, ports);
  for (const OutputResult& output : result.outputs) {
    constexpr std::uint64_t kMinElements = 2;  // a single number is always constant
    // Only the main output: others (such as a map in which all experts are selected) may legitimately be constant.
    const bool main = &output == &main_output;
    const bool constant = main && output.statistics.expected_constant && output.statistics.elements >= kMinElements;
    if (result.status == Status::pass && constant && !(output.vanishes && proven)) {
      result.status = Status::inconclusive;
      result.failing = output.port + ": every output is expected to be the same number, so passing proves little";
    }
    const bool finite = output.statistics.finite == output.statistics.elements;  // other patterns are no constants
    if (result.status == Status::pass && main && finite && output.certificate.is_constant_within_error()) {
      result.status = Status::inconclusive;
      result.failing =
          output.port + ": every output is expected to be the same number within its error, so passing proves little";
    }
    const std::string doubt = output.doubt.empty() ? doubt_about(output, main, wanted) : output.doubt;
    if ((result.status == Status::pass || result.status == Status::warn) && !doubt.empty()) {
      result.status = Status::inconclusive;
      result.failing = doubt;
    }
    if (result.status == Status::pass && !output.warning.empty()) {
      result.status = Status::warn;
      result.failing = output.warning;
    }
    const std::string fake = output.certificate.vacuous_with();
    if (result.status == Status::pass && !fake.empty()) {
      result.status = Status::inconclusive;
      result.failing =
          fmt::format("{}: a fake result (\"{}\") would also pass, so passing proves little", output.port, fake);
    }
  }
  const std::string of_size = wanted.min_judged == 0.0                ? std::string()
                              : prepared.c->op == &op::grouped_gemm() ? doubt_about_groups(result.outputs)
                                                                      : doubt_about_size(result.outputs, main_output);
  for (const std::string& doubt : {doubt_about_fakes(result.outputs), of_size, doubt_about_class(result)}) {
    if (result.status == Status::pass && !doubt.empty()) {
      result.status = Status::inconclusive;
      result.failing = doubt;
    }
  }
}

/// What no output tells from what it should be.
std::vector<std::string> not_told(const std::vector<OutputResult>& outputs) {
  using Outcome = tolerance::Fake::Outcome;
  std::vector<std::string> texts;
  std::vector<std::string> told;
  for (const OutputResult& output : outputs) {
    for (const tolerance::Fake& fake : output.certificate.fakes) {
      if (fake.outcome == Outcome::rejected) {
        told.push_back(fake.name);
      }
    }
  }
  for (const OutputResult& output : outputs) {
    for (const tolerance::Fake& fake : output.certificate.fakes) {
      if (fake.outcome == Outcome::not_told && std::ranges::find(told, fake.name) == told.end() &&
          std::ranges::find(texts, fake.detail) == texts.end()) {
        texts.push_back(fake.detail);
      }
    }
  }
  return texts;
}

/// The reference's outputs for the inputs, which the key stands for.
std::shared_ptr<const op::Values> values_given(const EvaluationContext& context, const std::string& key,
                                               const std::vector<op::Operand>& inputs) {
  std::shared_ptr<const op::Values> values = context.cache->find_values(key);
  if (values == nullptr) {
    const core::Span span("values", "what the run left");
    const op::ReferenceRequest request{&context.group->params, inputs, context.group->sample};
    values = std::make_shared<const op::Values>(context.group->row->reference.values(request));
    context.cache->store_values(key, values);
  }
  return values;
}

/// What the last of several passes should have made of what the run's earlier ones left; null if there is one.
std::shared_ptr<const LastPass> last_pass_of(const EvaluationContext& context, const worker::RunReport& run) {
  std::shared_ptr<LastPass> last = passed_on_by(*context.prepared, context.host, run);
  if (last == nullptr) {
    return last;
  }
  const std::string key = fmt::format("{}|{}", static_cast<const void*>(context.prepared->rounding.get()), last->key);
  last->values = values_given(context, key, last->inputs);
  std::vector<op::Operand> chosen = context.prepared->rounding->operands;
  for (const op::Port& port : context.prepared->ports) {
    if (is_chosen(*context.prepared, port)) {
      chosen.push_back(op::operand_named(last->inputs, port.name));
    }
  }
  if (chosen.size() == last->inputs.size()) {
    last->given_choice = last->values;
  } else if (chosen.size() > context.prepared->rounding->operands.size()) {
    last->given_choice = values_given(context, key + "choice", chosen);
  }
  return last;
}

RunResult judged(EvaluationContext& context, const worker::RunReport& run, double& comparison_s) {
  RunResult result;
  result.run = run;
  context.last_pass = last_pass_of(context, run);
  const PrecisionClass expected = expected_of(context);
  tolerance::RunFacts facts{.guards_intact = run.guards_intact,
                            .inputs_intact = run.inputs_intact,
                            .expected = model::judged_class(*context.prepared->c->mode, expected, run.observed),
                            .observed = run.observed.value_or(PrecisionClass::unknown)};
  result.expected_class = expected;
  context.judged = facts.expected;
  context.converted = converted_values(context, run, facts.expected);
  context.settled = settled_values(context);
  const prepare::Stopwatch watch;
  const prepare::PreparedCase& prepared = *context.prepared;
  const auto is_judged = [&](const op::Port& port) {
    return port.role == op::Role::output ||
           (port.role == op::Role::amax && context.group->sample.all());  // a sample has no maximum
  };
  // What is not judged must repeat as well; the first output that is judged answers for it.
  const bool unjudged_repeat = std::ranges::all_of(prepared.ports, [&](const op::Port& port) {
    return port.role != op::Role::amax || is_judged(port) || repeats(run, port.name);
  });
  for (std::size_t i = 0; i < prepared.ports.size(); ++i) {
    const op::Port& port = prepared.ports[i];
    if (is_judged(port)) {
      facts.deterministic = repeats(run, port.name) && (unjudged_repeat || !result.outputs.empty());
      result.outputs.push_back(evaluate_port(context, run, i, facts));
    }
  }
  judge_by_own_gates(context, result);
  if (!context.gates_only) {
    result.formats = port_formats(prepared, context.host);
  }
  decide_status(result, prepared);
  result.not_told = not_told(result.outputs);
  if (!context.gates_only) {
    add_pictures(context, run, facts.expected, result);
  }
  comparison_s += watch.seconds();
  return result;
}

/// The result if rows that are not all there at a time show it: only a pass is known to be all there is to say.
std::optional<RunResult> streamed(EvaluationContext& context, const worker::RunReport& run, double& comparison_s) {
  const prepare::Stopwatch watch;
  EvaluationContext own = context;
  ComparisonCache cache;  // of statistics without what only all rows show
  own.cache = &cache;
  std::optional<RunResult> result;
  try {
    own.streamed = streamed_values(own);
    if (own.streamed != nullptr) {
      double part_of_it = 0;
      result = judged(own, run, part_of_it);
    }
  } catch (const metric::NeedsAllRows&) {
    result.reset();
  }
  comparison_s += watch.seconds();
  return result.has_value() && result->status == Status::pass ? std::move(result) : std::nullopt;
}

}  // namespace

RunResult evaluate_run(EvaluationContext& context, const worker::RunReport& run, double& comparison_s) {
  if (!run.error.empty()) {
    RunResult result;
    result.run = run;
    result.status = Status::error;
    result.failing = run.error;
    return result;
  }
  if (std::optional<RunResult> result = streamed(context, run, comparison_s)) {
    return *std::move(result);
  }
  const prepare::WholeRows whole(*context.group, *context.prepared->rounding);
  // Time spent waiting for references does not count as comparison.
  if (!context.group->yardsticks_on_demand) {
    context.group->yardsticks.wait();
  }
  context.prepared->rounding->values.wait();
  if (!context.prepared->rounding->identity) {
    context.group->total.wait();
  }
  return judged(context, run, comparison_s);
}

}  // namespace numcheck::verdict
