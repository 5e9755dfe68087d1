// From bytes to a positioned tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plan/node.hpp"
#include "plan/reporter.hpp"
#include "plan/source.hpp"

namespace numcheck::plan {

/// Keys and values that a plan may have in all its files together: bounds memory, whatever their size (a node takes
/// about 200 bytes).
inline constexpr std::size_t kMaxValues = 250'000;

/// Parses sources[file].text: JSON with // and /* */ comments. Duplicate keys, text that is not UTF-8, nesting beyond
/// kMaxDepth and more than kMaxValues values are errors; the tree is complete only if nothing was reported. `values`
/// counts across all files of the plan.
[[nodiscard]] Node parse_document(const Sources& sources, std::uint32_t file, std::size_t& values, Reporter& reporter);

/// What the parser was doing when it gave up: enough to put into words what is wrong.
struct SyntaxContext {
  enum class Expecting : std::uint8_t {
    document,
    value_or_end,
    key_or_end,
    colon,
    comma_or_end,
    end
  } expecting = Expecting::document;
  std::size_t resume = 0;               ///< end of the last good token
  const Location* container = nullptr;  ///< innermost open array or object
  bool container_is_array = false;
};

/// Reports the syntax error at or after `context.resume`.
void report_syntax_error(const Sources& sources, std::uint32_t file, const SyntaxContext& context, Reporter& reporter);

/// Offset of the first byte at or after `offset` that is neither white space nor part of a comment. An unclosed
/// comment is not skipped.
[[nodiscard]] std::size_t skip_blank(std::string_view text, std::size_t offset) noexcept;

/// True if `token` is a number as in RFC 8259, section 6; the parser takes "01" for two tokens.
[[nodiscard]] bool is_json_number(std::string_view token) noexcept;

/// The hint for something that looks like a number but is not one.
inline constexpr std::string_view kNumberHint =
    "JSON numbers have no leading '+', '.' or zeros, no hexadecimal form and no separators";

/// End of the number-like token (letters, digits, '+', '-', '.') at `offset`.
[[nodiscard]] std::size_t token_end(std::string_view text, std::size_t offset) noexcept;

}  // namespace numcheck::plan
