// configs/contracts/sm_80.json, which no run has shown: nothing in it may need what sm_80 lacks.
#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "catalog.hpp"
#include "tests/unit/app/shipped_contract.hpp"

namespace numcheck::app {
namespace {

bool has_fp8(const plan::Case& c) {
  return std::ranges::any_of(c.op->ports(c.params, *c.mode), [](const op::Port& port) {
    return core::is_fp8(port.dtype) || port.dtype == core::Dtype::e8m0;
  });
}

TEST(ContractOfSm80, promises_cases_of_the_plans_and_no_fp8) {
  const report::Contract contract = test::shipped_contract("sm_80");
  EXPECT_EQ(contract.sm, 80);
  EXPECT_FALSE(contract.simulated);
  EXPECT_FALSE(contract.derived.empty());
  ASSERT_EQ(contract.plans.size(), 2U);
  for (const report::PlanPromises& promises : contract.plans) {
    const std::vector<plan::Case> cases = test::promised_cases(promises);
    std::set<std::string> found;
    for (const plan::Case& c : cases) {
      found.insert(c.id);
      EXPECT_FALSE(has_fp8(c) || c.mode->scaled) << c.id;
      EXPECT_TRUE(c.backend == "auto" || c.backend == "cudnn" || c.backend == "unfused") << c.id;
    }
    EXPECT_EQ(found, promises.cases) << promises.plan;
    EXPECT_GT(found.size(), 150U) << promises.plan;
  }
}

}  // namespace
}  // namespace numcheck::app
