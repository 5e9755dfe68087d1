// What the views in the table (view.cpp) are rendered by. Full and brief reports; strings need not be printable.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::report::views {

[[nodiscard]] std::string render_junit(const nlohmann::json& report);
[[nodiscard]] std::string render_markdown(const nlohmann::json& report);
[[nodiscard]] std::string render_csv(const nlohmann::json& report);
[[nodiscard]] std::string render_html(const nlohmann::json& report);

}  // namespace numcheck::report::views
