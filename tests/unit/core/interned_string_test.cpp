#include "core/interned_string.hpp"

#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

namespace numcheck::core {
namespace {

static_assert(sizeof(InternedString) == sizeof(void*));
static_assert(std::is_trivially_copyable_v<InternedString>);
static_assert(std::is_convertible_v<const char*, InternedString> && std::is_convertible_v<std::string, InternedString>);
static_assert(!std::is_convertible_v<bool, InternedString> && !std::is_convertible_v<int, InternedString>);

TEST(InternedString, equal_texts_share_one_copy) {
  const std::string text = "causal", other = "causal_bottom_right";
  const InternedString a = text, b = std::string_view(other).substr(0, text.size()), c = "causal", d = other;
  EXPECT_EQ(&a.str(), &b.str());
  EXPECT_EQ(&a.str(), &c.str());
  EXPECT_EQ(a, b);
  EXPECT_NE(a, d);
  EXPECT_NE(&a.str(), &text);
}

TEST(InternedString, has_the_text_that_it_was_made_of) {
  EXPECT_EQ(InternedString().str(), "");
  EXPECT_EQ(InternedString(), InternedString(""));
  const std::string with_zero("a\0b", 3), long_one(10'000, 'x');
  EXPECT_EQ(InternedString(with_zero).str(), with_zero);
  EXPECT_NE(InternedString(with_zero), InternedString("a"));
  EXPECT_EQ(InternedString(long_one).str(), long_one);
}

TEST(InternedString, compares_with_strings) {
  const InternedString gelu = "gelu";
  EXPECT_TRUE(gelu == "gelu");
  EXPECT_TRUE(gelu == std::string("gelu"));
  EXPECT_TRUE(std::string_view("gelu") == gelu);
  EXPECT_FALSE(gelu == "relu");
  EXPECT_FALSE(gelu == "");
}

TEST(InternedString, stays_where_it_is_when_many_follow) {
  const InternedString first = "the first of many";
  const std::string* const before = &first.str();
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_EQ(InternedString("one of many " + std::to_string(i)).str(), "one of many " + std::to_string(i));
  }
  EXPECT_EQ(&InternedString("the first of many").str(), before);
  EXPECT_EQ(first.str(), "the first of many");
}

TEST(InternedString, threads_that_meet_a_text_at_once_share_one_copy) {
  constexpr std::size_t kThreads = 8, kTexts = 1'000;
  std::vector<std::vector<InternedString>> all(kThreads);
  std::vector<std::thread> threads;
  for (std::vector<InternedString>& own : all) {
    threads.emplace_back([&own] {
      for (std::size_t i = 0; i < kTexts; ++i) {
        own.emplace_back("met by all threads: " + std::to_string(i));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (std::size_t i = 0; i < kTexts; ++i) {
    for (const std::vector<InternedString>& own : all) {
      ASSERT_EQ(&own[i].str(), &all.front()[i].str());
      ASSERT_EQ(own[i].str(), "met by all threads: " + std::to_string(i));
    }
  }
}

}  // namespace
}  // namespace numcheck::core
