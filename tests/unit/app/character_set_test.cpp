#include "character_set.hpp"

#include <gtest/gtest.h>

namespace numcheck::app {
namespace {

TEST(Utf8Locale, is_named_by_the_first_variable_that_is_set) {
  EXPECT_TRUE(is_utf8_locale("", "", "en_US.UTF-8"));
  EXPECT_TRUE(is_utf8_locale("C.utf8", "", ""));
  EXPECT_FALSE(is_utf8_locale("C", "", "en_US.UTF-8"));
  EXPECT_FALSE(is_utf8_locale("", "POSIX", "en_US.UTF-8"));
  EXPECT_TRUE(is_utf8_locale("", "de_DE.UTF-8", "C"));
  EXPECT_FALSE(is_utf8_locale("", "", "de_DE.ISO-8859-1"));
  EXPECT_FALSE(is_utf8_locale("", "", "")) << "no locale is the C locale";
}

TEST(InAscii, keeps_ascii_and_the_width_of_what_views_draw) {
  EXPECT_EQ(in_ascii("gemm/m=1…/bf16\n"), "gemm/m=1~/bf16\n");
  EXPECT_EQ(in_ascii("NVIDIA H200 · sm_90 – 4096 × 4096"), "NVIDIA H200 - sm_90 - 4096 x 4096");
  EXPECT_EQ(in_ascii("\x1b[31mFAIL\x1b[0m"), "\x1b[31mFAIL\x1b[0m");
}

TEST(InAscii, escapes_the_rest_and_broken_bytes) {
  EXPECT_EQ(in_ascii("caf\xC3\xA9 \xFF\xC3"), "caf\\u{e9} \\xff\\xc3");
  EXPECT_EQ(in_ascii(""), "");
}

}  // namespace
}  // namespace numcheck::app
