#include "core/trace.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/parallel.hpp"

namespace numcheck::test {
namespace {

using core::Span;
using core::Trace;
using core::TraceSection;

constexpr Trace::Clock::time_point kRuns = Trace::Clock::time_point::max();

TEST(Trace, without_one_nothing_is_recorded) {
  EXPECT_EQ(core::current_trace().trace, nullptr);
  Span span("draw");
  span.note([]() -> std::string { throw std::logic_error("nobody needs it"); });
  Trace trace;
  {
    const TraceSection section(&trace, "coordinator");
    const TraceSection none(nullptr, "coordinator");
    const Span unseen("draw");
  }
  EXPECT_TRUE(trace.events().empty());
}

TEST(Trace, spans_have_their_sections_subject_and_lie_within_each_other) {
  Trace trace;
  {
    const TraceSection section(&trace, "coordinator");
    const Span outer("groups");
    {
      const std::string name = "gemm/a";
      const TraceSection group(&trace, "another role", {.name = name, .cases = 3});
      const Span inner("draw", std::string("x"));
    }
    Span after("store");
    after.note([] { return std::string("later"); });
  }
  const std::vector<Trace::Event> events = trace.events();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].stage, "groups");
  EXPECT_EQ(events[0].subject, "");
  EXPECT_EQ(events[1].stage, "draw");
  EXPECT_EQ(events[1].subject, "gemm/a");
  EXPECT_EQ(events[1].cases, 3U);
  EXPECT_EQ(events[1].detail, "x");
  EXPECT_EQ(events[2].subject, "");
  EXPECT_EQ(events[2].detail, "later");
  EXPECT_LE(trace.start(), events[0].begin);
  EXPECT_LE(events[0].begin, events[1].begin);
  EXPECT_LE(events[1].end, events[2].begin);
  EXPECT_LE(events[2].end, events[0].end);
  EXPECT_NE(events[0].end, kRuns);
  ASSERT_EQ(trace.threads().size(), 1U);
  EXPECT_EQ(trace.threads()[0].name, "coordinator") << "the first role, and no number if there is only one";
}

TEST(Trace, what_has_not_ended_is_seen) {
  Trace trace;
  const TraceSection section(&trace, "coordinator");
  const Span span("reference");
  ASSERT_EQ(trace.events().size(), 1U);
  EXPECT_EQ(trace.events()[0].end, kRuns);
}

TEST(Trace, threads_of_one_role_are_numbered) {
  Trace trace;
  const auto judge = [&trace] { const TraceSection section(&trace, "judge"); };
  std::jthread first(judge);
  std::jthread second(judge);
  first.join();
  second.join();
  std::vector<std::string> names;
  for (const Trace::Thread& thread : trace.threads()) {
    names.push_back(thread.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"judge 1", "judge 2"}));
  EXPECT_NE(trace.threads()[0].number, trace.threads()[1].number);
}

TEST(Trace, threads_that_help_record_what_they_help_with) {
  core::set_thread_count(3);
  Trace trace;
  {
    const TraceSection section(&trace, "judge", {.name = "gemm/a"});
    const Span span("compare");
    core::parallel_for(30, [](std::size_t) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
  }
  const std::vector<Trace::Event> events = trace.events();
  ASSERT_GE(events.size(), 2U) << "nobody helped";
  for (const Trace::Event& event : events) {
    EXPECT_EQ(event.stage, "compare");
    EXPECT_EQ(event.subject, "gemm/a");
    EXPECT_GE(event.begin, events[0].begin);
    EXPECT_LE(event.end, events[0].end);
  }
  EXPECT_EQ(core::current_trace().trace, nullptr);
  const auto threads = trace.threads();
  EXPECT_TRUE(std::ranges::any_of(threads, [](const auto& thread) { return thread.name.starts_with("helper"); }));
}

TEST(Trace, takes_spans_of_many_threads) {
  constexpr std::size_t kThreads = 8, kSpans = 2000;
  Trace trace;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&trace, i] {
        const TraceSection section(&trace, "judge", {.name = "case " + std::to_string(i)});
        for (std::size_t n = 0; n < kSpans; ++n) {
          const Span span("compare", std::to_string(n));
        }
      });
    }
  }
  const std::vector<Trace::Event> events = trace.events();
  ASSERT_EQ(events.size(), kThreads * kSpans);
  EXPECT_TRUE(std::ranges::is_sorted(events, std::less(), &Trace::Event::begin));
  EXPECT_TRUE(std::ranges::none_of(events, [](const auto& event) { return event.end == kRuns; }));
}

}  // namespace
}  // namespace numcheck::test
