// The texts of configs/pages, which the program carries with it: embedded when the build is configured.
#pragma once

#include <string_view>

namespace numcheck::app {

/// The text of configs/pages/<name>.md; empty if there is none.
[[nodiscard]] std::string_view page_source(std::string_view name) noexcept;

}  // namespace numcheck::app
