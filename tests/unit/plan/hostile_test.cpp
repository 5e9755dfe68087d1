// Malicious plans: a clear error, in bounded time and memory.
#include <ctime>
#include <random>

#include <gtest/gtest.h>

#include "support.hpp"

namespace numcheck::plan {
namespace {

/// First line of the first diagnostic, and a bound on the processor time it took (generous: sanitizers run this too).
std::string first_line(const std::string& text) {
  const std::clock_t start = std::clock();
  const std::string all = testing::diagnose(text);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 20);
  return all.substr(0, all.find('\n'));
}

std::string repeat(std::string_view part, std::size_t count, std::string_view start = "") {
  std::string text(start);
  text.reserve(start.size() + part.size() * count);
  for (std::size_t i = 0; i < count; ++i) {
    text += part;
  }
  return text;
}

TEST(Hostile, hundred_megabytes_of_brackets) {
  const std::string text(100'000'000, '[');
  EXPECT_EQ(first_line(text), "plan.json: error: the plan is larger than 64.0 MiB");
  Limits limits;
  limits.max_file_bytes = 200'000'000;
  const std::string rendered = testing::diagnose(text, limits);
  EXPECT_EQ(rendered.substr(0, rendered.find('\n')),
            "plan.json:1:65: error: lists and objects are nested more than 64 deep");
}

TEST(Hostile, deep_objects) {
  EXPECT_EQ(first_line(repeat("{\"a\":", 100'000)),
            "plan.json:1:321: error: lists and objects are nested more than 64 deep");
  const std::string allowed = "{\"version\": 1, \"$comment\": " + std::string(63, '[') + std::string(63, ']') +
                              ", \"cases\": [{\"op\": \"gemm\", \"params\": {\"m\": 1, \"n\": 1, \"k\": 1}, \"mode\": "
                              "\"bf16\"}]}";
  EXPECT_EQ(testing::diagnose(allowed), "");
}

TEST(Hostile, millions_of_values) {
  EXPECT_EQ(first_line(repeat("[],", 1'000'000, "[")),
            "plan.json:1:749999: error: the plan has more than 250000 keys and values");
  EXPECT_EQ(first_line(repeat("1,", 1'000'000, "[")),
            "plan.json:1:500000: error: the plan has more than 250000 keys and values");
  EXPECT_EQ(first_line(repeat("\"a\":1,", 1'000'000, "{")),
            "plan.json:1:750000: error: the plan has more than 250000 keys and values");
}

TEST(Hostile, many_duplicate_keys) {
  EXPECT_EQ(first_line(repeat("\"a\":1,", 100'000, "{") + "\"version\":1}").substr(0, 41),
            "plan.json:1:8: error: duplicate key \"a\"");
}

TEST(Hostile, many_unknown_keys) {
  std::string text = "{\"version\": 1";
  for (int i = 0; i < 100'000; ++i) {
    text += ",\"q" + std::to_string(i) + "\":1";
  }
  EXPECT_EQ(first_line(text + "}"), "plan.json:1:15: error: unknown key \"q0\"");
}

TEST(Hostile, keys_of_a_megabyte) {
  std::string text = "{\"version\": 1, \"cases\": [{";
  for (int i = 0; i < 40; ++i) {
    text += '"';
    text.append(1'000'000, 'x');
    text += std::to_string(i) + "\": 1, ";
  }
  EXPECT_EQ(first_line(text + "\"op\": \"gemm\"}]}"),
            "plan.json:1:27: error: unknown key \"" + std::string(60, 'x') + "\xE2\x80\xA6\"");
}

TEST(Hostile, numbers_of_a_megabyte) {
  const std::string digits(1'000'000, '9');
  EXPECT_EQ(first_line(testing::with_case("\"params\": {\"m\": " + digits + "}")),
            "plan.json:2:17: error: \"" + std::string(60, '9') + "\xE2\x80\xA6\" is beyond the range of a double");
  EXPECT_EQ(
      first_line(testing::with_case("\"params\": {\"m\": " + digits.substr(0, 300) + "}")),
      "plan.json:2:17: error: \"m\" is " + std::string(40, '9') + "\xE2\x80\xA6; it must be between 0 and 1073741824");
  EXPECT_EQ(first_line(testing::with_case("\"params\": {\"alpha\": 0." + digits + "}")), "");
}

TEST(Hostile, binary_junk) {
  std::string zeros(100, '\0');
  EXPECT_EQ(first_line(zeros), "plan.json:1:1: error: byte 0x00 is not text");
  EXPECT_EQ(first_line("{\"version\": 1}" + zeros), "plan.json:1:15: error: byte 0x00 is not text")
      << "the parser takes NUL for the end";
  EXPECT_EQ(first_line("\x7F"
                       "ELF\x02\x01\x01"),
            "plan.json:1:1: error: byte 0x7f is not text");
  EXPECT_EQ(first_line("{\"name\": \"\xE9\"}"), "plan.json:1:11: error: byte 0xe9 is not text");
  EXPECT_EQ(first_line("{} // \xFF"), "plan.json:1:7: error: byte 0xff is not text");
  EXPECT_EQ(first_line(std::string("\xFF\xFE{\0}\0", 6)), "plan.json:1:1: error: the file is UTF-16");
  EXPECT_EQ(first_line(std::string("\xFE\xFF\0{\0}", 6)), "plan.json:1:1: error: the file is UTF-16");
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string junk(1 + random() % 300, ' ');
    for (char& c : junk) {
      c = static_cast<char>(random());
    }
    EXPECT_NE(testing::diagnose(junk), "");
  }
}

TEST(Hostile, sweeps_that_never_end) {
  EXPECT_EQ(first_line(testing::with_case(R"("params": {"m": {"from": 1, "to": 1000000},
"n": {"from": 1, "to": 1000000}})")),
            "plan.json:1:106: error: the plan has 1000000000000 cases; more than 100000 need --max-cases");
  const std::string huge = R"({"from": -1e30, "to": 1e30, "step": 1e-300})";
  EXPECT_EQ(first_line(testing::with_case(R"("params": {"alpha": )" + huge + R"(, "beta": )" + huge + "}")),
            "plan.json:1:106: error: the plan has 2^64 or more cases; more than 100000 need --max-cases");
  EXPECT_EQ(
      first_line(testing::with_case(repeat(R"({"from": 0, "to": 1073741824},)", 9999, R"("params": {"m": [)") + "1]}")),
      "plan.json:1:106: error: the plan has 10736344508176 cases; more than 100000 need --max-cases");
}

TEST(Hostile, long_defaults_times_many_cases) {
  std::string text = R"({"version": 1, "defaults": {"op": "gemm", "mode": "bf16", "params": {"n": 1, "k": 1, "m": [)";
  text += repeat("1,", 100'000) + "1]}}, \"cases\": [" + repeat("{},", 40'000) + "{}]}";
  const std::string all = testing::diagnose(text);
  EXPECT_NE(all.find("error: \"defaults\" has 100008 values, too many for this many cases"), std::string::npos)
      << all.substr(0, 2000);
}

TEST(Hostile, long_exclude_lists) {
  EXPECT_EQ(first_line(testing::with_case(repeat("{\"m\": 2},", 600, "\"exclude\": [") + "{\"m\": 2}]")),
            "plan.json:2:12: error: \"exclude\" has more than 1000 values");
  EXPECT_EQ(first_line(testing::with_case(repeat("\"a\",", 64, "\"tags\": [") + "\"a\"]")),
            "plan.json:2:9: error: a case has at most 64 tags");
}

TEST(Hostile, a_hundred_thousand_cases_are_fine) {
  const Plan plan =
      testing::load(testing::with_case(R"("params": {"m": {"from": 1, "to": 1000}, "n": {"from": 1, "to": 100}})"));
  EXPECT_EQ(plan.cases.size(), 100'000U);
}

}  // namespace
}  // namespace numcheck::plan
