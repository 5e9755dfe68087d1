#include "core/printable.hpp"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace numcheck::core {
namespace {

std::string utf8(std::uint32_t point) {
  const auto byte = [](std::uint32_t value) { return static_cast<char>(static_cast<unsigned char>(value)); };
  if (point < 0x80) {
    return {byte(point)};
  }
  if (point < 0x800) {
    return {byte(0xC0 | point >> 6), byte(0x80 | (point & 0x3F))};
  }
  if (point < 0x10000) {
    return {byte(0xE0 | point >> 12), byte(0x80 | (point >> 6 & 0x3F)), byte(0x80 | (point & 0x3F))};
  }
  return {byte(0xF0 | point >> 18), byte(0x80 | (point >> 12 & 0x3F)), byte(0x80 | (point >> 6 & 0x3F)),
          byte(0x80 | (point & 0x3F))};
}

TEST(Printable, ordinary_text_is_unchanged) {
  for (const char* text : {"", "gemm/m=1/bf16", "C:\\new", "Grüße, 漢字, \xF0\x9F\x98\x80", "a\xC2\xA0z"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_TRUE(is_printable(text)) << text;
  }
}

TEST(Printable, controls_become_escapes) {
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(printable("\x1b[31m\x7f\x07"), "\\x1b[31m\\x7f\\x07");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\xC2\x9B"
                      "2J\xC2\x85"),
            "\\u{9b}2J\\u{85}");
}

TEST(Printable, characters_that_reorder_hide_or_end_a_line_are_escaped) {
  const auto escaped = [](std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t point = first; point <= last; ++point) {
      EXPECT_FALSE(is_printable(utf8(point))) << std::hex << point;
      EXPECT_EQ(printable("a" + utf8(point)).find("a\\"), 0U) << std::hex << point;
    }
  };
  escaped(0x00, 0x1F);
  escaped(0x7F, 0x9F);
  escaped(0x061C, 0x061C);
  escaped(0x200B, 0x200F);
  escaped(0x2028, 0x202E);
  escaped(0x2060, 0x2069);
  escaped(0xFEFF, 0xFEFF);
  escaped(0xFDD0, 0xFDEF);
  escaped(0xFFFE, 0xFFFF);
  escaped(0xE0000, 0xE007F);
  escaped(0x10FFFE, 0x10FFFF);
  EXPECT_EQ(printable("abc\xE2\x80\xAE"
                      "fdp"),
            "abc\\u{202e}fdp");
  EXPECT_EQ(printable("\xF3\xA0\x81\x81"), "\\u{e0041}");
}

TEST(Printable, bytes_that_are_not_utf8_are_shown_one_by_one) {
  EXPECT_EQ(printable("a\xFF\xFEz"), "a\\xff\\xfez");
  EXPECT_EQ(printable("\xC0\xAF"), "\\xc0\\xaf") << "an overlong form";
  EXPECT_EQ(printable("\xED\xA0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(printable("\xE6\xBC"), "\\xe6\\xbc") << "torn at the end";
}

TEST(Printable, every_byte_string_gives_printable_text_that_stays_the_same) {
  std::uint32_t state = 1;
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) {
      state = state * 1664525U + 1013904223U;
      text += static_cast<char>(static_cast<unsigned char>(state >> 24));
    }
    const std::string shown = printable(text);
    EXPECT_TRUE(is_printable(shown));
    EXPECT_EQ(printable(shown), shown);
  }
}

TEST(Printable, cuts_without_tearing_escapes_or_characters) {
  EXPECT_EQ(printable("abc", 3), "abc");
  EXPECT_EQ(printable("abcd", 3), "abc\xE2\x80\xA6");
  EXPECT_EQ(printable("a\x1b\x1b", 8), "a\\x1b\xE2\x80\xA6");
  EXPECT_EQ(printable_bytes("abc", 2), "ab...");
  EXPECT_EQ(printable_bytes("a\xC3\xA9", 2), "a...");
  EXPECT_EQ(printable_bytes("\n\n", 3), "\\n...");
}

TEST(Error, carries_further_lines_apart_from_its_message) {
  const UsageError error("several digests:", {"one", "two"});
  EXPECT_STREQ(error.what(), "several digests:");
  EXPECT_EQ(error.notes(), (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(IoError("x").notes().empty());
}

}  // namespace
}  // namespace numcheck::core
