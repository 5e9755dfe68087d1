#include "page_text.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/strings.hpp"
#include "report/views/text_table.hpp"

namespace numcheck::app {
namespace {

constexpr std::size_t kWidest = 100;    // longer lines are hard to read
constexpr std::size_t kNarrowest = 40;  // narrower ones are not worth filling

/// 0: no terminal, so no limit but that of what reads well.
std::size_t columns_of(std::size_t width) {
  return width == 0 ? kWidest : std::clamp(width, kNarrowest, kWidest);
}

/// The words of `text` in lines of `width` columns; the first begins with `head`, the others are indented as deep.
std::string filled(std::string head, std::string_view text, std::size_t width) {
  using report::views::display_width;
  const std::string indent(display_width(head), ' ');
  std::string result;
  std::string line = std::move(head);
  bool empty = true;
  for (const std::string& word : core::split(text, ' ')) {
    if (!empty && display_width(line) + 1 + display_width(word) > width) {
      result += line + "\n";
      line = indent;
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
  }
  return result + line + "\n";
}

}  // namespace

std::string render_terms(const std::vector<Term>& terms, std::size_t width) {
  const std::size_t columns = columns_of(width);
  std::size_t column = 0;
  for (const Term& term : terms) {
    column = std::max(column, term.term.size());
  }
  std::string text;
  for (const Term& term : terms) {
    text += filled(fmt::format("  {:<{}}  ", term.term, column), term.text, columns);
  }
  return text;
}

std::string render_page(std::string_view source, const TermsOf& terms_of, std::size_t width, bool colour) {
  using report::views::Colour;
  const std::size_t columns = columns_of(width);
  std::string text;
  for (const std::string& line : core::split(source, '\n')) {
    if (line.starts_with("# ")) {
      text +=
          report::views::paint(line.substr(2), Colour::bold, colour) + "\n" + std::string(line.size() - 2, '-') + "\n";
    } else if (line.starts_with("{{")) {
      text += render_terms(terms_of(std::string_view(line).substr(2, line.size() - 4)), width);
    } else if (line.starts_with("    ") || line.empty()) {
      text += line + "\n";
    } else if (line.starts_with("- ")) {
      text += filled("- ", line.substr(2), columns);
    } else {
      text += filled("", line, columns);
    }
  }
  return text.substr(0, text.find_last_not_of('\n') + 1) + "\n";
}

}  // namespace numcheck::app
