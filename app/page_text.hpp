// Pages of `te-numcheck explain`: text in a small part of Markdown, filled to the width of the terminal.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace numcheck::app {

/// A row of a table: a term and what it means.
struct Term {
  std::string term;
  std::string text;
};

/// A table: terms, and texts filled to `width` columns, at most 100.
[[nodiscard]] std::string render_terms(const std::vector<Term>& terms, std::size_t width);

/// The rows of the table that a page names; throws core::InternalError if there is none of that name.
using TermsOf = std::function<std::vector<Term>(std::string_view name)>;

/// Headings ("# ..."), paragraphs and list entries ("- ...") are filled to `width` columns, at most 100; lines that are
/// indented by four are kept as they are; a line {{name}} becomes a table. Every other line is a paragraph.
[[nodiscard]] std::string render_page(std::string_view source, const TermsOf& terms_of, std::size_t width, bool colour);

}  // namespace numcheck::app
