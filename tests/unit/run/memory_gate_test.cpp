// What the memory gate lets in beside what is in flight.
#include "run/memory_gate.hpp"

#include <gtest/gtest.h>

namespace numcheck::run {
namespace {

constexpr std::uint64_t kGiga = std::uint64_t{1} << 30;

TEST(MemoryGate, admits_what_fits_into_the_budget) {
  MemoryGate gate(4 * kGiga, 10);
  const auto first = gate.try_acquire({3 * kGiga});
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(gate.try_acquire({2 * kGiga}).has_value());
  EXPECT_TRUE(gate.try_acquire({kGiga}).has_value()) << "and returned it at once";
  EXPECT_TRUE(gate.try_acquire({kGiga}).has_value());
}

TEST(MemoryGate, lets_what_is_too_large_proceed_alone) {
  MemoryGate gate(4 * kGiga, 10);
  {
    const auto alone = gate.try_acquire({100 * kGiga});
    ASSERT_TRUE(alone.has_value());
    EXPECT_FALSE(gate.try_acquire({1}).has_value());
  }
  EXPECT_TRUE(gate.try_acquire({1}).has_value());
}

TEST(MemoryGate, admits_only_little_beyond_so_many_leases) {
  MemoryGate gate(100 * kGiga, 2);
  const auto first = gate.try_acquire({kGiga / 4}), second = gate.try_acquire({kGiga / 4});
  EXPECT_FALSE(gate.try_acquire({kGiga}).has_value());
  EXPECT_TRUE(gate.try_acquire({kGiga / 4}).has_value());
}

TEST(MemoryGate, has_two_large_ones_in_flight_and_no_third) {
  MemoryGate gate(100 * kGiga, 10);
  const auto compared = gate.try_acquire({10 * kGiga}), prepared = gate.try_acquire({10 * kGiga});
  EXPECT_TRUE(compared.has_value() && prepared.has_value());
  EXPECT_FALSE(gate.try_acquire({kGiga}).has_value());
  MemoryGate other(100 * kGiga, 10);
  const auto a = other.try_acquire({kGiga}), b = other.try_acquire({kGiga}), c = other.try_acquire({kGiga});
  EXPECT_TRUE(a.has_value() && b.has_value() && c.has_value()) << "as many smaller ones as fit";
}

TEST(MemoryGate, keeps_room_for_what_one_of_them_may_need_besides) {
  MemoryGate gate(10 * kGiga, 10);
  auto first = gate.try_acquire({kGiga, 5 * kGiga});
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(gate.try_acquire({kGiga, 9 * kGiga}).has_value());
  const auto second = gate.try_acquire({kGiga, 5 * kGiga});
  EXPECT_TRUE(second.has_value()) << "not both at the same time";
  EXPECT_FALSE(gate.try_acquire({4 * kGiga}).has_value());
  first.reset();
  EXPECT_TRUE(gate.try_acquire({4 * kGiga}).has_value());
}

}  // namespace
}  // namespace numcheck::run
