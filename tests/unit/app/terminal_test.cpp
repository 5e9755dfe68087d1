#include "terminal.hpp"

#include <gtest/gtest.h>

#include "annotations.hpp"
#include "arguments.hpp"
#include "core/error.hpp"
#include "report/views/text_table.hpp"
#include "run/pipeline.hpp"

namespace numcheck::app {
namespace {

TEST(UseColour, the_option_decides_if_it_is_not_auto) {
  const TerminalFacts forbidding{.no_color = true, .dumb = true};
  EXPECT_TRUE(use_colour(ColourChoice::always, forbidding, false));
  const TerminalFacts forcing{.force_color = true};
  EXPECT_FALSE(use_colour(ColourChoice::never, forcing, true));
}

TEST(UseColour, auto_follows_the_conventions) {
  const auto automatic = [](const TerminalFacts& facts, bool tty) {
    return use_colour(ColourChoice::automatic, facts, tty);
  };
  EXPECT_TRUE(automatic({}, true));
  EXPECT_FALSE(automatic({}, false));
  EXPECT_FALSE(automatic({.no_color = true}, true));
  EXPECT_FALSE(automatic({.dumb = true}, true));
  EXPECT_TRUE(automatic({.force_color = true}, false));
  EXPECT_TRUE(automatic({.force_color = true, .dumb = true}, false));
  EXPECT_FALSE(automatic({.no_color = true, .force_color = true}, true));
}

TEST(ProgressLine, says_how_far_and_how_long) {
  EXPECT_EQ(progress_line({37, 84, 2, "gemm/m=1/bf16/sim", 0.25}, 12.0, 100),
            "[37/84] gemm/m=1/bf16/sim   2 failed   00:36 left");
  EXPECT_EQ(progress_line({5, 100, 0, "x", 0.05}, 5.0, 100), "[  5/100] x   0 failed   01:35 left");
  EXPECT_EQ(progress_line({84, 84, 0, "x", 1}, 1.0, 100), "[84/84] x   0 failed");
}

TEST(ProgressLine, cuts_the_identifier_and_never_the_numbers) {
  const std::string line = progress_line({1, 2, 0, std::string(200, 'x'), 0.5}, 1.0, 60);
  EXPECT_LT(report::views::display_width(line), 60u);
  EXPECT_NE(line.find("00:01 left"), std::string::npos);
  EXPECT_NE(progress_line({1, 2, 0, "abcdefghijklmnop", 0.5}, 1.0, 5).find("0 failed"), std::string::npos);
  EXPECT_NE(progress_line({1, 2, 0, std::string(200, 'x'), 0.5}, 1.0, 0).find(std::string(200, 'x')),
            std::string::npos);
}

TEST(ProgressLine, survives_absurd_estimates) {
  EXPECT_NE(progress_line({1, 100000000, 0, "x", 0.01}, 1e18, 100).find("left"), std::string::npos);
  EXPECT_EQ(progress_line({1, 100, 0, "x", 0.009}, 10, 100), "[  1/100] x   0 failed") << "too early to say";
  EXPECT_EQ(progress_line({1, 2, 0, "x", 0}, 1, 100), "[1/2] x   0 failed");
}

TEST(Annotation, escapes_what_workflow_commands_cannot_hold) {
  EXPECT_EQ(annotation("50 % of", {"two lines"}), "::error::50 %25 of%0Atwo lines\n");
  EXPECT_EQ(annotation("a\n::error::b\x1b"), "::error::a\\n::error::b\\x1b\n");
}

TEST(Annotation, names_the_place) {
  plan::Diagnostic diagnostic;
  diagnostic.file = "a,b:c.json";
  diagnostic.line = 3;
  diagnostic.column = 7;
  diagnostic.text = "unknown mode";
  diagnostic.hint = "did you mean \"bf16\"?";
  EXPECT_EQ(annotation(diagnostic),
            "::error file=a%2Cb%3Ac.json,line=3,col=7::unknown mode (did you mean \"bf16\"?)\n");
  diagnostic.severity = plan::Severity::warning;
  diagnostic.line = 0;
  diagnostic.hint.clear();
  EXPECT_EQ(annotation(diagnostic), "::warning file=a%2Cb%3Ac.json::unknown mode\n");
}

TEST(ParseCount, takes_plain_decimal_numbers_within_bounds) {
  EXPECT_EQ(parse_count("12", "--jobs", 1, 64), 12u);
  for (const char* text :
       {"", "0", "65", "+1", "-1", "1.0", "1'000", "0x10", "0b11", "1e1", " 1", "1 ", "99999999999999999999"}) {
    EXPECT_THROW((void)parse_count(text, "--jobs", 1, 64), core::UsageError) << text;
  }
}

TEST(SplitLists, joins_repetitions_and_commas) {
  EXPECT_EQ(split_lists({"a,b", "c", "d"}, "--op"), (std::vector<std::string>{"a", "b", "c", "d"}));
  for (const char* value : {"", ",", "a,", ",a", "a,,b"}) {
    EXPECT_THROW((void)split_lists({value}, "--op"), core::UsageError) << value;
  }
}

TEST(ParseTime, accepts_times_that_one_can_wait_for) {
  EXPECT_EQ(parse_time_s("1.5h", "--timeout", 86400), 5400);
  for (const std::string& text :
       {std::string("0s"), std::string("0.0ms"), std::string("25h"), std::string(400, '9') + "s"}) {
    EXPECT_THROW((void)parse_time_s(text, "--timeout", 86400), core::UsageError) << text;
  }
}

TEST(RequireKnown, suggests_and_lists) {
  try {
    require_known("bf61", "mode", {"bf16", "fp16"});
    FAIL();
  } catch (const core::UsageError& error) {
    EXPECT_STREQ(error.what(), "unknown mode \"bf61\" (did you mean bf16?); choose from: bf16, fp16");
  }
  EXPECT_NO_THROW(require_known("bf16", "mode", {"bf16"}));
}

}  // namespace
}  // namespace numcheck::app
