#include "verdict/expectation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/trace.hpp"
#include "core/upward.hpp"
#include "op/field.hpp"
#include "op/gemm.hpp"
#include "op/grouped_gemm.hpp"
#include "tolerance/addend_errors.hpp"
#include "tolerance/gelu_errors.hpp"
#include "tolerance/largest_error.hpp"
#include "tolerance/relu_errors.hpp"

namespace numcheck::verdict {
namespace {

template <class Outputs>
const auto* find_output(const Outputs& outputs, std::string_view port) {
  const auto found = std::ranges::find_if(outputs, [port](const auto& output) { return output.port == port; });
  return found == outputs.end() ? nullptr : &*found;
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

/// Errors of the largest magnitude, from those of the elements that are not NaN. Unknown ones are unbounded, and so is that
/// of the maximum then.
struct Largest {
  float magnitude;
  float deviation;
};

Largest largest_error(const metric::CompareInput& input, double largest_value) {
  constexpr float kUnbounded = std::numeric_limits<float>::infinity();
  tolerance::LargestError largest;
  bool unknown = false;
  for (std::size_t i = 0; i < input.expected.size(); ++i) {
    const double y = std::fabs(input.expected[i]);
    if (std::isnan(y)) {
      continue;
    }
    const double bound = static_cast<double>(input.magnitude[i]), deviation = static_cast<double>(input.deviation[i]);
    unknown = unknown || std::isnan(bound) || std::isnan(deviation);
    largest.add(bound, deviation, std::isinf(y) ? 0 : largest_value - y);
  }
  return unknown ? Largest{kUnbounded, kUnbounded}
                 : Largest{core::upward(largest.bound()), core::upward(largest.deviation())};
}

/// Whether A and S2 are B and V.
bool are_errors(const model::ErrorModel& model) {
  const bool as_they_are = model.bound_magnitude == 1 && model.var_second == 1;
  const bool nothing_else = model.bound_value == 0 && model.bound_absolute == 0 && model.var_value == 0 &&
                            model.var_magnitude == 0 && model.var_coherent == 0 && model.var_absolute == 0;
  return model.element_errors != nullptr || (as_they_are && nothing_else);
}

/// Elements that the op leaves to the implementation count as 0.
void leave_out(std::span<const op::OutputValues::Range> outside, std::vector<float>& yardsticks) {
  for (const op::OutputValues::Range& range : outside) {
    std::fill(yardsticks.begin() + range.begin, yardsticks.begin() + range.end, 0.0F);
  }
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

}  // namespace

Expectation::Expectation(const EvaluationContext& context, const ComparedPort& compared, const model::ErrorModel& model,
                         Yardsticks yardsticks)
    : port_(compared.port()) {
  const core::Span span("expect", port_.name);
  expect(context, model, yardsticks);
  const bool amax = port_.role == op::Role::amax;
  const std::span<const op::OutputValues::Range> outside = expected_values(context, port_).outside;
  const plan::ToleranceSpec& wanted = context.prepared->c->tolerance;
  input_.port = &port_;
  input_.got = without_outside(port_, compared.bytes(), amax ? decltype(outside)() : outside, inside_);
  if (!amax) {
    outside_.assign(outside.begin(), outside.end());
    std::ranges::sort(outside_, {}, &op::OutputValues::Range::begin);
    input_.outside = outside_;
  }
  input_.sample = amax ? &whole_ : &context.group->sample;
  input_.model = own_model_.has_value() ? &*own_model_ : &model;
  lines_ = operand_lines(context, port_, model);
  input_.row_lines = lines_.rows;
  input_.column_lines = lines_.columns;
  input_.have_allclose = wanted.allclose_rtol.has_value() || wanted.allclose_atol.has_value();
  input_.rtol = wanted.allclose_rtol.value_or(0);
  input_.atol = wanted.allclose_atol.value_or(0);
  expect_total(context);
}

void Expectation::expect(const EvaluationContext& context, const model::ErrorModel& model, Yardsticks wanted) {
  const op::OutputValues& values = expected_values(context, port_);
  if (context.streamed != nullptr && port_.name == context.streamed->main().name) {
    input_.source = context.streamed.get();
    input_.term_count = values.term_count;
    return;
  }
  input_.expected = values.value.span();
  if (context.group->row->reference.tracked()) {
    input_.magnitude = values.magnitude.span();
    input_.deviation = values.deviation.span();
    input_.terms = values.terms.span();
    input_.term_count = values.term_count;
    ideal_ = port_.role == op::Role::output ? values.ideal.span() : std::span<const double>();
    if (judges_last_pass(context, port_)) {
      const op::OutputValues* own = context.last_pass->own(*context.prepared->rounding->values.get(), port_.name);
      ideal_ = own == nullptr ? std::span<const double>() : own->value.span();
    }
  } else if (!model.exact || wanted == Yardsticks::always) {
    const prepare::Rounding& rounding = *context.prepared->rounding;
    const auto& of_operands = rounding.yardsticks.valid() ? rounding.yardsticks : context.group->yardsticks;
    const auto* yardsticks = find_output(of_operands.get()->outputs, values.port);
    if (yardsticks == nullptr) {
      throw core::InternalError("the reference has no yardsticks of output " + std::string(values.port));
    }
    input_.magnitude = yardsticks->magnitude.span();
    input_.deviation = yardsticks->deviation.span();
    if (model.terms) {
      input_.terms = input_.magnitude;
      input_.term_count = model.reduction;
    }
  }
  narrow(context, model);
  take_errors(context, model);
}

void Expectation::narrow(const EvaluationContext& context, const model::ErrorModel& given) {
  const op::OutputValues& values = expected_values(context, port_);
  const std::size_t size = input_.magnitude.size();
  const bool has_function = given.gelu.has_value() || given.relu;
  const plan::Case& c = *context.prepared->c;
  const bool has_addends = tolerance::separates_addends(given);
  if (size == 0 || (!has_function && !has_addends) || (has_function && values.argument.size() != size)) {
    return;
  }
  bounds_.assign(input_.magnitude.begin(), input_.magnitude.end());
  deviations_.assign(input_.deviation.begin(), input_.deviation.end());
  input_.magnitude = bounds_;
  input_.deviation = deviations_;
  if (has_addends) {
    tolerance::Sums sums{.narrow = values.argument.span(), .wide = {}, .indices = context.group->sample.indices};
    if (!has_function) {
      sums.wide = input_.expected;
    }
    const std::string_view output = port_.role == op::Role::amax ? port_.of : port_.name;
    const op::GemmParams product = op::product_behind(*c.op, c.params, output).value().params;
    const std::vector<op::Operand> operands = op::operands_behind(*c.op, context.prepared->rounding->operands, output);
    tolerance::separate_addends(given, tolerance::addends_of(product, operands), sums, bounds_, deviations_);
    own_model_ = tolerance::without_addends(given);
  }
  const model::ErrorModel& model = own_model_.has_value() ? *own_model_ : given;
  if (has_function) {
    (model.gelu ? tolerance::narrow_to_gelu : tolerance::narrow_to_relu)(model, values.argument.span(), bounds_,
                                                                         deviations_);
  }
}

void Expectation::take_errors(const EvaluationContext& context, const model::ErrorModel& model) {
  const op::OutputValues& values = expected_values(context, port_);
  if (model.element_errors) {
    bounds_.resize(input_.expected.size());
    deviations_.resize(input_.expected.size());
    model.element_errors(expected_outputs(context, port_), bounds_, deviations_);
    input_.magnitude = bounds_;
    input_.deviation = deviations_;
  }
  if (model.row_slopes && port_.role == op::Role::output) {
    row_slopes_ = model.row_slopes(expected_outputs(context, port_));
    input_.row_slopes = row_slopes_;
  }
  if (model.element_terms) {
    terms_.resize(input_.expected.size());
    model.element_terms(expected_outputs(context, port_), terms_);
    input_.terms = terms_;
    input_.term_count = model.reduction;
  }
  if (port_.role == op::Role::amax && values.port != port_.name) {
    if (model.element_errors) {
      leave_out(values.outside, bounds_);
      leave_out(values.outside, deviations_);
    }
    reduce_to_amax(model);
  }
}

/// Reduces to max |y|. Yardsticks that are not errors are the largest ones, with which every element's bound holds for the
/// maximum, too.
void Expectation::reduce_to_amax(const model::ErrorModel& model) {
  for (const double y : input_.expected) {
    own_value_[0] = std::fmax(own_value_[0], std::fabs(y));
  }
  if (are_errors(model)) {
    const Largest largest = largest_error(input_, own_value_[0]);
    own_magnitude_[0] = largest.magnitude;
    own_deviation_[0] = largest.deviation;
  } else {
    own_magnitude_[0] = largest_yardstick(input_.magnitude, input_.expected);
    own_deviation_[0] = largest_yardstick(input_.deviation, input_.expected);
  }
  input_.expected = own_value_;
  input_.magnitude = own_magnitude_;
  input_.terms = {};  // the largest number is not a sum
  input_.deviation = own_deviation_;
}

void Expectation::expect_total(const EvaluationContext& context) {
  if (port_.role != op::Role::output) {
    return;
  }
  if (input_.source != nullptr) {
    input_.unrounded_is_expected = context.prepared->rounding->identity;
    return;
  }
  if (context.prepared->rounding->identity) {
    input_.unrounded = ideal_.empty() ? input_.expected : ideal_;
    return;
  }
  // Null where it depends on what a device chooses (LastPass::given_choice).
  const op::Values& all = context.streamed != nullptr ? context.streamed->total() : *context.group->total.get();
  const op::OutputValues* total = find_output(all.outputs, port_.name);
  if (total != nullptr && context.group->total_sample.indices == context.group->sample.indices) {
    input_.unrounded = exact_values(*total);
  } else {
    total_ = total;
  }
}

}  // namespace numcheck::verdict
