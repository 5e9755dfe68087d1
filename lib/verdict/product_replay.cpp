#include "verdict/product_replay.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/codec.hpp"
#include "model/product.hpp"

namespace numcheck::verdict {
namespace {

using core::Dtype;
using model::PrecisionClass;

model::OperandConversion conversion_of(const EvaluationContext& context, const worker::RunReport& run) {
  if (context.prepared->c->mode->first != Dtype::fp32 || context.judged == PrecisionClass::fp32) {
    return {};
  }
  if (run.conversion) {
    return {.dtype = run.conversion->format, .rounding = run.conversion->rounding};
  }
  return {.dtype = context.judged == PrecisionClass::bf16_inputs ? Dtype::bf16 : Dtype::tf32,
          .rounding = context.judged == PrecisionClass::tf32_truncated ? core::Rounding::toward_zero
                                                                       : core::Rounding::nearest_even};
}

model::MatrixView view_of(const EvaluationContext& context, std::string_view name, std::int64_t batch) {
  const std::vector<op::Port>& ports = context.prepared->ports;
  const auto at = std::ranges::find(ports, name, &op::Port::name);
  const std::int64_t bytes = core::dtype_info(at->dtype).storage_bytes;
  const std::byte* data = context.host[static_cast<std::size_t>(at - ports.begin())].bytes.data();
  return {data + at->offset_bytes + batch * at->batch_stride * bytes, at->dtype, at->rows, at->cols, at->ld, 1};
}

const std::byte* stored_at(const EvaluationContext& context, std::string_view name) {
  const std::vector<op::Port>& ports = context.prepared->ports;
  const auto at = std::ranges::find(ports, name, &op::Port::name);
  return context.host[static_cast<std::size_t>(at - ports.begin())].bytes.data() + at->offset_bytes;
}

/// Whether k is cut where scales change.
bool blocks_cut(const op::GemmParams& p) {
  return op::has_line_scales(p) && op::scaled_products(p) < p.k;
}

}  // namespace

std::optional<op::Product> replayable_product(const EvaluationContext& context, const worker::RunReport& run,
                                              const model::ErrorModel& model, std::string_view output, Beyond beyond) {
  const plan::Case& c = *context.prepared->c;
  if (model.exact || context.judged == PrecisionClass::unknown) {
    return {};
  }
  std::optional<op::Product> product = op::product_behind(*c.op, c.params, output);
  if (!product.has_value() || run.rounding.slices_of(product->group) > 1) {
    return {};
  }
  const op::GemmParams& p = product->params;
  const bool emulated = c.mode->compute == op::Compute::emulated_bf16x9 && context.device->sm >= 100;
  const bool is_alone = p.epilogue == "none" && p.beta == 0 && !p.bias;
  const bool has_products = p.m > 0 && p.n > 0 && p.k > 0;
  // In FP16, every step of an epilogue is rounded.
  const bool adds_in_fp32 = beyond == Beyond::addends && p.epilogue != "gelu" && c.mode->compute != op::Compute::fp16;
  const bool is_sum = has_products && (is_alone || adds_in_fp32);
  return is_sum && !emulated ? std::move(product) : std::nullopt;
}

model::Schedule replayed_schedule(const EvaluationContext& context, const op::GemmParams& p, int split_k) {
  const op::Mode& requested = *context.prepared->c->mode;
  split_k = blocks_cut(p) ? 1 : split_k;
  const bool fp32 = context.judged == PrecisionClass::fp32;
  if (fp32 || context.arithmetic == model::MatrixArithmetic::fp32_chain) {
    return model::gemm_schedule(context.device->sm, *op::find_mode("fp32"), false, false, split_k);
  }
  const op::Mode& mode = context.judged == PrecisionClass::bf16_inputs ? *op::find_mode("bf16") : requested;
  return model::gemm_schedule(context.device->sm, mode, op::gemm_promotes(p, requested), true, split_k);
}

ProductReplay::ProductReplay(const EvaluationContext& context, const worker::RunReport& run, const op::Product& product,
                             Place place)
    : p_(product.params),
      place_(std::move(place)),
      a_emin_(core::dtype_info(context.prepared->c->mode->first).emin),
      b_emin_(core::dtype_info(context.prepared->c->mode->second).emin) {
  load_operands(context, run, product);
  const std::vector<op::Operand>& operands = context.prepared->rounding->operands;
  c_ = p_.beta == 0 ? nullptr : op::operand_named(operands, product.c).data;
  bias_ = p_.bias ? op::operand_named(operands, product.bias).data : nullptr;
}

void ProductReplay::load_operands(const EvaluationContext& context, const worker::RunReport& run,
                                  const op::Product& product) {
  const op::Mode& mode = *context.prepared->c->mode;
  const model::OperandConversion conversion = conversion_of(context, run);
  const model::MatrixView a = view_of(context, product.a, place_.batch);
  const model::MatrixView b = view_of(context, product.b, place_.batch);
  const auto k = static_cast<std::size_t>(p_.k);
  a_ = core::Buffer<float>(place_.rows.size() * k);
  b_ = core::Buffer<float>(k * place_.columns.size());
  model::load_matrix(p_.trans_a ? a.transposed() : a, place_.rows, {}, conversion, a_.span());
  model::load_matrix(p_.trans_b ? b.transposed() : b, {}, place_.columns, conversion, b_.span());
  const Dtype scalars = mode.compute == op::Compute::fp16 ? Dtype::fp16 : Dtype::fp32;
  factor_ = static_cast<float>(core::round_to(p_.alpha, scalars));
  if (op::has_line_scales(p_)) {
    const model::StoredScales stored = {stored_at(context, product.a_scale_inv),
                                        stored_at(context, product.b_scale_inv)};
    scales_ = model::load_line_scales(p_, stored, place_.rows, place_.columns);
  }
  if (mode.scaled) {  // 1 where all scales are those of lines
    const std::vector<op::Operand>& operands = context.prepared->rounding->operands;
    const auto scale_of = [&operands](std::string_view port) {
      return static_cast<float>(op::find_operand(operands, port)->scale);
    };
    factor_ *= scale_of(product.a) * scale_of(product.b);
  }
}

std::vector<double> ProductReplay::replayed(const model::Schedule& schedule) const {
  core::Buffer<float> sums(size());
  model::ProductOperands operands{a_.span(), b_.span(), static_cast<std::int64_t>(place_.rows.size()),
                                  static_cast<std::int64_t>(place_.columns.size()), p_.k};
  operands.a_emin = a_emin_;
  operands.b_emin = b_emin_;
  operands.scales = scales_;
  model::simulate_product(schedule, operands, sums.span());
  std::vector<double> values(sums.size());
  std::ranges::transform(sums.span(), values.begin(), [this](float sum) { return static_cast<double>(factor_ * sum); });
  return values;
}

std::vector<double> ProductReplay::exact_row(std::size_t i) const {
  const auto k = static_cast<std::size_t>(p_.k);
  const auto parts = static_cast<std::size_t>(scales_.parts);
  std::vector<double> sums(place_.columns.size());
  for (std::size_t t = 0; t < k; ++t) {
    const std::size_t part = parts == 0 ? 0 : t / static_cast<std::size_t>(scales_.products);
    const double of_row = parts == 0 ? 1 : static_cast<double>(scales_.a[i * parts + part]);
    const double a = static_cast<double>(a_[i * k + t]) * of_row;
    const float* b = b_.data() + t * sums.size();
    for (std::size_t j = 0; j < sums.size(); ++j) {
      const double of_column = parts == 0 ? 1 : static_cast<double>(scales_.b[j * parts + part]);
      sums[j] += a * (static_cast<double>(b[j]) * of_column);
    }
  }
  std::ranges::for_each(sums, [this](double& sum) { sum *= static_cast<double>(factor_); });
  return sums;
}

std::vector<ProductReplay::Addend> ProductReplay::addends_of_row(std::size_t i) const {
  std::vector<Addend> addends(place_.columns.size());
  for (std::size_t j = 0; j < addends.size(); ++j) {
    const std::int64_t at = (place_.batch * p_.m + place_.rows[i]) * p_.n + place_.columns[j];
    const double of_c = c_ == nullptr ? 0 : p_.beta * c_[at];
    const double of_bias = bias_ == nullptr ? 0 : bias_[place_.columns[j]];
    addends[j] = {of_c + of_bias, std::fabs(of_c) + std::fabs(of_bias)};
  }
  return addends;
}

}  // namespace numcheck::verdict
