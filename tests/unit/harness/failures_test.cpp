// Algorithms that throw, devices that die, cases that are refused, and planted faults.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "fake.hpp"
#include "kernels/harness/guarded_buffer.hpp"

namespace numcheck::kernels::test {
namespace {

using op::GemmParams;
using Kind = worker::Outcome::Kind;

TEST(HarnessFailures, a_refusal_is_unsupported_with_its_reason) {
  FakeBackend backend;
  backend.refusal = "no such product";
  TestCase test(shape(4, 4, 4), "bf16");
  EXPECT_TRUE(test.run(backend).empty());
  EXPECT_EQ(test.outcome.kind, Kind::unsupported);
  EXPECT_EQ(test.outcome.reason, "no such product");
}

TEST(HarnessFailures, no_algorithm_is_unsupported) {
  FakeBackend backend;
  backend.algorithm_count = 0;
  TestCase test(shape(4, 4, 4), "bf16");
  EXPECT_TRUE(test.run(backend).empty());
  EXPECT_EQ(test.outcome.kind, Kind::unsupported);
}

TEST(HarnessFailures, one_algorithm_that_throws_does_not_stop_the_others) {
  FakeBackend backend;
  backend.algorithm_count = 3;
  backend.misbehave = [](auto ports, auto*, int) {
    memory_named(ports, "a").data[0] ^= std::byte{1};
    throw core::EnvironmentError("launch failed");
  };
  TestCase test(shape(4, 4, 4), "bf16");
  const auto reports = test.run(backend);
  EXPECT_EQ(test.outcome.kind, Kind::done);
  ASSERT_EQ(reports.size(), 3U);
  EXPECT_EQ(reports[0].error, "launch failed");
  EXPECT_TRUE(reports[0].outputs.empty());
  for (std::size_t i : {std::size_t{1}, std::size_t{2}}) {
    EXPECT_EQ(reports[i].error, "");
    EXPECT_TRUE(reports[i].inputs_intact) << "inputs must be restored after a failed algorithm";
  }
}

/// The device loss that the case boundary reports after an exception of the harness.
worker::DeviceLoss loss_after(TestCase& test, FakeBackend& backend) {
  EXPECT_THROW(static_cast<void>(test.run(backend)), core::EnvironmentError);
  return test.harness.device_loss(backend.memory()).value_or(worker::DeviceLoss{});
}

TEST(HarnessFailures, a_lost_device_propagates_its_first_error) {
  FakeBackend backend;
  backend.algorithm_count = 3;
  backend.misbehave = [&backend](auto, auto*, int) {
    backend.memory_.dead = true;
    throw core::EnvironmentError("the first error");
  };
  TestCase test(shape(4, 4, 4), "bf16");
  try {
    static_cast<void>(test.run(backend));
    FAIL();
  } catch (const core::EnvironmentError& error) {
    EXPECT_STREQ(error.what(), "the first error");
  }
  EXPECT_EQ(backend.launches, 1) << "nothing is launched on a device that is lost";
  EXPECT_TRUE(backend.memory_.live.empty());
  EXPECT_EQ(test.harness.device_loss(backend.memory())->followed, "it followed the launch of fake 0 (run 1)");
}

TEST(HarnessFailures, an_asynchronous_fault_is_blamed_on_the_launch_before_it) {
  FakeBackend backend;
  backend.misbehave = [&backend](auto, auto*, int launch) { backend.memory_.dead = launch == 1; };
  TestCase test(shape(4, 4, 4), "bf16");
  const worker::DeviceLoss loss = loss_after(test, backend);
  EXPECT_EQ(loss.error, "cudaErrorIllegalAddress");
  EXPECT_EQ(loss.followed, "it followed 2 launches, from fake 0 (run 1) to fake 0 (run 2)");
}

TEST(HarnessFailures, runs_of_large_cases_are_waited_for_one_by_one) {
  FakeBackend backend;
  backend.misbehave = [&backend](auto, auto*, int launch) { backend.memory_.dead = launch == 1; };
  TestCase test(shape(600, 600, 4), "bf16");
  EXPECT_EQ(loss_after(test, backend).followed, "it followed the launch of fake 0 (run 2)");
}

TEST(HarnessFailures, a_run_on_changed_inputs_is_repeated_before_it_is_compared) {
  FakeBackend backend;
  int runs = 0;
  backend.misbehave = [&runs](auto ports, auto*, int) {
    memory_named(ports, "a").data[0] ^= std::byte{0x40};
    ++runs;
  };
  TestCase test(shape(4, 4, 4), "bf16");
  const auto reports = test.run(backend, {.repeats = 3});
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_FALSE(reports[0].inputs_intact);
  EXPECT_TRUE(reports[0].deterministic()) << "from the same inputs it gives the same outputs";
  EXPECT_EQ(runs, 6) << "three, two and one";
}

TEST(HarnessFailures, a_run_that_throws_leaves_no_read_of_the_one_before_it_behind) {
  FakeBackend backend;
  backend.misbehave = [](auto, auto*, int launch) {
    if (launch == 1) {
      throw core::EnvironmentError("launch failed");
    }
  };
  TestCase test(shape(4, 4, 4), "bf16");
  const auto reports = test.run(backend);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].error, "launch failed");
  EXPECT_TRUE(backend.memory_.undelivered.empty()) << "the memory that is read into is gone";
}

TEST(HarnessFailures, a_classification_that_loses_the_device_is_named) {
  FakeBackend backend;
  backend.misbehave = [&backend](auto, auto*, int) { backend.memory_.dead = true; };
  TestCase test(shape(16, 16, 4), "fp32");
  EXPECT_EQ(loss_after(test, backend).followed,
            "it followed 2 launches, from fake 0 (classification 1) to fake 0 (classification 2)");
}

TEST(HarnessFailures, a_fault_that_surfaces_later_is_not_blamed_on_a_launch) {
  FakeBackend backend;
  TestCase test(shape(4, 4, 4), "bf16");
  static_cast<void>(test.run(backend));
  EXPECT_FALSE(test.harness.device_loss(backend.memory()));
  backend.memory_.dead = true;
  const auto loss = test.harness.device_loss(backend.memory());
  ASSERT_TRUE(loss);
  EXPECT_NE(loss->followed.find("fake 0 (run 2)"), std::string::npos) << loss->followed;
  EXPECT_NE(loss->followed.find("an earlier one may be the cause"), std::string::npos) << loss->followed;
}

TEST(HarnessFailures, an_error_that_a_library_left_behind_is_not_a_loss) {
  FakeBackend backend;
  TestCase test(shape(4, 4, 4), "bf16");
  backend.memory_.sync_errors = 1;
  EXPECT_FALSE(test.harness.device_loss(backend.memory()));
}

TEST(HarnessFailures, a_guard_that_cannot_be_set_leaks_no_buffer) {
  FakeBackend backend;
  backend.memory_.fills_left = 0;
  EXPECT_THROW(harness::GuardedBuffer(backend.memory(), 100), core::EnvironmentError);
  EXPECT_TRUE(backend.memory_.live.empty());
  backend.memory_.fills_left = 1;
  EXPECT_THROW(harness::GuardedBuffer(backend.memory(), 100), core::EnvironmentError);
  EXPECT_TRUE(backend.memory_.live.empty());
}

TEST(HarnessFailures, exhausted_device_memory_propagates_and_leaks_nothing) {
  FakeBackend backend;
  backend.memory_.capacity = 3 * harness::kGuardBytes;
  TestCase test(shape(8, 8192, 1), "fp32");
  EXPECT_THROW(static_cast<void>(test.run(backend)), core::EnvironmentError);
  EXPECT_TRUE(backend.memory_.live.empty());
}

TEST(HarnessFailures, host_buffers_of_the_wrong_size_are_a_bug) {
  FakeBackend backend;
  TestCase test(shape(4, 4, 4), "bf16");
  test.host[0].bytes = test.host[0].bytes.first(3);
  EXPECT_THROW(static_cast<void>(test.run(backend)), core::InternalError);
}

/// Runs a case with a fault planted.
worker::RunReport run_fault(TestCase& test, std::string_view fault) {
  FakeBackend backend;
  worker::ExecuteOptions options;
  options.inject = fault;
  const auto reports = test.run(backend, options);
  EXPECT_EQ(test.outcome.kind, Kind::done) << fault << ": " << test.outcome.reason;
  EXPECT_EQ(backend.seen_inject, "") << "the backend must not see a fault of the harness";
  return reports.empty() ? worker::RunReport{} : reports.front();
}

/// Number of elements of D that a fault changes, in an m x n product.
int changed_elements(std::string_view fault, std::int64_t m, std::int64_t n) {
  FakeBackend backend;
  TestCase clean(shape(m, n, 3), "fp32"), faulty(shape(m, n, 3), "fp32");
  static_cast<void>(clean.run(backend));
  static_cast<void>(run_fault(faulty, fault));
  int changed = 0;
  for (std::int64_t r = 0; r < m; ++r) {
    for (std::int64_t c = 0; c < n; ++c) {
      changed += clean.output(r, c) == faulty.output(r, c) ? 0 : 1;
    }
  }
  return changed;
}

TEST(HarnessFaults, all_have_names_and_descriptions) {
  EXPECT_GE(harness::harness_faults().size(), 7U);
  for (const FaultInfo& fault : harness::harness_faults()) {
    EXPECT_FALSE(fault.name.empty());
    EXPECT_GT(fault.doc.size(), 10U);
  }
}

TEST(HarnessFaults, output_faults_change_what_they_say) {
  EXPECT_EQ(changed_elements("bit_flip", 100, 80), 1);
  EXPECT_EQ(changed_elements("nan_written", 100, 80), 1);
  EXPECT_EQ(changed_elements("unwritten_tile", 130, 129), 64 * 64);
  EXPECT_GT(changed_elements("stale_tile", 130, 129), 64 * 32);
  EXPECT_LE(changed_elements("stale_tile", 130, 129), 64 * 64);
  EXPECT_GT(changed_elements("swapped_rows", 30, 40), 40);
  for (const char* fault : {"bit_flip", "nan_written", "unwritten_tile", "stale_tile"}) {
    EXPECT_EQ(changed_elements(fault, 1, 1), 1) << fault;
  }
}

TEST(HarnessFaults, output_faults_look_deterministic) {
  for (const char* fault : {"bit_flip", "nan_written", "unwritten_tile", "stale_tile", "swapped_rows"}) {
    TestCase test(shape(70, 70, 3), "bf16");
    const auto report = run_fault(test, fault);
    EXPECT_TRUE(report.deterministic() && report.guards_intact && report.inputs_intact) << fault;
  }
}

TEST(HarnessFaults, guards_catch_memory_faults) {
  TestCase end(shape(8, 8, 8), "bf16"), workspace(shape(8, 8, 8), "bf16"), input(shape(8, 8, 8), "bf16");
  EXPECT_FALSE(run_fault(end, "write_past_end").guards_intact);
  EXPECT_FALSE(run_fault(workspace, "workspace_overrun").guards_intact);
  EXPECT_FALSE(run_fault(input, "input_overwritten").inputs_intact);
}

TEST(HarnessFaults, a_race_shows_in_the_second_run_only) {
  FakeBackend backend;
  TestCase clean(shape(8, 8, 8), "bf16"), raced(shape(8, 8, 8), "bf16");
  const auto before = clean.run(backend).at(0);
  const auto report = run_fault(raced, "race");
  EXPECT_FALSE(report.deterministic());
  EXPECT_TRUE(report.guards_intact && report.inputs_intact);
  EXPECT_EQ(before.outputs.at(0).digest, report.outputs.at(0).digest);
}

TEST(HarnessFaults, what_cannot_be_planted_is_unsupported_not_clean) {
  worker::ExecuteOptions options;
  for (const char* fault : {"bit_flip", "input_overwritten"}) {
    FakeBackend backend;
    options.inject = fault;
    TestCase test(std::string_view(fault) == "bit_flip" ? shape(0, 4, 4) : shape(4, 4, 0), "bf16");
    EXPECT_TRUE(test.run(backend, options).empty());
    EXPECT_EQ(test.outcome.kind, Kind::unsupported);
    EXPECT_NE(test.outcome.reason.find(fault), std::string::npos) << test.outcome.reason;
  }
}

TEST(HarnessFaults, other_names_go_to_the_backend) {
  FakeBackend backend;
  TestCase test(shape(4, 4, 4), "bf16");
  worker::ExecuteOptions options;
  options.inject = "tf32_silently_on";
  static_cast<void>(test.run(backend, options));
  EXPECT_EQ(backend.seen_inject, "tf32_silently_on");
}

}  // namespace
}  // namespace numcheck::kernels::test
