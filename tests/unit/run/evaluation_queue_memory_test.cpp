// The queue of judges where memory runs out: what was not posted is not waited for. A program of its own, because it fails allocations.
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include <gtest/gtest.h>

#include "run/evaluation_queue.hpp"

namespace {

constexpr int kNever = -1;
thread_local int left = kNever;  // allocations of this thread before the one that fails

void* allocated(std::size_t bytes) {
  if (left == 0) {
    throw std::bad_alloc();
  }
  left -= left > 0 ? 1 : 0;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  return memory == nullptr ? throw std::bad_alloc() : memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocated(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}

namespace numcheck::run {
namespace {

TEST(EvaluationQueueMemory, what_could_not_be_posted_is_not_waited_for) {
  EvaluationQueue queue(2, [] {});
  std::atomic<int> done = 0;
  int posted = 0, refused = 0;
  const auto strand = std::make_shared<EvaluationQueue::Strand>();
  for (int i = 0; i < 3000; ++i) {
    EvaluationQueue::Work work = [&done] { ++done; };
    left = i % 3;
    try {
      queue.post(strand, std::move(work));
      ++posted;
    } catch (const std::bad_alloc&) {
      ++refused;
    }
    left = kNever;
  }
  queue.wait_idle();
  EXPECT_EQ(done, posted);
  EXPECT_GT(posted, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace numcheck::run
