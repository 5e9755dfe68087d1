#include "core/json_depth.hpp"

#include <string>

#include <gtest/gtest.h>

namespace numcheck::core {
namespace {

TEST(JsonDepth, counts_open_lists_and_objects) {
  EXPECT_FALSE(nests_deeper("[[1],[2],{\"a\":[]}]", 3));
  EXPECT_TRUE(nests_deeper("[[1],[2],{\"a\":[]}]", 2));
  EXPECT_FALSE(nests_deeper("", 0));
  EXPECT_TRUE(nests_deeper("{}", 0));
}

TEST(JsonDepth, brackets_in_strings_do_not_count) {
  EXPECT_FALSE(nests_deeper(R"(["[[[[", "a\"[[[[", "\\"])", 1));
  EXPECT_TRUE(nests_deeper(R"(["\\", [[]]])", 2)) << "an escaped backslash does not escape the quote after it";
}

TEST(JsonDepth, the_limit_holds_for_what_a_report_needs) {
  EXPECT_FALSE(nests_deeper(std::string(kMaxJsonDepth, '[')));
  EXPECT_TRUE(nests_deeper(std::string(kMaxJsonDepth + 1, '[')));
}

}  // namespace
}  // namespace numcheck::core
