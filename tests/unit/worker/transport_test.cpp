// Channel, arenas and spawning, below the pool.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "worker/arena.hpp"
#include "worker/channel.hpp"
#include "worker/spawn.hpp"

namespace numcheck::worker {
namespace {

TEST(Channel, keeps_message_boundaries_and_passes_descriptors) {
  auto [left, right] = Channel::make_pair();
  const core::FileDescriptor file(::dup(STDIN_FILENO));
  const int fd = file.get();
  ASSERT_TRUE(left.send("one"));
  ASSERT_TRUE(left.send("two", std::span(&fd, 1)));
  Message message;
  ASSERT_EQ(right.receive(message, true), Received::message);
  EXPECT_EQ(message.text, "one");
  EXPECT_TRUE(message.descriptors.empty());
  ASSERT_EQ(right.receive(message, true), Received::message);
  EXPECT_EQ(message.text, "two");
  ASSERT_EQ(message.descriptors.size(), 1U);
  EXPECT_NE(message.descriptors[0].get(), fd);
  EXPECT_EQ(right.receive(message, false), Received::nothing);
}

TEST(Channel, reports_a_closed_end_without_a_signal) {
  auto [left, right] = Channel::make_pair();
  ASSERT_TRUE(right.send("last words"));
  right.close();
  EXPECT_FALSE(left.send("into the void"));
  Message message;
  EXPECT_EQ(left.receive(message, true), Received::message) << "what was sent before the end is not lost";
  EXPECT_EQ(left.receive(message, true), Received::closed);
}

TEST(Channel, bounds_messages) {
  auto [left, right] = Channel::make_pair();
  const std::string longest(kMaxMessageBytes, 'x');
  ASSERT_TRUE(left.send(longest));
  Message message;
  ASSERT_EQ(right.receive(message, true), Received::message);
  EXPECT_EQ(message.text, longest);
  EXPECT_THROW((void)left.send(longest + "x"), core::IoError);
}

TEST(Channel, does_not_block_on_a_reader_that_sleeps) {
  auto [left, right] = Channel::make_pair();
  const std::string text(kMaxMessageBytes, 'x');
  int sent = 0;
  while (sent < 100 && left.send(text)) {
    ++sent;
  }
  EXPECT_GT(sent, 0);
  EXPECT_LT(sent, 100);
}

TEST(Arena, reuses_warm_blocks) {
  const auto pool = std::make_shared<ArenaPool>(1U << 30);
  auto block = pool->allocate(1'000'000);
  std::byte* address = block->bytes().data();
  const auto id = dynamic_cast<ArenaBlock&>(*block).place().arena->id;
  block->bytes()[999'999] = std::byte{42};
  block.reset();
  EXPECT_GE(pool->idle_bytes(), 1'000'000U);
  block = pool->allocate(900'000);
  EXPECT_EQ(block->bytes().data(), address);
  EXPECT_EQ(block->bytes().size(), 900'000U);
  EXPECT_EQ(dynamic_cast<ArenaBlock&>(*block).place().arena->id, id);
  EXPECT_EQ(pool->idle_bytes(), 0U);
  const auto other = pool->allocate(900'000);
  EXPECT_NE(other->bytes().data(), address);
  EXPECT_EQ(dynamic_cast<ArenaBlock&>(*other).place().arena->id, id) << "one arena serves many blocks";
  EXPECT_EQ(address[999'999], std::byte{42});
}

TEST(Arena, blocks_do_not_overlap_and_are_aligned) {
  const auto pool = std::make_shared<ArenaPool>(1U << 20);
  std::vector<std::shared_ptr<SharedBlock>> blocks;
  for (std::size_t bytes : {1U, 4096U, 4097U, 100'000U, 7U, 3'000'000U}) {
    blocks.push_back(pool->allocate(bytes));
    const auto address = reinterpret_cast<std::uintptr_t>(blocks.back()->bytes().data());
    EXPECT_EQ(address % 4096, 0U);
    std::fill(blocks.back()->bytes().begin(), blocks.back()->bytes().end(), std::byte(blocks.size()));
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (const std::byte value : blocks[i]->bytes()) {
      ASSERT_EQ(value, std::byte(i + 1));
    }
  }
}

TEST(Arena, gives_all_pages_back_once_nothing_is_to_come) {
  constexpr std::size_t kBytes = 1U << 20;
  const auto pool = std::make_shared<ArenaPool>(1U << 30);
  std::shared_ptr<SharedBlock> idle = pool->allocate(kBytes), held = pool->allocate(kBytes);
  std::byte *given_back = idle->bytes().data(), *kept = held->bytes().data();
  *given_back = *kept = std::byte{1};
  idle.reset();
  pool->keep_no_more();
  EXPECT_EQ(pool->idle_bytes(), 0U);
  EXPECT_EQ(*given_back, std::byte{0});
  EXPECT_EQ(*kept, std::byte{1}) << "somebody has it";
  held.reset();
  EXPECT_EQ(pool->idle_bytes(), 0U);
  EXPECT_EQ(*kept, std::byte{0});
  EXPECT_EQ(pool->allocate(kBytes)->bytes().size(), kBytes) << "what comes all the same";
}

TEST(Arena, gives_pages_back_beyond_the_limit) {
  constexpr std::size_t kBytes = 8U << 20;
  const auto pool = std::make_shared<ArenaPool>(kBytes);
  std::vector<std::shared_ptr<SharedBlock>> blocks;
  for (int i = 0; i < 3; ++i) {
    blocks.push_back(pool->allocate(kBytes));
    std::fill(blocks.back()->bytes().begin(), blocks.back()->bytes().end(), std::byte{1});
  }
  std::byte* second = blocks[1]->bytes().data();
  blocks.clear();
  EXPECT_EQ(pool->idle_bytes(), kBytes);
  int zeroed = 0;
  for (int i = 0; i < 3; ++i) {
    blocks.push_back(pool->allocate(kBytes));
    zeroed += blocks.back()->bytes()[kBytes - 1] == std::byte{0} ? 1 : 0;
  }
  EXPECT_EQ(zeroed, 2) << "two blocks' pages went back to the system";
  std::set<std::byte*> addresses;
  for (const auto& block : blocks) {
    addresses.insert(block->bytes().data());
  }
  EXPECT_EQ(addresses.size(), 3U);
  EXPECT_TRUE(addresses.contains(second)) << "address space is reused too";
}

TEST(Arena, cannot_be_truncated_by_a_process_that_maps_it) {
  const auto pool = std::make_shared<ArenaPool>(1U << 20);
  const auto block = pool->allocate(8192);
  const Arena& arena = *dynamic_cast<ArenaBlock&>(*block).place().arena;
  // Pages beyond the end of a file raise SIGBUS in every process that maps it.
  EXPECT_NE(::ftruncate(arena.fd.get(), 0), 0);
  EXPECT_NE(::ftruncate(arena.fd.get(), static_cast<off_t>(arena.mapping->size()) * 2), 0);
  EXPECT_NE(::fcntl(arena.fd.get(), F_ADD_SEALS, F_SEAL_WRITE), 0) << "nor can it be made read-only";
  block->bytes()[8191] = std::byte{1};
}

TEST(Arena, handles_empty_and_oversized_requests) {
  const auto pool = std::make_shared<ArenaPool>(1U << 20);
  EXPECT_TRUE(pool->allocate(0)->bytes().empty());
  EXPECT_EQ(pool->allocate((std::size_t{5} << 30) + 1)->bytes().size(), (std::size_t{5} << 30) + 1);
  EXPECT_THROW((void)pool->allocate(~std::size_t{0}), core::EnvironmentError);
}

TEST(Spawn, describes_ends) {
  EXPECT_EQ(describe_exit(7 << 8), "exited with status 7");
  EXPECT_EQ(describe_exit(SIGSEGV), "was killed by SIGSEGV (Segmentation fault)");
  EXPECT_NE(describe_exit(SIGKILL).find("ran out of memory"), std::string::npos);
}

TEST(Spawn, refuses_illegal_variables) {
  EXPECT_THROW((void)spawn_worker({}, {{"A=B", "1"}}), core::EnvironmentError);
  EXPECT_THROW((void)spawn_worker({}, {{"", "1"}}), core::EnvironmentError);
  EXPECT_THROW((void)spawn_worker({}, {{"A", std::string("1\0", 2)}}), core::EnvironmentError);
}

}  // namespace
}  // namespace numcheck::worker
