// Large tensors are compared with copies on the device, if it has room for them, and nothing else changes by that.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fake.hpp"

namespace numcheck::kernels::test {
namespace {

/// A and D are too large for a snapshot, B is not.
op::GemmParams large() {
  op::GemmParams params = shape(2900, 8, 50);
  params.pad_a = 3;
  params.pad_d = 60;
  return params;
}

struct Result {
  worker::RunReport report;
  std::size_t downloaded = 0;
  std::size_t kept = 0;
};

Result run_large(bool keeps, const Misbehaviour& misbehave, int repeats = 2) {
  FakeBackend backend;
  backend.memory_.keeps = keeps;
  backend.misbehave = misbehave;
  TestCase test(large(), "bf16");
  worker::ExecuteOptions options;
  options.repeats = repeats;
  const auto reports = test.run(backend, options);
  EXPECT_TRUE(backend.memory_.live.empty()) << "device memory leaked";
  EXPECT_EQ(reports.size(), 1U);
  return {reports.empty() ? worker::RunReport() : reports.front(), backend.memory_.downloaded,
          backend.memory_.kept_ever};
}

TEST(HarnessKept, large_tensors_go_to_the_host_once) {
  const Result there = run_large(true, {}), here = run_large(false, {});
  EXPECT_EQ(there.kept, 2U) << "A and D";
  EXPECT_EQ(here.kept, 0U);
  EXPECT_GT(here.downloaded, 3 * there.downloaded) << "A and D of both runs, instead of D of the first";
  for (const worker::RunReport& report : {there.report, here.report}) {
    EXPECT_TRUE(report.guards_intact && report.inputs_intact && report.deterministic()) << report.guard_detail;
  }
  EXPECT_EQ(there.report.outputs.front().digest, here.report.outputs.front().digest);
}

TEST(HarnessKept, an_output_that_no_run_is_compared_with_is_not_kept) {
  EXPECT_EQ(run_large(true, {}, 1).kept, 1U) << "A";
}

TEST(HarnessKept, a_changed_input_is_found_as_it_is_on_the_host) {
  for (const int changing : {0, 1}) {
    const auto misbehave = [changing](std::span<const PortMemory> ports, std::byte*, int launch) {
      if (launch == changing) {
        memory_named(ports, "a").data[200'001] ^= std::byte{1};
      }
    };
    const Result there = run_large(true, misbehave), here = run_large(false, misbehave);
    EXPECT_FALSE(there.report.inputs_intact);
    EXPECT_NE(there.report.guard_detail.find("a: byte 200001 of"), std::string::npos) << there.report.guard_detail;
    EXPECT_EQ(there.report.guard_detail, here.report.guard_detail);
  }
}

TEST(HarnessKept, an_output_that_changes_in_the_second_run_is_found_as_it_is_on_the_host) {
  for (const std::size_t byte : {std::size_t{100}, std::size_t{0}}) {  // the first lies in the padding of a row
    const auto misbehave = [byte](std::span<const PortMemory> ports, std::byte*, int launch) {
      memory_named(ports, "d").data[byte] ^= launch == 1 ? std::byte{1} : std::byte{0};
    };
    for (const bool keeps : {true, false}) {
      EXPECT_EQ(run_large(keeps, misbehave).report.deterministic(), byte == 100) << keeps << byte;
    }
  }
}

TEST(HarnessKept, a_write_to_the_copy_itself_is_damage) {
  FakeBackend backend;
  backend.memory_.keeps = true;
  backend.misbehave = [&memory = backend.memory_](std::span<const PortMemory>, std::byte*, int) {
    if (!memory.kept.empty()) {  // as there are none in the launches that classify
      *memory.kept.front() ^= std::byte{1};
    }
  };
  TestCase test(large(), "bf16");
  const auto reports = test.run(backend);
  EXPECT_FALSE(reports.front().inputs_intact);
  EXPECT_NE(reports.front().guard_detail.find("a copy of it"), std::string::npos) << reports.front().guard_detail;
}

TEST(HarnessKept, copies_give_way_to_a_workspace) {
  FakeBackend backend;
  backend.memory_.keeps = true;
  backend.memory_.full_beside_copies = true;
  backend.algorithm_count = 2;  // with workspaces of other sizes
  TestCase test(large(), "bf16");
  const auto reports = test.run(backend);
  ASSERT_EQ(reports.size(), 2U);
  for (const worker::RunReport& report : reports) {
    EXPECT_EQ(report.error, "");
    EXPECT_TRUE(report.guards_intact && report.inputs_intact && report.deterministic()) << report.guard_detail;
  }
}

}  // namespace
}  // namespace numcheck::kernels::test
