#include "screen_text.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/views/text_table.hpp"
#include "reproduce.hpp"

namespace numcheck::app {
namespace {

TEST(ScreenText, passes_only_lines_and_our_colours) {
  const std::string painted = report::views::paint("FAIL", report::views::Colour::alarm, true);
  EXPECT_EQ(screen_text(painted + " a\nb\n", true), painted + " a\nb\n");
  EXPECT_EQ(screen_text(painted, false), "\\x1b[1;37;41mFAIL\\x1b[0m");
  EXPECT_EQ(screen_text("\x1b]0;title\x07\x1b[2J\x1b[3", true), "\\x1b]0;title\\x07\\x1b[2J\\x1b[3");
  EXPECT_EQ(screen_text("a\rb\x7f\xE2\x80\xAE\n", true), "a\\rb\\x7f\\u{202e}\n");
  EXPECT_EQ(screen_text("\n\n", false), "\n\n");
}

TEST(ScreenText, escapes_what_a_ci_service_would_take_for_a_command) {
  EXPECT_EQ(screen_text("::error::x\n", false), "\\x3a:error::x\n");
  EXPECT_EQ(screen_text("a\n  ::add-mask::x", true), "a\n  \\x3a:add-mask::x");
  EXPECT_EQ(screen_text("\xC2\xA0\xE3\x80\x80 ::error::x", false), "\xC2\xA0\xE3\x80\x80 \\x3a:error::x");
  EXPECT_EQ(screen_text("std::regex", false), "std::regex");
  EXPECT_EQ(screen_text("x ##[error]y", false), "x #\\x23[error]y");
  EXPECT_EQ(screen_text("x ##vso[task.complete]y", false), "x #\\x23vso[task.complete]y");
}

TEST(StdoutJson, is_the_same_value_in_printable_ascii) {
  const nlohmann::json value = {
      {"k\x7f\xC3\xA9", "\x1b[31m \xC2\x9B \xE2\x80\xAE \n \xF0\x9F\x98\x80 ##[error] ##vso[x]"}};
  for (const int indent : {-1, 1}) {
    const std::string text = stdout_json(value, indent);
    EXPECT_EQ(nlohmann::json::parse(text), value);
    EXPECT_EQ(text.find("##"), std::string::npos);
    EXPECT_EQ(text.find_first_not_of('\n', 0), 0U);
    for (const char c : text) {
      EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7F)) << text;
    }
  }
}

TEST(ShellWord, is_read_back_unchanged_by_a_shell) {
  EXPECT_EQ(shell_word("configs/plans/quick.json"), "configs/plans/quick.json");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("$(x).json"), "'$(x).json'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("=ls"), "'=ls'");
  EXPECT_EQ(shell_word("a\nb'\\\x1b"), "$'a\\012b\\'\\\\\\033'");
  EXPECT_EQ(shell_word("\xFF"), "$'\\377'");
  EXPECT_EQ(shell_word("Grüße"), "'Grüße'");
}

}  // namespace
}  // namespace numcheck::app
