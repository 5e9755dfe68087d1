#include "model/error_model.hpp"

namespace numcheck::model {

const char* class_name(PrecisionClass c) noexcept {
  switch (c) {
    case PrecisionClass::fp32:
      return "fp32";
    case PrecisionClass::tf32_rne:
      return "tf32_rne";
    case PrecisionClass::tf32_truncated:
      return "tf32_truncated";
    case PrecisionClass::bf16_inputs:
      return "bf16_inputs";
    case PrecisionClass::native:
      return "native";
    case PrecisionClass::unknown:
      break;
  }
  return "unknown";
}

std::optional<PrecisionClass> class_named(std::string_view name) noexcept {
  for (const PrecisionClass c : {PrecisionClass::fp32, PrecisionClass::tf32_rne, PrecisionClass::tf32_truncated,
                                 PrecisionClass::bf16_inputs, PrecisionClass::native, PrecisionClass::unknown}) {
    if (name == class_name(c)) {
      return c;
    }
  }
  return std::nullopt;
}

}  // namespace numcheck::model
