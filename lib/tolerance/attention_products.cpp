#include "tolerance/attention_products.hpp"

#include "tolerance/accumulation.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::tolerance {

using core::Dtype;

AttentionProducts::AttentionProducts(const model::ModelRequest& request) {
  const bool stored_fp32 = request.mode->first == Dtype::fp32;
  chain = request.arithmetic == model::MatrixArithmetic::fp32_chain ||
          (stored_fp32 && request.expected == model::PrecisionClass::fp32);
  format = chain ? Dtype::fp32 : stored_fp32 ? Dtype::tf32 : request.mode->first;
  arithmetic = model::gemm_arithmetic(request.sm, *request.mode, false, !chain);
}

SumError AttentionProducts::sum(std::int64_t terms) const {
  Accumulation total = fma_accumulation(terms);
  if (!chain) {
    total = either_of(fused_accumulation(arithmetic, terms, 2 * core::dtype_info(format).fraction_bits), total);
  }
  const double v = tf32_unit(), slope = total.slope + total.slope_coherent;
  return {total.magnitude + 2 * v + v * v,
          total.second + 2 * kRoundVariance * v * v,
          total.value,
          total.coherent,
          slope * slope,
          total.star,
          total.absolute};
}

double AttentionProducts::unit() const {
  return chain ? 0 : core::dtype_info(format).unit_roundoff;
}

}  // namespace numcheck::tolerance
