#include "pattern.hpp"

#include <pthread.h>

#include <chrono>
#include <regex>

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace numcheck::app {
namespace {

std::string repeated(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) {
    result += text;
  }
  return result;
}

bool found(const std::string& expression, std::string_view text) {
  return Pattern(expression, "--filter").found_in(std::span(&text, 1)).front();
}

std::string refusal(const std::string& expression) {
  try {
    (void)found(expression, "x");
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Pattern, finds_what_std_regex_search_finds) {
  const std::vector<std::string> texts = {"",
                                          "gemm/m=8,n=8,k=64,tb=1/bf16/cublaslt",
                                          "gemm/m=8,n=8,k=640/fp32/sim/exact",
                                          "layernorm_fwd/rows=1,cols=1024/fp8_e4m3/transformer_engine@2.20.2",
                                          "a\nb",
                                          "NVIDIA_TF32_OVERRIDE=0 A-B",
                                          "Grüße"};
  const std::vector<std::string> expressions = {"",
                                                "k=64",
                                                "k=64/",
                                                "^gemm",
                                                "sim$",
                                                "^$",
                                                "^gemm/.*bf16/",
                                                "k=\\d+/",
                                                "fp(32|8)",
                                                "(bf|fp)16",
                                                "a|b|gemm",
                                                "^a|t$",
                                                "[mn]=8",
                                                "[^/]+/bf16",
                                                "\\bm=8\\b",
                                                "\\w+@\\d+\\.\\d",
                                                ".",
                                                "a.b",
                                                "a[\\s\\S]b",
                                                "k=6{1}4",
                                                "k=6{2,}4",
                                                "(m=8,){1}",
                                                "(?:m|n)=8",
                                                "x*",
                                                "(a*)*$",
                                                "o.*e?r",
                                                "[[:upper:]]-",
                                                "[a-c]\\n",
                                                "fp8_e4m3|bf",
                                                "\\.2$",
                                                "^(gemm|layer).*[0-9]$",
                                                "\\/",
                                                "=0 A",
                                                "\\x2f",
                                                "(^a)|(x$)",
                                                "b$",
                                                "^b"};
  for (const std::string& expression : expressions) {
    for (const std::string& text : texts) {
      EXPECT_EQ(found(expression, text), std::regex_search(text, std::regex(expression)))
          << expression << " in " << text;
    }
  }
}

TEST(Pattern, takes_time_in_proportion_to_the_text) {
  std::vector<std::string> ids;
  for (int i = 0; i < 20'000; ++i) {
    ids.push_back("gemm/m=" + std::to_string(i) + ",n=768,k=8192/bf16/cublaslt/exact/NVIDIA_TF32_OVERRIDE=0");
  }
  const std::vector<std::string_view> texts(ids.begin(), ids.end());
  const auto start = std::chrono::steady_clock::now();
  for (const char* expression : {"(.+)+y", "(a*)*$", "(x+x+)+y", "(.*)*z"}) {
    (void)Pattern(expression, "--filter").found_in(texts);
  }
  // Takes some 0.7 s; backtracking would never get past the first identifier.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(Pattern, one_long_text_is_handled) {
  const std::string text(200'000, 'a');
  EXPECT_FALSE(found("(a+)+b", text));
  EXPECT_TRUE(found("(a|aa)+$", text));
}

TEST(Pattern, refuses_what_has_no_bound) {
  EXPECT_NE(refusal(repeated("(", 15'820) + repeated(")", 15'820)).find("it has 31640 bytes, but the limit is 2000"),
            std::string::npos);
  EXPECT_NE(refusal("((a?){1000}){1000}").find("too many states"), std::string::npos);
  EXPECT_NE(refusal("(a)\\1").find("back-references"), std::string::npos);
  EXPECT_NE(refusal("a(?=b)").find("look-ahead"), std::string::npos);
  EXPECT_NE(refusal("(?!b)a").find("--exclude"), std::string::npos);
  EXPECT_EQ(refusal("\\(?=b"), "") << "an escaped parenthesis is a letter";
}

TEST(Pattern, says_what_is_wrong) {
  EXPECT_EQ(refusal("(").find("--filter: \"(\" is not a usable regular expression: a parenthesis"), 0U);
  EXPECT_NE(refusal("a)|(b").find("a parenthesis"), std::string::npos);
  EXPECT_NE(refusal("[a").find("bracket"), std::string::npos);
  EXPECT_NE(refusal("*a").find("nothing before"), std::string::npos);
  EXPECT_NE(refusal("a{2,1}").find("{n,m}"), std::string::npos);
  EXPECT_NE(refusal(std::string("a\0b", 3)).find("NUL"), std::string::npos);
  EXPECT_EQ(refusal("[\x1b").find('\x1b'), std::string::npos);
}

/// The deepest recursions that the limits allow, started with hardly any stack left.
void* deepest(void*) {
  const std::string text(300, 'a');
  const std::vector<std::string> expressions = {repeated("(", 999) + "a" + repeated(")", 999),
                                                repeated("a|", 999),
                                                repeated("(", 660) + "." + repeated(")*", 660),
                                                repeated(".?", 999),
                                                repeated("(.?)", 499),
                                                repeated("a", 1999)};
  for (const std::string& expression : expressions) {
    (void)found(expression, text);
  }
  return nullptr;
}

TEST(Pattern, does_not_use_the_stack_of_its_caller) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 64 << 10), 0);
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, &attributes, &deepest, nullptr), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

}  // namespace
}  // namespace numcheck::app
