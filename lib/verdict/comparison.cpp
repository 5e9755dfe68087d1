#include "verdict/comparison.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "data/inputs.hpp"

namespace numcheck::verdict {
namespace {

/// Expected values of one port: spans into the group's references, or a single number for an amax port.
struct Expectation {
  std::span<const double> value;
  std::span<const float> magnitude;
  std::span<const float> second_moment;
  std::span<const double> ideal;
  std::array<double, 1> own_value{};
  std::array<float, 1> own_magnitude{};
  std::array<float, 1> own_second_moment{};
  std::vector<float> bounds, variances;  ///< of a model with errors of its own
};

template <class Outputs>
const auto* find_output(const Outputs& outputs, std::string_view port) {
  const auto found = std::ranges::find_if(outputs, [port](const auto& output) { return output.port == port; });
  return found == outputs.end() ? nullptr : &*found;
}

template <class Outputs>
const auto& output_named(const Outputs& outputs, std::string_view port) {
  const auto* found = find_output(outputs, port);
  if (found == nullptr) {
    throw core::InternalError("the reference has no output " + std::string(port));
  }
  return *found;
}

bool judges_last_pass(const EvaluationContext& context, const op::Port& port) {
  return context.last_pass != nullptr && !port.passed_on;
}

/// Largest yardstick of the elements that are not NaN. A NaN yardstick is unbounded, and so is the maximum then.
float largest_yardstick(std::span<const float> yardsticks, std::span<const double> values) {
  float largest = 0;
  for (std::size_t i = 0; i < yardsticks.size(); ++i) {
    if (!std::isnan(values[i])) {
      largest = std::isnan(yardsticks[i]) ? std::numeric_limits<float>::infinity() : std::max(largest, yardsticks[i]);
    }
  }
  return largest;
}

/// Elements that the op leaves to the implementation count as 0.
void leave_out(std::span<const op::OutputValues::Range> outside, std::vector<float>& yardsticks) {
  for (const op::OutputValues::Range& range : outside) {
    std::fill(yardsticks.begin() + range.begin, yardsticks.begin() + range.end, 0.0F);
  }
}

/// Reduces to max |y|. Every element's bound holds for the maximum too, so the largest yardsticks apply to it.
void reduce_to_amax(Expectation& e) {
  for (const double y : e.value) {
    e.own_value[0] = std::fmax(e.own_value[0], std::fabs(y));
  }
  e.own_magnitude[0] = largest_yardstick(e.magnitude, e.value);
  e.own_second_moment[0] = largest_yardstick(e.second_moment, e.value);
  e.value = e.own_value;
  e.magnitude = e.own_magnitude;
  e.second_moment = e.own_second_moment;
}

void expect(Expectation& e, const EvaluationContext& context, const op::Port& port, const model::ErrorModel& model) {
  const op::OutputValues& values = expected_values(context, port);
  e.value = values.value.span();
  if (context.group->row->reference.tracked()) {
    e.magnitude = values.magnitude.span();
    e.second_moment = values.second_moment.span();
    e.ideal = port.role == op::Role::output ? values.ideal.span() : std::span<const double>();
    if (judges_last_pass(context, port)) {
      const op::OutputValues* own = context.last_pass->own(*context.prepared->rounding->values.get(), port.name);
      e.ideal = own == nullptr ? std::span<const double>() : own->value.span();
    }
  } else {
    const auto& yardsticks = output_named(context.group->yardsticks.get()->outputs, values.port);
    e.magnitude = yardsticks.magnitude.span();
    e.second_moment = yardsticks.second_moment.span();
  }
  if (model.element_errors) {
    e.bounds.resize(e.value.size());
    e.variances.resize(e.value.size());
    model.element_errors(expected_outputs(context, port), e.bounds, e.variances);
    e.magnitude = e.bounds;
    e.second_moment = e.variances;
  }
  if (port.role == op::Role::amax && values.port != port.name) {
    if (model.element_errors) {
      leave_out(values.outside, e.bounds);
      leave_out(values.outside, e.variances);
    }
    reduce_to_amax(e);
  }
}

/// Norms of the error against values other than those that the verdict uses; needs no yardsticks.
metric::ErrorNorms norms_against(metric::CompareInput input, std::span<const double> values, const op::Sample* sample) {
  const std::vector<float> ones(values.size(), 1.0F);
  input.expected = values;
  input.unrounded = {};
  input.magnitude = ones;
  input.second_moment = ones;
  input.sample = sample;
  input.have_allclose = false;
  return metric::compare(input).arithmetic;
}

/// What the unrounded inputs give; null where it depends on what a device chooses (LastPass::given_choice).
const op::OutputValues* total_values(const EvaluationContext& context, std::string_view port) {
  return find_output(context.group->total.get()->outputs, port);
}

/// Total error on its own sample, when there is no full reference for the unrounded inputs.
metric::ErrorNorms total_on_sample(const EvaluationContext& context, const metric::CompareInput& input,
                                   const op::OutputValues& values) {
  return norms_against(input, values.value.span(), &context.group->total_sample);
}

/// What the total error is measured against: the ideal values if the op itself rounds, otherwise the values.
std::span<const double> exact_values(const op::OutputValues& values) {
  return values.ideal.empty() ? values.value.span() : values.ideal.span();
}

/// The output's bytes with zeros in elements that the op leaves to the implementation; `copy` holds them if there are any.
std::span<const std::byte> without_outside(const op::Port& port, std::span<const std::byte> bytes,
                                           std::span<const op::OutputValues::Range> outside,
                                           std::vector<std::byte>& copy) {
  if (outside.empty()) {
    return bytes;
  }
  copy.assign(bytes.begin(), bytes.end());
  const std::int64_t width = core::dtype_info(port.dtype).storage_bytes;
  for (const op::OutputValues::Range& range : outside) {
    for (std::int64_t index = range.begin; index < range.end; ++index) {
      const std::int64_t row = index / port.cols;
      const std::int64_t element = row / port.rows * port.batch_stride + row % port.rows * port.ld + index % port.cols;
      std::fill_n(copy.begin() + port.offset_bytes + element * width, width, std::byte{0});
    }
  }
  return copy;
}

std::shared_ptr<const ComparisonCache::Entry> compare_port(const EvaluationContext& context,
                                                           const ComparedPort& compared,
                                                           const model::ErrorModel& model) {
  const op::Port& port = compared.port();
  Expectation expectation;
  expect(expectation, context, port, model);
  const plan::ToleranceSpec& wanted = context.prepared->c->tolerance;
  metric::CompareInput input;
  const op::Sample whole;
  input.port = &port;
  std::vector<std::byte> inside;
  const std::span<const op::OutputValues::Range> outside = expected_values(context, port).outside;
  input.got =
      without_outside(port, compared.bytes(), port.role == op::Role::amax ? decltype(outside)() : outside, inside);
  input.expected = expectation.value;
  input.magnitude = expectation.magnitude;
  input.second_moment = expectation.second_moment;
  input.sample = port.role == op::Role::amax ? &whole : &context.group->sample;
  input.model = &model;
  input.have_allclose = wanted.allclose_rtol.has_value() || wanted.allclose_atol.has_value();
  input.rtol = wanted.allclose_rtol.value_or(0);
  input.atol = wanted.allclose_atol.value_or(0);
  const bool main = port.role == op::Role::output;
  const bool identity = context.prepared->rounding->identity;
  const bool same_sample = context.group->total_sample.indices == context.group->sample.indices;
  if (main && identity) {
    input.unrounded = expectation.ideal.empty() ? input.expected : expectation.ideal;
  }
  const op::OutputValues* total = main && !identity ? total_values(context, port.name) : nullptr;
  if (total != nullptr && same_sample) {
    input.unrounded = exact_values(*total);
  }
  auto entry = std::make_shared<ComparisonCache::Entry>();
  entry->statistics = metric::compare(input);
  if (input.sample->all()) {
    compared.measure_in_code_ulps(input.expected, entry->statistics);
  }
  if (!expectation.ideal.empty()) {
    entry->ideal = norms_against(input, expectation.ideal, &whole);
  }
  if (total != nullptr && !same_sample) {
    entry->statistics.total = total_on_sample(context, input, *total);
  }
  entry->vanishes = expected_values(context, port).may_vanish &&
                    std::ranges::all_of(expectation.value, [](double y) { return y == 0; }) &&
                    std::ranges::none_of(expectation.magnitude, [&model](float bound) {
                      return static_cast<double>(bound) >= model.overflow_magnitude;
                    });
  if (expected_values(context, port).unpredictable) {
    entry->statistics.expected_constant = false;
    entry->statistics.worst.clear();  // nothing in particular was expected
  } else if (main) {
    entry->certificate = tolerance::certify(input);
  }
  return entry;
}

}  // namespace

const op::Values& expected_outputs(const EvaluationContext& context, const op::Port& port) {
  if (judges_last_pass(context, port)) {
    return *context.last_pass->values;
  }
  const bool given = context.last_pass != nullptr && context.last_pass->given_choice != nullptr;
  return given && !is_chosen(*context.prepared, port) ? *context.last_pass->given_choice
                                                      : *context.prepared->rounding->values.get();
}

const op::OutputValues& expected_values(const EvaluationContext& context, const op::Port& port) {
  const std::vector<op::OutputValues>& outputs = expected_outputs(context, port).outputs;
  const bool own = std::ranges::find(outputs, port.name, &op::OutputValues::port) != outputs.end();
  return output_named(outputs, port.role == op::Role::amax && !own ? port.of : port.name);
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

std::shared_ptr<const ComparisonCache::Entry> compare_output(const EvaluationContext& context,
                                                             const ComparedPort& compared,
                                                             const model::ErrorModel& model) {
  const plan::ToleranceSpec& wanted = context.prepared->c->tolerance;
  const std::string key =
      fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", static_cast<const void*>(context.prepared->rounding.get()),
                  judges_last_pass(context, compared.port()) ? context.last_pass->key : std::string(),
                  compared.port().name, compared.digest(), model.source, model.output_scale,
                  wanted.allclose_rtol.value_or(-1), wanted.allclose_atol.value_or(-1));
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
