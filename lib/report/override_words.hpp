// The override table in sentences.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report {

/// "fp32" -> "FP32", "tf32_rne" -> "TF32": precision classes as people write them; unknown names as they are.
[[nodiscard]] std::string class_words(std::string_view class_name);

/// One sentence for every op x mode x backend of the rows of override_effect.
[[nodiscard]] nlohmann::json override_sentences(const nlohmann::json& rows);

}  // namespace numcheck::report
