#include "verdict/comparison.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/trace.hpp"
#include "data/inputs.hpp"
#include "metric/bound_size.hpp"
#include "tolerance/gelu_errors.hpp"
#include "verdict/conversion.hpp"
#include "verdict/expectation.hpp"
#include "verdict/output_model.hpp"

namespace numcheck::verdict {
namespace {

/// What the comparison cannot know without z.
void add_slopes_of_gelu(const metric::CompareInput& input, std::span<const float> z, metric::Statistics& statistics) {
  const model::ErrorModel& model = *input.model;
  const auto slopes = tolerance::slopes_of_gelu(model, {z, input.expected, input.magnitude, input.deviation});
  if (slopes.has_value()) {
    statistics.lost = slopes->lost;
    statistics.known_addend = slopes->addend;
  }
}

/// Norms of the error against values other than those that the verdict uses; needs no yardsticks.
metric::ErrorNorms norms_against(metric::CompareInput input, std::span<const double> values, const op::Sample* sample) {
  const std::vector<float> ones(values.size(), 1.0F);
  input.expected = values;
  input.unrounded = {};
  input.magnitude = ones;
  input.deviation = ones;
  input.terms = {};
  input.sample = sample;
  input.have_allclose = false;
  return metric::compare(input).arithmetic;
}

/// Of the plan's own limits that compare() knows nothing of. No bound is asked of an exact output.
void add_worth(const plan::ToleranceSpec& wanted, const metric::CompareInput& input, metric::Statistics& statistics) {
  if (input.model->exact || (!wanted.max_ulp.has_value() && !wanted.rel_l2.has_value())) {
    return;
  }
  const metric::BoundSize bound = metric::bound_size(input);
  // Where nothing has a bound, as in an empty output, no limit is loose.
  const auto over = [](const std::optional<double>& limit, double size) {
    return limit.has_value() && size > 0 ? *limit / size : 0;
  };
  statistics.plan_ulp_over_bound = over(wanted.max_ulp, bound.ulps);
  statistics.plan_rel_l2_over_bound = over(wanted.rel_l2, bound.rel_l2);
}

/// Of an output that is judged by converted operands: the comparison with what the operands as given yield.
metric::Statistics compare_given(const EvaluationContext& judging, const ComparedPort& compared) {
  EvaluationContext context = judging;
  context.converted = nullptr;
  const model::ErrorModel model = output_model(context, compared.port(), context.judged);
  const Expectation expectation(context, compared, model);
  metric::Statistics statistics = metric::compare(expectation.input());
  add_worth(context.prepared->c->tolerance, expectation.input(), statistics);
  return statistics;
}

std::shared_ptr<const ComparisonCache::Entry> compare_port(const EvaluationContext& context,
                                                           const ComparedPort& compared,
                                                           const model::ErrorModel& model) {
  const op::Port& port = compared.port();
  std::optional<Expectation> expectation;
  auto entry = std::make_shared<ComparisonCache::Entry>();
  const auto compare = [&](Expectation::Yardsticks yardsticks) {
    expectation.emplace(context, compared, model, yardsticks);
    const core::Span span("compare", port.name);
    entry->statistics = metric::compare(expectation->input());
  };
  compare(Expectation::Yardsticks::where_needed);
  if (entry->statistics.exact_mismatch > 0 && context.group->yardsticks_on_demand) {
    compare(Expectation::Yardsticks::always);
  }
  const metric::CompareInput& input = expectation->input();
  if (port.role == op::Role::output) {
    add_slopes_of_gelu(input, expected_values(context, port).argument.span(), entry->statistics);
  }
  if (input.sample->all() && input.source == nullptr) {
    compared.measure_in_code_ulps(input.expected, entry->statistics);
  }
  if (context.converted == nullptr) {
    add_worth(context.prepared->c->tolerance, input, entry->statistics);
  } else {
    entry->judged = entry->statistics.arithmetic;
    report_errors(compare_given(context, compared), entry->statistics);
  }
  if (!expectation->ideal().empty()) {
    const op::Sample whole;
    entry->ideal = norms_against(input, expectation->ideal(), &whole);
  }
  if (const op::OutputValues* total = expectation->total_on_own_sample()) {
    entry->statistics.total = norms_against(input, total->value.span(), &context.group->total_sample);
  }
  entry->vanishes = expected_values(context, port).may_vanish &&
                    std::ranges::all_of(input.expected, [](double y) { return y == 0; }) &&
                    std::ranges::none_of(input.magnitude, [&model](float bound) {
                      return static_cast<double>(bound) >= model.overflow_magnitude;
                    });
  if (expected_values(context, port).unpredictable) {
    entry->statistics.expected_constant = false;
    // The op's own gates judge them all.
    entry->statistics.unknown = entry->statistics.undetermined = entry->statistics.order_dependent = 0;
    entry->statistics.worst.clear();  // nothing in particular was expected
    return entry;
  }
  if (context.gates_only) {
    return entry;
  }
  const core::Span span("certify", port.name);
  if (input.source != nullptr) {
    entry->certificate = tolerance::certify(input, wrong_formulas(context, port, input));
    return entry;  // what is wrong with it is found where all rows are there
  }
  entry->wrong = metric::find_wrong(input, entry->statistics, context.prepared->c->tolerance.max_ulp);
  if (port.role == op::Role::output) {
    entry->certificate = tolerance::certify(input, wrong_formulas(context, port, input));
  } else if (port.role == op::Role::amax) {
    entry->certificate = tolerance::certify_formulas(input, wrong_formulas(context, port, input));
  }
  return entry;
}

}  // namespace

bool judges_last_pass(const EvaluationContext& context, const op::Port& port) {
  return context.last_pass != nullptr && !port.passed_on;
}

const op::Values& values_of_case(const EvaluationContext& context) {
  if (context.streamed != nullptr) {
    return context.streamed->values();
  }
  return context.settled != nullptr ? context.settled->values : *context.prepared->rounding->values.get();
}

const op::Values& expected_outputs(const EvaluationContext& context, const op::Port& port) {
  if (judges_last_pass(context, port)) {
    return *context.last_pass->values;
  }
  if (context.converted != nullptr) {
    return *context.converted;
  }
  const bool given = context.last_pass != nullptr && context.last_pass->given_choice != nullptr;
  return given && !is_chosen(*context.prepared, port) ? *context.last_pass->given_choice : values_of_case(context);
}

const op::OutputValues& expected_values(const EvaluationContext& context, const op::Port& port) {
  const std::vector<op::OutputValues>& outputs = expected_outputs(context, port).outputs;
  auto found = std::ranges::find(outputs, port.name, &op::OutputValues::port);
  if (found == outputs.end() && port.role == op::Role::amax) {
    found = std::ranges::find(outputs, port.of, &op::OutputValues::port);
  }
  if (found == outputs.end()) {
    throw core::InternalError(fmt::format("the reference has no output {}", port.name));
  }
  return *found;
}

std::shared_ptr<const ComparisonCache::Entry> ComparisonCache::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second;
}

void ComparisonCache::store(const std::string& key, std::shared_ptr<const Entry> entry) {
  const std::lock_guard lock(mutex_);
  entries_.insert_or_assign(key, std::move(entry));
}

std::shared_ptr<const op::Values> ComparisonCache::find_values(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find(values_, key, [](const auto& entry) -> const std::string& { return entry.first; });
  return found == values_.end() ? nullptr : found->second;
}

void ComparisonCache::store_values(const std::string& key, std::shared_ptr<const op::Values> values) {
  const std::lock_guard lock(mutex_);
  constexpr std::size_t kKept = 2;
  values_.emplace_back(key, std::move(values));
  if (values_.size() > kKept) {
    values_.pop_front();
  }
}

std::shared_ptr<const op::Values> ComparisonCache::values_or(const std::string& key,
                                                             const std::function<op::Values()>& compute) {
  const std::lock_guard lock(computing_);
  std::shared_ptr<const op::Values> values = find_values(key);
  if (values == nullptr) {
    values = std::make_shared<const op::Values>(compute());
    store_values(key, values);
  }
  return values;
}

std::shared_ptr<const WrongFormulas> ComparisonCache::formulas_or(const std::string& key,
                                                                  const std::function<WrongFormulas()>& compute) {
  const std::lock_guard lock(computing_);
  auto& formulas = formulas_[key];
  if (formulas == nullptr) {
    formulas = std::make_shared<const WrongFormulas>(compute());
  }
  return formulas;
}

std::shared_ptr<const ComparisonCache::Entry> compare_output(const EvaluationContext& context,
                                                             const ComparedPort& compared,
                                                             const model::ErrorModel& model) {
  const plan::ToleranceSpec& wanted = context.prepared->c->tolerance;
  const std::string key = fmt::format(
      "{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", static_cast<const void*>(context.prepared->rounding.get()),
      judges_last_pass(context, compared.port()) ? context.last_pass->key
      : context.settled != nullptr               ? context.settled->key
                                                 : std::string(),
      compared.port().name, compared.digest(), model.source, model.output_scale, wanted.allclose_rtol.value_or(-1),
      wanted.allclose_atol.value_or(-1), wanted.max_ulp.value_or(-1), wanted.rel_l2.value_or(-1));
  std::shared_ptr<const ComparisonCache::Entry> entry = context.cache->find(key);
  if (entry == nullptr) {
    entry = compare_port(context, compared, model);
    context.cache->store(key, entry);
  }
  return entry;
}

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

}  // namespace numcheck::verdict
