// --budget: which cases run, and what becomes of the others. Also what --keep-tensors gets.
#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "copy.hpp"
#include "op/field.hpp"
#include "run/budget_order.hpp"

namespace numcheck::run::copy {
namespace {

/// Numbers of elements of the groups' first cases, in the order in which they would run.
std::vector<std::int64_t> order_of(const std::vector<plan::Case>& cases) {
  std::vector<std::size_t> all(cases.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = i;
  }
  std::vector<std::int64_t> order;
  for (const prepare::GroupPlan& group : cheapest_first(cases, prepare::group_cases(cases, all))) {
    order.push_back(std::get<std::int64_t>(cases[group.cases.front()].params[0]));
  }
  return order;
}

TEST(BudgetOrder, cheapest_first) {
  const std::vector<plan::Case> cases = {make_case(300, "fp32"), make_case(100, "fp32"), make_case(200, "fp32")};
  EXPECT_EQ(order_of(cases), (std::vector<std::int64_t>{100, 200, 300}));
  EXPECT_TRUE(order_of({}).empty());
}

TEST(BudgetOrder, every_mode_gets_its_cheapest_before_any_gets_its_next) {
  const std::vector<plan::Case> cases = {make_case(100, "fp32"), make_case(200, "fp32"), make_case(300, "fp32"),
                                         make_case(1000, "bf16"), make_case(2000, "bf16")};
  EXPECT_EQ(order_of(cases), (std::vector<std::int64_t>{100, 1000, 200, 2000, 300}));
}

TEST(BudgetOrder, a_group_is_placed_by_the_mode_that_needs_it_first) {
  const std::vector<plan::Case> cases = {make_case(100, "fp32"), make_case(200, "fp32"), make_case(300, "fp32"),
                                         make_case(300, "bf16")};
  EXPECT_EQ(order_of(cases), (std::vector<std::int64_t>{100, 300, 200}));
}

TEST(Budget, cases_beyond_it_are_skipped_and_say_so) {
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  std::vector<plan::Case> cases;
  for (std::int64_t n = 400; n > 0; --n) {
    cases.push_back(make_case(n, "fp32", {"slow"}));
  }
  PipelineOptions options = in_process();
  options.budget_s = 0.5;
  const PipelineResult result = run_cases(cases, catalog, options);
  EXPECT_EQ(result.cases.back().status, verdict::Status::pass) << "the cheapest";
  EXPECT_EQ(result.cases.front().status, verdict::Status::skipped);
  EXPECT_EQ(result.cases.front().record.at("reason"), "not started: the budget of 0.5 s was used up");
  EXPECT_FALSE(result.interrupted);
  EXPECT_LT(result.times.wall_s, 10) << "400 cases of 50 ms take 20 s";
}

TEST(Budget, that_is_not_used_up_changes_only_the_order) {
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  const std::vector<plan::Case> cases = {make_case(200, "fp32"), make_case(100, "bf16"), make_case(100, "fp32")};
  PipelineOptions options = in_process();
  options.budget_s = 1000;
  const PipelineResult result = run_cases(cases, catalog, options);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(result.cases[i].status, verdict::Status::pass);
    EXPECT_EQ(result.cases[i].record.at("id"), cases[i].id) << "the report is in the order of the plan";
  }
}

TEST(KeepTensors, every_compared_run_is_shown_once_with_its_expectation) {
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  PipelineOptions options = in_process();
  std::mutex mutex;
  std::vector<std::string> shown;
  options.on_tensors = [&mutex, &shown](const RunTensors& run) {  // on any thread
    const std::lock_guard lock(mutex);
    shown.push_back(run.c->id + " " + verdict::status_name(run.result->status));
    EXPECT_EQ(run.number, 0U);
    ASSERT_EQ(run.ports.size(), 2U);
    EXPECT_EQ(run.ports[0].bytes.size(), 4 * run.expected.front()->value.size());
    EXPECT_TRUE(run.sample->all());
  };
  const std::vector<plan::Case> cases = {make_case(50, "fp32"), make_case(60, "fp32", {"wrong"}),
                                         make_case(70, "fp32", {"refused"}), make_case(80, "fp32", {"throws"})};
  (void)run_cases(cases, catalog, options);
  std::ranges::sort(shown);
  EXPECT_EQ(shown, (std::vector<std::string>{cases[0].id + " pass", cases[1].id + " fail"}));
}

}  // namespace
}  // namespace numcheck::run::copy
