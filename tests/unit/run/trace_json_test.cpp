#include "run/trace_json.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace numcheck::run {
namespace {

using core::Span;
using core::Trace;
using core::TraceSection;

std::string written(const Trace& trace, const TraceFacts& facts = {}) {
  std::string text;
  write_trace(trace, facts, [&text](std::string_view piece) { text += piece; });
  return text;
}

TEST(TraceJson, an_empty_trace_is_valid) {
  const nlohmann::json json = nlohmann::json::parse(written(Trace(), {{"plan", "caf\u00e9 \"x\""}}));
  EXPECT_EQ(json.at("otherData").at("plan"), "caf\u00e9 \"x\"");
  ASSERT_EQ(json.at("traceEvents").size(), 1U);
  EXPECT_EQ(json.at("traceEvents")[0].at("args").at("name"), "te-numcheck");
}

TEST(TraceJson, says_what_is_known_of_a_span) {
  Trace trace;
  const TraceSection section(&trace, "coordinator");
  {
    const TraceSection one(&trace, "", {.name = "gemm/\"a\"\n"});
    const Span span("draw", "x\xff");
  }
  {
    const TraceSection several(&trace, "", {.name = "gemm/b", .cases = 3});
    const Span span("reference");
  }
  const Span running("wait for cases");
  const std::string text = written(trace);
  EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  const nlohmann::json events = nlohmann::json::parse(text).at("traceEvents");
  ASSERT_EQ(events.size(), 6U);
  EXPECT_EQ(events[1].at("name"), "thread_name");
  EXPECT_EQ(events[1].at("args").at("name"), "coordinator");
  EXPECT_EQ(events[2].at("name"), "thread_sort_index");
  EXPECT_EQ(events[3].at("name"), "draw");
  EXPECT_EQ(events[3].at("ph"), "X");
  EXPECT_EQ(events[3].at("args"), nlohmann::json({{"case", "gemm/\"a\"\n"}, {"detail", "x\ufffd"}}));
  EXPECT_EQ(events[4].at("args"), nlohmann::json({{"group", "gemm/b"}, {"cases", 3}}));
  EXPECT_EQ(events[5].at("args"), nlohmann::json({{"unfinished", true}}));
  for (std::size_t i = 3; i < events.size(); ++i) {
    EXPECT_EQ(events[i].at("tid"), events[1].at("tid"));
    EXPECT_GE(events[i].at("ts").get<double>(), 0);
    EXPECT_GE(events[i].at("dur").get<double>(), 0);
  }
}

}  // namespace
}  // namespace numcheck::run
