// The error that correct arithmetic may make: deterministic bound B and predicted second moment V per element.
#pragma once

#include <string>

#include "core/dtype.hpp"
#include "op/mode.hpp"
#include "op/value.hpp"

namespace numcheck::tolerance {

/// Precision class of the operands that ran, as observed by bits (probe G6) or expected from the request.
enum class PrecisionClass { fp32, tf32_rne, tf32_truncated, bf16_inputs, native, unknown };

[[nodiscard]] const char* class_name(PrecisionClass c) noexcept;

/// Per element, with A = magnitude, S2 = second moment, y = value, before output rounding:
///   B = bound_magnitude A + bound_value |y| + bound_absolute
///   V = var_second S2 + var_value y^2 + var_magnitude A^2 + var_absolute
/// Output rounding is added by the comparison, which knows the format. All in units of the unscaled output;
/// the comparison multiplies by output_scale where the output is quantised.
struct ErrorModel {
  double bound_magnitude = 0;
  double bound_value = 0;
  double bound_absolute = 0;
  double var_second = 0;
  double var_value = 0;
  double var_magnitude = 0;
  double var_absolute = 0;
  double slope_low = 0;   ///< most negative slope of e on y that an admissible schedule gives (<= 0)
  double kappa = 3;       ///< limit of the rms of e / sqrt(V)
  bool exact = false;     ///< exact leg: the output must equal RN(y) bit for bit
  double output_scale = 1;
  core::Dtype output = core::Dtype::fp32;
  std::string source;     ///< "gemm/bf16 on sm_90: L=16 F=25 RZ, k=4096"
};

/// What a model is made for.
struct ModelRequest {
  const op::Params* params = nullptr;
  const op::Mode* mode = nullptr;
  PrecisionClass expected = PrecisionClass::native;
  int sm = 90;                ///< 10 * major + minor of the device that ran
  std::string backend;        ///< "cuda" means the own sequential FP32 kernel
  bool exact_leg = false;
  double output_scale = 1;
  double first_scale = 1;     ///< scale_inv of the operands
  double second_scale = 1;
};

/// Function of an op that makes its model of one output port.
using ErrorModelFn = ErrorModel (*)(const ModelRequest&, std::string_view port);

/// GEMM: closed forms of tensor_core_numerics.md sections 5.1 to 5.3, over the admissible schedules.
[[nodiscard]] ErrorModel gemm_error_model(const ModelRequest& request, std::string_view port);

}  // namespace numcheck::tolerance
