// Pages filled to a width.
#include "page_text.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/strings.hpp"
#include "explain_pages.hpp"

namespace numcheck::app {
namespace {

std::vector<Term> one_table(std::string_view name) {
  if (name != "colours") {
    throw core::InternalError("no such table");
  }
  return {{"red", "the colour of what fails"}, {"ultramarine", "none"}};
}

TEST(PageText, fills_prose_and_keeps_code) {
  EXPECT_EQ(
      render_page(
          "# Title\n\none two three four five six seven eight nine\n\n    code   stays, however long it is, as it "
          "was written\n\n- a list entry that is longer than the line\n\n{{colours}}\n",
          &one_table, 40, false),
      "Title\n-----\n\none two three four five six seven eight\nnine\n\n    code   stays, however long it is, as it "
      "was "
      "written\n\n- a list entry that is longer than the\n  line\n\n"
      "  red          the colour of what fails\n  ultramarine  none\n");
}

TEST(PageText, widths_have_limits) {
  const std::string words(300, 'x');
  const std::string prose = "a b c d e f g h i j k l m n o p q r s t u v w x y z 1 2 3 4 5 6 7 8 9";
  EXPECT_EQ(render_page(prose, &one_table, 1, false), render_page(prose, &one_table, 40, false));
  EXPECT_EQ(render_page(words, &one_table, 40, false), words + "\n") << "a word is never cut";
  EXPECT_THROW(static_cast<void>(render_page("{{shapes}}", &one_table, 80, false)), core::InternalError);
}

TEST(Pages, fit_the_terminal) {
  for (const PageInfo& page : pages()) {
    for (const std::size_t width : {60U, 80U, 250U}) {
      const std::string text = explain_page(page, width, false);
      EXPECT_FALSE(text.empty());
      for (const std::string& line : core::split(text, '\n')) {
        EXPECT_TRUE(line.starts_with("    ") || line.size() <= std::min<std::size_t>(width, 100))
            << page.name << ": " << line;
      }
    }
  }
}

}  // namespace
}  // namespace numcheck::app
