#include "run/evaluation_queue.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace numcheck::run {
namespace {

using Strand = EvaluationQueue::Strand;

TEST(EvaluationQueue, a_strand_keeps_its_order_and_never_runs_twice_at_a_time) {
  EvaluationQueue queue(4, [] {});
  constexpr int kStrands = 20, kEach = 50;
  std::vector<std::vector<int>> seen(kStrands);
  std::vector<std::shared_ptr<Strand>> strands;
  std::vector<std::atomic<int>> inside(kStrands);
  std::atomic<int> overlaps = 0;
  for (int s = 0; s < kStrands; ++s) {
    strands.push_back(std::make_shared<Strand>());
  }
  for (int i = 0; i < kEach; ++i) {
    for (std::size_t s = 0; s < kStrands; ++s) {
      queue.post(strands[s], [&, s, i] {
        overlaps += ++inside[s] == 1 ? 0 : 1;
        seen[s].push_back(i);
        std::this_thread::yield();
        --inside[s];
      });
    }
  }
  queue.wait_idle();
  EXPECT_EQ(overlaps, 0);
  for (const std::vector<int>& numbers : seen) {
    ASSERT_EQ(numbers.size(), static_cast<std::size_t>(kEach));
    EXPECT_TRUE(std::ranges::is_sorted(numbers));
  }
}

TEST(EvaluationQueue, posting_waits_while_too_much_is_waiting) {
  EvaluationQueue queue(1, [] {});
  std::atomic<bool> may_go = false;
  std::atomic<int> posted = 0, most = 0;
  std::thread poster([&] {
    for (int i = 0; i < 100; ++i) {
      queue.post(std::make_shared<Strand>(), [&] {
        while (!may_go) {
          std::this_thread::yield();
        }
      });
      ++posted;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  most = posted.load();
  may_go = true;
  poster.join();
  queue.wait_idle();
  EXPECT_LT(most, 10) << "each holds the outputs of a run";
  EXPECT_EQ(posted, 100);
}

TEST(EvaluationQueue, waiting_for_a_strand_waits_for_no_other) {
  EvaluationQueue queue(2, [] {});
  std::atomic<bool> may_go = false;
  queue.post(std::make_shared<Strand>(), [&] {
    while (!may_go) {
      std::this_thread::yield();
    }
  });
  const auto strand = std::make_shared<Strand>();
  int done = 0;
  queue.post(strand, [&] { ++done; });
  queue.post(strand, [&] { ++done; });
  queue.wait(*strand);
  EXPECT_EQ(done, 2);
  may_go = true;
}

TEST(EvaluationQueue, the_first_exception_is_reported_and_rethrown_and_the_rest_is_done) {
  std::atomic<int> reported = 0, done = 0;
  EvaluationQueue queue(1, [&] { ++reported; });
  const auto strand = std::make_shared<Strand>();
  for (const char* text : {"first", "second"}) {
    queue.post(strand, [text] { throw std::runtime_error(text); });
  }
  queue.post(strand, [&] { ++done; });
  try {
    queue.wait_idle();
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  EXPECT_EQ(reported, 1);
  EXPECT_EQ(done, 1);
  queue.wait_idle();  // once
}

TEST(EvaluationQueue, what_is_waiting_is_done_before_it_ends) {
  std::atomic<int> done = 0;
  {
    EvaluationQueue queue(2, [] {});
    for (int i = 0; i < 8; ++i) {
      queue.post(std::make_shared<Strand>(), [&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ++done;
      });
    }
  }
  EXPECT_EQ(done, 8);
}

TEST(EvaluationQueue, without_threads_the_caller_does_the_work) {
  EvaluationQueue queue(0, [] {});
  int done = 0;
  queue.post(std::make_shared<Strand>(), [&] { ++done; });
  EXPECT_EQ(done, 1);
  queue.wait_idle();
}

}  // namespace
}  // namespace numcheck::run
