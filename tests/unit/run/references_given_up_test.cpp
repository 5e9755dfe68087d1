// Cases that wait for references which nobody computes any more are told so.
#include <exception>
#include <future>
#include <memory>
#include <new>

#include <gtest/gtest.h>

#include "prepare/group.hpp"

namespace numcheck::prepare {
namespace {

TEST(ReferencesGivenUp, promises_that_are_not_kept_get_the_exception) {
  Group group;
  const auto waiting = std::make_shared<Rounding>(), fulfilled = std::make_shared<Rounding>();
  group.in_order = {waiting, fulfilled};
  auto values = waiting->promise.get_future(), known = fulfilled->promise.get_future();
  auto yardsticks = group.yardstick_promise.get_future();
  auto total = group.total_promise.get_future();
  const auto value = std::make_shared<const op::Values>();
  fulfilled->promise.set_value(value);
  give_up_references(group, std::make_exception_ptr(std::bad_alloc()));
  EXPECT_THROW((void)values.get(), std::bad_alloc);
  EXPECT_THROW((void)yardsticks.get(), std::bad_alloc);
  EXPECT_THROW((void)total.get(), std::bad_alloc);
  EXPECT_EQ(known.get(), value);
}

}  // namespace
}  // namespace numcheck::prepare
