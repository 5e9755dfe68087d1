// A bound on how deep JSON from outside may nest, checked before it is parsed: values are copied and written out
// recursively, so that 100 000 brackets would overflow the stack.
#pragma once

#include <cstddef>
#include <string_view>

namespace numcheck::core {

/// Lists and objects inside each other; a report has 10.
inline constexpr std::size_t kMaxJsonDepth = 64;

/// True if `json` opens more than `limit` lists and objects inside each other. Of text that is no JSON this holds for
/// what a parser sees before it gives up.
[[nodiscard]] bool nests_deeper(std::string_view json, std::size_t limit = kMaxJsonDepth) noexcept;

}  // namespace numcheck::core
