#include "verdict/conversion.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "op/field.hpp"
#include "op/gemm.hpp"
#include "prepare/grouping.hpp"

namespace numcheck::verdict {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 14;

bool is_converted(std::string_view port) {
  return port == "a" || port == "b";
}

bool fits(model::PrecisionClass judged, core::Dtype format) {
  return judged == model::PrecisionClass::bf16_inputs ? format == core::Dtype::bf16 : format == core::Dtype::tf32;
}

bool is_power_of_two(double x) {
  int exponent = 0;
  return std::fabs(std::frexp(x, &exponent)) == 0.5;
}

bool may_overflow(const EvaluationContext& context, core::Dtype format) {
  return std::ranges::any_of(context.prepared->rounding->operands, [&](const op::Operand& operand) {
    const double largest = context.prepared->rounding->largest_code.find(operand.port)->second;
    return is_converted(operand.port) && !(largest <= core::dtype_info(format).max_finite);
  });
}

core::Buffer<double> convert(const op::Operand& operand, const model::Conversion& conversion) {
  core::Buffer<double> to(operand.elements());
  const auto element = static_cast<std::size_t>(core::dtype_info(conversion.format).storage_bytes);
  core::parallel_chunks(to.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    thread_local std::vector<std::byte> words;
    words.resize((end - begin) * element);
    core::encode({operand.data + begin, end - begin}, conversion.format, words, core::Overflow::ieee,
                 conversion.rounding);
    core::decode(words, conversion.format, to.span().subspan(begin, end - begin));
  });
  return to;
}

/// Replaces A and B; `owned` keeps what they point to.
std::vector<op::Operand> convert_all(std::vector<op::Operand> operands, const model::Conversion& conversion,
                                     std::vector<core::Buffer<double>>& owned) {
  for (op::Operand& operand : operands) {
    if (is_converted(operand.port)) {
      operand.data = owned.emplace_back(convert(operand, conversion)).data();
    }
  }
  return operands;
}

op::Values compute(const EvaluationContext& context, const model::Conversion& conversion) {
  std::vector<core::Buffer<double>> owned;
  const op::ReferenceRequest request{&context.group->params,
                                     convert_all(context.prepared->rounding->operands, conversion, owned),
                                     context.group->sample};
  return context.group->row->reference.values(request);
}

/// Of the values on converted operands, in the cache.
std::string key_of(const EvaluationContext& context, const model::Conversion& conversion) {
  return fmt::format("{}|{}", static_cast<const void*>(context.prepared->rounding.get()), model::describe(conversion));
}

}  // namespace

JudgedOperands::JudgedOperands(const EvaluationContext& context, const worker::RunReport& run)
    : operands_(context.prepared->rounding->operands) {
  if (context.converted != nullptr) {
    operands_ = convert_all(std::move(operands_), *run.conversion, owned_);
  }
}

std::shared_ptr<const op::Values> converted_values(const EvaluationContext& context, const worker::RunReport& run,
                                                   model::PrecisionClass judged) {
  const plan::Case& c = *context.prepared->c;
  if (!run.conversion || run.observed != judged || !fits(judged, run.conversion->format) || c.op != &op::gemm() ||
      c.mode->first != core::Dtype::fp32 || prepare::compares_bits(c) ||
      may_overflow(context, run.conversion->format)) {
    return nullptr;
  }
  const bool alpha_first = context.arithmetic == model::MatrixArithmetic::by_mode_alpha_first;
  if (alpha_first && !is_power_of_two(op::from_params<op::GemmParams>(c.params).alpha)) {
    return nullptr;
  }
  return context.cache->values_or(key_of(context, *run.conversion), [&] { return compute(context, *run.conversion); });
}

void take_for_converted(const EvaluationContext& context, const model::Conversion& conversion,
                        std::shared_ptr<const op::Values> values) {
  context.cache->store_values(key_of(context, conversion), std::move(values));
}

void report_errors(const metric::Statistics& given, metric::Statistics& statistics) {
  statistics.arithmetic = given.arithmetic;
  statistics.total = given.total;
  statistics.rms_expected = given.rms_expected;
  statistics.effective_bits = given.effective_bits;
  statistics.terms = given.terms;
  statistics.max_ulp = given.max_ulp;
  statistics.max_ulp_at_rms = given.max_ulp_at_rms;
  statistics.flip_rate = given.flip_rate;
  statistics.residual_distance = given.residual_distance;
  statistics.flip_rate_predicted = given.flip_rate_predicted;
  statistics.mean_ulp = given.mean_ulp;
  statistics.ulp_histogram = given.ulp_histogram;
  statistics.exact_mismatch = given.exact_mismatch;
  statistics.torch_allclose = given.torch_allclose;
  statistics.numpy_allclose = given.numpy_allclose;
  statistics.te_compare = given.te_compare;
  statistics.plan_allclose = given.plan_allclose;
  statistics.plan_limit_over_bound = given.plan_limit_over_bound;
  statistics.plan_atol_over_ulp = given.plan_atol_over_ulp;
  statistics.plan_ulp_over_bound = given.plan_ulp_over_bound;
  statistics.plan_rel_l2_over_bound = given.plan_rel_l2_over_bound;
}

}  // namespace numcheck::verdict
