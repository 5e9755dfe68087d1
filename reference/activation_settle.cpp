#include "reference/activation_settle.hpp"

namespace numcheck::reference {

Clamp clamp_of(const op::ActivationParams& params) {
  const auto fp32 = [](double value) { return static_cast<double>(static_cast<float>(value)); };
  return {fp32(params.limit), fp32(params.alpha), fp32(params.offset)};
}

double with_specials(double y, double bound, float plain) {
  constexpr double kOverflow = 0x1.ffffffp127;  // rounds to infinity in FP32
  const bool close = std::fabs(y) - bound < kOverflow && std::fabs(y) + bound >= kOverflow;
  return std::isnan(plain) || (std::isinf(plain) && !close) ? static_cast<double>(plain) : y;
}

}  // namespace numcheck::reference
