// Which precision class a request should get under NVIDIA_TF32_OVERRIDE; source: configs/tf32_classes.json.
#pragma once

#include <optional>
#include <string_view>

#include "model/error_model.hpp"
#include "op/mode.hpp"

namespace numcheck::model {

/// Class of the operands expected for a mode. `override_value` is the value of NVIDIA_TF32_OVERRIDE, empty if unset.
/// Exactly "0" forbids and exactly "1" forces TF32; every other value behaves as unset (measured for cuBLASLt 13.1 and
/// cuDNN 9.19). Modes whose operands are not FP32 are `native`.
[[nodiscard]] PrecisionClass expected_class(const op::Mode& mode, std::string_view override_value);

/// True if a run whose operands were observed in class `observed` honours a request for which `expected` is expected:
/// the same class, or one that the table accepts in its place, namely FP32 instead of TF32, because every such request
/// only permits TF32 (one of eight cuBLASLt algorithms for FAST_TF32 at 512^3 is plain FP32).
[[nodiscard]] bool acceptable_class(PrecisionClass expected, PrecisionClass observed);

/// True if the mode's request itself permits operands of that class, although it usually gets another: a run observed
/// in it is judged by it. BF16 for FAST_16BF.
[[nodiscard]] bool permitted_class(const op::Mode& mode, PrecisionClass observed);

/// The class by which a run is judged: the one that was observed if the request permits it, otherwise the expected one. If
/// none was observed, because an epilogue such as gelu hides it, the least precise one that the request permits.
[[nodiscard]] PrecisionClass judged_class(const op::Mode& mode, PrecisionClass expected,
                                          std::optional<PrecisionClass> observed);

}  // namespace numcheck::model
