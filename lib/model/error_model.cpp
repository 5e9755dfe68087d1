#include "model/error_model.hpp"

#include <algorithm>
#include <cctype>

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
    case PrecisionClass::fp8_promoted:
      return "fp8_promoted";
    case PrecisionClass::fp8_rarely_promoted:
      return "fp8_rarely_promoted";
    case PrecisionClass::fp8_fast:
      return "fp8_fast";
    case PrecisionClass::native:
      return "native";
    case PrecisionClass::unknown:
      break;
  }
  return "unknown";
}

std::optional<PrecisionClass> class_named(std::string_view name) noexcept {
  for (const PrecisionClass c :
       {PrecisionClass::fp32, PrecisionClass::tf32_rne, PrecisionClass::tf32_truncated, PrecisionClass::bf16_inputs,
        PrecisionClass::fp8_promoted, PrecisionClass::fp8_rarely_promoted, PrecisionClass::fp8_fast,
        PrecisionClass::native, PrecisionClass::unknown}) {
    if (name == class_name(c)) {
      return c;
    }
  }
  return std::nullopt;
}

std::string describe(const Conversion& conversion) {
  std::string name(core::dtype_info(conversion.format).name);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  switch (conversion.rounding) {
    case core::Rounding::nearest_even:
      return name + ", to nearest even";
    case core::Rounding::nearest_away:
      return name + ", to nearest, ties away from zero";
    case core::Rounding::toward_zero:
      return name + ", truncated";
    case core::Rounding::toward_positive:
      break;
  }
  return name + ", upward";
}

}  // namespace numcheck::model
