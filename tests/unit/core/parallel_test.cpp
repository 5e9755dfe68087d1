#include "core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/cancel.hpp"
#include "core/error.hpp"

namespace numcheck::test {
namespace {

class Parallel : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { core::set_thread_count(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Threads, Parallel, testing::Values(1, 2, 7));

TEST_P(Parallel, calls_every_index_once) {
  EXPECT_EQ(core::thread_count(), GetParam());
  for (const std::size_t count : {0, 1, 2, 3, 100, 5000}) {
    std::vector<std::atomic<int>> calls(count);
    core::parallel_for(count, [&](std::size_t i) { ++calls[i]; });
    for (const auto& each : calls) {
      ASSERT_EQ(each, 1);
    }
  }
}

TEST_P(Parallel, first_exception_arrives_after_all_others_have_run) {
  std::atomic<int> calls = 0;
  try {
    core::parallel_for(500, [&](std::size_t i) {
      ++calls;
      if (i % 100 == 7) {
        throw std::runtime_error("body " + std::to_string(i));
      }
    });
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 5), "body ");
  }
  EXPECT_EQ(calls, 500);
  core::parallel_for(10, [&](std::size_t) { ++calls; });
  EXPECT_EQ(calls, 510);
}

TEST_P(Parallel, a_requested_stop_leaves_out_bodies_that_have_not_started) {
  std::stop_source stop;
  std::atomic<int> calls = 0;
  const auto stop_after_ten = [&] {
    const core::StopSection section(stop.get_token());
    core::parallel_for(1'000'000, [&](std::size_t) {
      core::parallel_for(2, [&](std::size_t) {  // also inside bodies, on all threads
        if (++calls == 10) {
          stop.request_stop();
        }
      });
    });
  };
  EXPECT_THROW(stop_after_ten(), core::Cancelled);
  EXPECT_GE(calls, 10);
  EXPECT_LE(calls, 10 + 2 * GetParam());
  core::parallel_for(10, [&](std::size_t) { ++calls; });
  EXPECT_GE(calls, 20) << "what comes after the section runs";
}

TEST_P(Parallel, nested_calls_run_inline) {
  std::vector<std::atomic<int>> calls(40);
  core::parallel_for(8, [&](std::size_t i) {
    const auto outer = std::this_thread::get_id();
    for (int repeat = 0; repeat < 3; ++repeat) {
      core::parallel_for(5, [&](std::size_t j) {
        EXPECT_EQ(std::this_thread::get_id(), outer);
        std::this_thread::sleep_for(std::chrono::microseconds(50));  // gives other threads time to join, if they could
        core::parallel_for(1, [&](std::size_t) { ++calls[i * 5 + j]; });
      });
    }
  });
  for (const auto& each : calls) {
    EXPECT_EQ(each, 3);
  }
}

TEST_P(Parallel, exceptions_of_nested_calls_arrive) {
  const auto nested = [](std::size_t i) {
    core::parallel_for(3, [i](std::size_t j) {
      if (i == 2 && j == 1) {
        throw core::InternalError("inner");
      }
    });
  };
  EXPECT_THROW(core::parallel_for(4, nested), core::InternalError);
  std::atomic<int> calls = 0;
  core::parallel_for(4, [&](std::size_t) { ++calls; });
  EXPECT_EQ(calls, 4);
}

TEST_P(Parallel, several_threads_share_the_pool) {
  constexpr int kCallers = 6;
  std::vector<std::atomic<long>> sums(kCallers);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      for (int repeat = 0; repeat < 50; ++repeat) {
        core::parallel_for(100, [&](std::size_t i) { sums[static_cast<std::size_t>(caller)] += static_cast<long>(i); });
      }
    });
  }
  for (std::thread& each : callers) {
    each.join();
  }
  for (const auto& sum : sums) {
    EXPECT_EQ(sum, 50 * 4950);
  }
}

TEST_P(Parallel, thread_count_may_change_while_others_work) {
  std::atomic<bool> stop = false;
  std::thread worker([&] {
    while (!stop) {
      std::atomic<int> calls = 0;
      core::parallel_for(64, [&](std::size_t) { ++calls; });
      EXPECT_EQ(calls, 64);
    }
  });
  for (const int threads : {3, 1, 4, 2, 5, 1, 2}) {
    core::set_thread_count(threads);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  stop = true;
  worker.join();
}

TEST_P(Parallel, chunks_cover_the_range_in_order_of_index) {
  for (const std::size_t size : {0, 1, 9, 10, 11, 1000}) {
    std::vector<std::atomic<int>> calls(size);
    core::parallel_chunks(size, 10, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
      EXPECT_EQ(begin, chunk * 10);
      EXPECT_EQ(end, std::min(begin + 10, size));
      for (std::size_t i = begin; i < end; ++i) {
        ++calls[i];
      }
    });
    for (const auto& each : calls) {
      ASSERT_EQ(each, 1);
    }
  }
}

TEST(ParallelErrors, impossible_numbers) {
  EXPECT_THROW(core::set_thread_count(0), core::InternalError);
  EXPECT_THROW(core::set_thread_count(-3), core::InternalError);
  EXPECT_THROW(core::parallel_chunks(10, 0, [](std::size_t, std::size_t, std::size_t) {}), core::InternalError);
}

TEST(SerialSection, runs_on_the_calling_thread_until_it_ends) {
  const auto threads_of = [] {
    std::mutex mutex;
    std::set<std::thread::id> ids;
    core::parallel_for(200, [&](std::size_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      const std::scoped_lock lock(mutex);
      ids.insert(std::this_thread::get_id());
    });
    return ids;
  };
  {
    const core::SerialSection outer(true);
    const core::SerialSection inner(false);
    EXPECT_EQ(threads_of(), std::set{std::this_thread::get_id()});
  }
  const core::SerialSection inactive(false);
  EXPECT_EQ(threads_of().size() > 1, core::thread_count() > 1);
}

}  // namespace
}  // namespace numcheck::test
