// How diagnostics look: columns, carets, tabs, wide characters, long lines, text that a terminal would act on.
#include <algorithm>

#include <gtest/gtest.h>

#include "plan/source.hpp"
#include "support.hpp"

namespace numcheck::plan {
namespace {

Diagnostic at(const std::string& text, std::size_t begin, std::size_t length) {
  Diagnostic diagnostic;
  diagnostic.text = "here";
  place(diagnostic, {{"f.json", text}}, {0, begin, length});
  return diagnostic;
}

TEST(Diagnostic, has_the_form_of_the_interface) {
  const std::string text = "{\n\n\n\n\n\n\n\n\n\n\n\n\n      \"mode\": [\"bf61\", \"tf32\"],\n}";
  Diagnostic diagnostic = at(text, text.find("\"bf61\""), 6);
  diagnostic.text = "unknown mode \"bf61\"";
  diagnostic.hint = "did you mean \"bf16\"? gemm has: fp32 tf32 bf16";
  diagnostic.note = "a fact";
  diagnostic.pointer = "/cases/0/mode/0";
  EXPECT_EQ(render(diagnostic), R"(f.json:14:16: error: unknown mode "bf61"
   14 |       "mode": ["bf61", "tf32"],
      |                ^~~~~~
   hint: did you mean "bf16"? gemm has: fp32 tf32 bf16
   note: a fact
   at /cases/0/mode/0
)");
}

TEST(Diagnostic, without_position_is_one_line) {
  Diagnostic diagnostic;
  diagnostic.text = "no such file";
  EXPECT_EQ(render(diagnostic), "error: no such file\n");
  diagnostic.file = "f.json";
  diagnostic.severity = Severity::warning;
  EXPECT_EQ(render(diagnostic), "f.json: warning: no such file\n");
  diagnostic.severity = Severity::note;
  EXPECT_EQ(render(diagnostic), "f.json: note: no such file\n");
}

TEST(Diagnostic, counts_code_points_and_pads_wide_characters) {
  const std::string text = "{\"\xC3\xA9\xE6\xBC\xA2\xE5\xAD\x97\": 12}";  // e acute, two CJK characters
  const Diagnostic diagnostic = at(text, text.find("12"), 2);
  EXPECT_EQ(diagnostic.column, 9U);
  EXPECT_EQ(render(diagnostic), "f.json:1:9: error: here\n    1 | " + text + "\n      |           ^~\n");
}

TEST(Diagnostic, underlines_wide_characters_in_full) {
  const std::string text = "[\"\xE6\xBC\xA2\xE5\xAD\x97\"]";
  EXPECT_EQ(render(at(text, 1, 8)), "f.json:1:2: error: here\n    1 | " + text + "\n      |  ^~~~~~\n");
}

TEST(Diagnostic, knows_characters_beyond_the_basic_plane_and_combining_ones) {
  const std::string text =
      "[\"\xF0\x9F\x98\x80"
      "e\xCC\x81\", x]";  // an emoji (two cells), e with a combining acute
  const Diagnostic diagnostic = at(text, text.find('x'), 1);
  EXPECT_EQ(diagnostic.column, 9U);
  EXPECT_EQ(render(diagnostic), "f.json:1:9: error: here\n    1 | " + text + "\n      |         ^\n");
}

TEST(Diagnostic, tabs_are_one_column) {
  const std::string text = "\t\t\"m\":\t1.5";
  const Diagnostic diagnostic = at(text, text.find("1.5"), 3);
  EXPECT_EQ(diagnostic.column, 8U);
  EXPECT_EQ(render(diagnostic), "f.json:1:8: error: here\n    1 |   \"m\": 1.5\n      |        ^~~\n");
}

TEST(Diagnostic, windows_line_ends_are_not_shown) {
  const std::string text = "{\r\n  \"m\": x\r\n}";
  EXPECT_EQ(render(at(text, text.find('x'), 1)), "f.json:2:8: error: here\n    2 |   \"m\": x\n      |        ^\n");
}

TEST(Diagnostic, long_lines_are_cut_around_the_column) {
  const std::string text = std::string(5000, 'a') + "HERE" + std::string(5000, 'b');
  const Diagnostic diagnostic = at(text, 5000, 4);
  EXPECT_EQ(diagnostic.column, 5001U);
  const std::string window = "\xE2\x80\xA6" + std::string(40, 'a') + "HERE" + std::string(56, 'b') + "\xE2\x80\xA6";
  EXPECT_EQ(diagnostic.source_line, window);
  EXPECT_EQ(render(diagnostic),
            "f.json:1:5001: error: here\n    1 | " + window + "\n      | " + std::string(41, ' ') + "^~~~\n");
}

TEST(Diagnostic, long_lines_of_wide_characters_too) {
  std::string text;
  for (int i = 0; i < 500; ++i) {
    text += "\xC3\xA9";
  }
  text += "!";
  const Diagnostic diagnostic = at(text, text.size() - 1, 1);
  EXPECT_EQ(diagnostic.column, 501U);
  EXPECT_EQ(diagnostic.caret_column, 42U);
  EXPECT_EQ(diagnostic.source_line.size(), 3U + 40 * 2 + 1);
}

TEST(Diagnostic, carets_end_with_the_line) {
  const std::string text = "\"abc\ndef\"";
  EXPECT_EQ(render(at(text, 0, 9)), "f.json:1:1: error: here\n    1 | \"abc\n      | ^~~~\n");
}

TEST(Diagnostic, end_of_file_and_beyond) {
  EXPECT_EQ(render(at("", 0, 1)), "f.json:1:1: error: here\n    1 |\n      | ^\n");
  EXPECT_EQ(render(at("[", 99, 1)), "f.json:1:2: error: here\n    1 | [\n      |  ^\n");
  EXPECT_EQ(render(at("[\n", 2, 1)), "f.json:2:1: error: here\n    2 |\n      | ^\n");
}

TEST(Diagnostic, terminal_control_characters_are_escaped) {
  const std::string text = "\x1B[31m\x07\xC2\x9B\xE2\x80\xAE\xFF x";
  const Diagnostic diagnostic = at(text, text.find('x'), 1);
  EXPECT_EQ(diagnostic.column, diagnostic.caret_column);
  const std::string shown = "\\x1b[31m\\x07\\u{9b}\\u{202e}\\xff ";
  EXPECT_EQ(render(diagnostic),
            "f.json:1:11: error: here\n    1 | " + shown + "x\n      | " + std::string(shown.size(), ' ') + "^\n");
  const std::string rendered =
      testing::diagnose(testing::with_case("\"m\\u001b[31m\\u202e\\n" + std::string(100, 'q') + "\": 1"));
  EXPECT_NE(rendered.find("unknown key \"m\\x1b[31m\\u{202e}\\n" + std::string(41, 'q') + "\xE2\x80\xA6\""),
            std::string::npos)
      << rendered;
  for (const char c : rendered) {
    EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n');
  }
}

TEST(Diagnostic, every_field_is_made_printable) {
  Diagnostic diagnostic;
  for (std::string Diagnostic::* field : {&Diagnostic::file, &Diagnostic::text, &Diagnostic::source_line,
                                          &Diagnostic::hint, &Diagnostic::note, &Diagnostic::pointer}) {
    diagnostic.*field = "\n::error::\x1b[2J";
  }
  diagnostic.line = diagnostic.caret_column = 1;
  const std::string rendered = render(diagnostic);
  EXPECT_EQ(std::ranges::count(rendered, '\n'), 6) << rendered;
  EXPECT_EQ(rendered.find('\x1b'), std::string::npos);
  EXPECT_NE(rendered.find("   note: \\n::error::\\x1b[2J\n"), std::string::npos);
}

TEST(Diagnostic, pointers_are_escaped_as_rfc6901_says) {
  const std::string rendered = testing::diagnose(R"({"version": 1, "a/b~c": 1, "cases": []})");
  EXPECT_NE(rendered.find("   at /a~1b~0c\n"), std::string::npos) << rendered;
}

TEST(Source, positions_count_from_one) {
  EXPECT_EQ(line_column("abc", 0).line, 1U);
  EXPECT_EQ(line_column("abc", 0).column, 1U);
  EXPECT_EQ(line_column("a\nb\n", 2).line, 2U);
  EXPECT_EQ(line_column("a\nb\n", 2).column, 1U);
  EXPECT_EQ(line_column("a\nb\n", 3).column, 2U);
}

TEST(Source, utf8_is_that_of_rfc3629) {
  EXPECT_EQ(find_invalid_utf8("plain \xC3\xA9 \xE6\xBC\xA2 \xF0\x9F\x98\x80"), std::string::npos);
  for (const char* bad : {"\x80", "\xC0\xAF", "\xC1\xBF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF0\x80\x80\xAF",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3", "\xE6\xBC", "\xC3(", "\xE6\xBC("}) {
    EXPECT_EQ(find_invalid_utf8(std::string("ab") + bad), 2U) << bad;
  }
}

}  // namespace
}  // namespace numcheck::plan
