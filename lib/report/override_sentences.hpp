// The override table as sentences.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// "fp32" -> "FP32", "tf32_rne" -> "TF32": precision classes in their usual spelling; unknown names unchanged.
[[nodiscard]] std::string class_label(std::string_view class_name);

/// One sentence per op x mode x backend in the rows of override_effect, labelled where they are a prediction.
[[nodiscard]] nlohmann::json override_sentences(const nlohmann::json& rows);

}  // namespace numcheck::report
