// Text in Markdown.
#pragma once

#include <cstddef>
#include <string>

namespace numcheck::report::views {

/// Hosts drop a larger step summary whole; the rest is for a last line.
inline constexpr std::size_t kMaxMarkdown = (std::size_t{1} << 20) - 1024;

/// The text with what Markdown would take for markup escaped, on one line.
[[nodiscard]] std::string markdown_text(const std::string& text);

}  // namespace numcheck::report::views
