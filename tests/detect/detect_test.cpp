// Every planted fault is caught, by the gate that is meant for it; the same cases without the fault pass.
#include <algorithm>
#include <ostream>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "fault_cases.hpp"
#include "kernels/harness/harness.hpp"
#include "kernels/sim/sim.hpp"
#include "mini_run.hpp"

namespace numcheck::detect {

void PrintTo(const FaultCase& f, std::ostream* out) {
  *out << f.fault << " in " << f.c.id;
}

namespace {

MiniResult run_case(const FaultCase& f, const std::string& inject) {
  static MiniRunner runner;
  return runner.run(f.c, f.sm, {.inject = inject, .classify = f.classify});
}

bool fails(const verdict::RunResult& run, const std::string& gate) {
  return std::ranges::any_of(run.outputs, [&gate](const verdict::OutputResult& output) {
    return std::ranges::any_of(output.criteria, [&gate](const tolerance::Criterion& criterion) {
      return criterion.name == gate && !criterion.ok;
    });
  });
}

class Fault : public testing::TestWithParam<FaultCase> {};

TEST_P(Fault, IsCaughtByItsGate) {
  const FaultCase& f = GetParam();
  const MiniResult result = run_case(f, f.fault);
  ASSERT_EQ(result.outcome.kind, worker::Outcome::Kind::done) << result.outcome.reason;
  ASSERT_FALSE(result.runs.empty());
  const verdict::RunResult& run = result.runs.front();
  EXPECT_EQ(run.status, verdict::Status::fail);
  const tolerance::Criterion* failing = first_failing(run);
  ASSERT_NE(failing, nullptr) << "the fault passes: " << describe_failure(f.c, run);
  EXPECT_EQ(failing->name, f.gate) << describe_failure(f.c, run);
  EXPECT_TRUE(f.also.empty() || fails(run, f.also)) << f.also << " holds: " << describe_failure(f.c, run);
}

TEST_P(Fault, CleanCasePasses) {
  const FaultCase& f = GetParam();
  const MiniResult result = run_case(f, {});
  ASSERT_EQ(result.outcome.kind, worker::Outcome::Kind::done) << result.outcome.reason;
  for (const verdict::RunResult& run : result.runs) {
    EXPECT_EQ(first_failing(run), nullptr) << describe_failure(f.c, run);
  }
}

std::string test_name(const testing::TestParamInfo<FaultCase>& info) {
  std::string name = std::to_string(info.index) + "_" + info.param.fault + "_" + std::string(info.param.c.mode->name);
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Fault, testing::ValuesIn(fault_cases()), test_name);

TEST(Faults, EveryKnownFaultHasACase) {
  std::set<std::string, std::less<>> covered;
  for (const FaultCase& f : fault_cases()) {
    covered.insert(f.fault);
  }
  for (const kernels::FaultInfo& info : kernels::sim::sim_faults()) {
    EXPECT_TRUE(covered.contains(info.name)) << info.name;
  }
  for (const kernels::FaultInfo& info : kernels::harness::harness_faults()) {
    EXPECT_TRUE(covered.contains(info.name)) << info.name;
  }
  EXPECT_GE(covered.size(), 15U);
}

}  // namespace
}  // namespace numcheck::detect
