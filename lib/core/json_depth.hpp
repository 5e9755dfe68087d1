// A bound on how deeply JSON from outside may nest, checked before it is parsed: values are copied and written
// recursively, so 100 000 brackets would overflow the stack.
#pragma once

#include <cstddef>
#include <string_view>

namespace numcheck::core {

/// Levels of nested lists and objects; a report has 10.
inline constexpr std::size_t kMaxJsonDepth = 64;

/// True if `json` nests lists and objects more than `limit` deep. For text that is not JSON this holds for the part
/// that a parser sees before it gives up.
[[nodiscard]] bool nests_deeper(std::string_view json, std::size_t limit = kMaxJsonDepth) noexcept;

}  // namespace numcheck::core
