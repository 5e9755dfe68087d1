// configs/attention_gates.json, which the program carries with it.
#pragma once

#include <string_view>

namespace numcheck::eligibility {

[[nodiscard]] std::string_view attention_gates_text() noexcept;

}  // namespace numcheck::eligibility
