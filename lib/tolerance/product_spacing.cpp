#include "tolerance/product_spacing.hpp"

#include <algorithm>
#include <cmath>

namespace numcheck::tolerance {
namespace {

constexpr double kUlp32 = 0x1p-23;

}  // namespace

double accumulator_unit(const model::Arithmetic& arithmetic) {
  constexpr int kFp16Bits = 10;
  const int bits = std::min(arithmetic.F, arithmetic.tau);
  return std::ldexp(1.0, -(arithmetic.kind == model::Arithmetic::Kind::fp16_chain ? kFp16Bits : bits));
}

model::Spacing product_spacing(const model::ModelRequest& request, const op::GemmParams& p, const KeptBits& kept) {
  const double unit = std::max(kUlp32, kept.unit);
  const double chains = std::max(1.0, std::ceil(kept.chains));
  const bool random =
      request.first_pattern.order == data::Order::random && request.second_pattern.order == data::Order::random;
  model::Spacing spacing;
  if (random) {
    spacing.value = unit / chains + kUlp32;
    spacing.second = 2 * (unit / std::sqrt(chains) + kUlp32) * kept.enlargement;
  } else {
    spacing.magnitude = unit * kept.enlargement;
  }
  if (p.beta != 0 || p.bias || p.epilogue == "gelu") {
    spacing.magnitude += kUlp32;
  }
  spacing.absolute = unit * kept.subnormal + 0x1p-149 * std::max(1.0, kept.scale);
  return spacing;
}

}  // namespace numcheck::tolerance
