// Every way for a kernel to touch memory that is not its own, and how the harness reports it.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "fake.hpp"
#include "kernels/harness/port_image.hpp"

namespace numcheck::kernels::test {
namespace {

using op::GemmParams;

GemmParams padded(std::int64_t m, std::int64_t n, std::int64_t k) {
  GemmParams params = shape(m, n, k);
  params.pad_a = 3;
  params.pad_b = 1;
  params.pad_d = 2;
  params.misalign = 5;
  params.batch = 3;
  return params;
}

worker::RunReport run_with(Misbehaviour misbehave, const GemmParams& params) {
  FakeBackend backend;
  backend.misbehave = std::move(misbehave);
  TestCase test(params, "bf16");
  const auto reports = test.run(backend);
  EXPECT_EQ(test.outcome.kind, worker::Outcome::Kind::done) << test.outcome.reason;
  EXPECT_EQ(reports.size(), 1U);
  EXPECT_TRUE(backend.memory_.live.empty()) << "device memory leaked";
  return reports.empty() ? worker::RunReport{} : reports.front();
}

void expect_clean(const worker::RunReport& report) {
  EXPECT_TRUE(report.guards_intact) << report.guard_detail;
  EXPECT_TRUE(report.inputs_intact) << report.guard_detail;
  EXPECT_TRUE(report.deterministic());
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.guard_detail, "");
}

TEST(HarnessGuards, a_well_behaved_kernel_is_clean) {
  for (const GemmParams& params : {shape(1, 1, 1), shape(17, 9, 5), shape(64, 64, 16), padded(7, 5, 3)}) {
    expect_clean(run_with({}, params));
  }
}

TEST(HarnessGuards, empty_matrices_are_clean) {
  for (const GemmParams& params : {shape(0, 4, 3), shape(4, 0, 3), shape(4, 4, 0), shape(0, 0, 0)}) {
    expect_clean(run_with({}, params));
  }
}

TEST(HarnessGuards, reports_run_time_and_workspace) {
  const worker::RunReport report = run_with({}, shape(4, 4, 4));
  EXPECT_EQ(report.device_s, 0.25);
  EXPECT_EQ(report.workspace_bytes, 1000U);
  EXPECT_EQ(report.label, "fake 0");
  ASSERT_EQ(report.outputs.size(), 1U);
  EXPECT_EQ(report.outputs[0].port, "d");
}

TEST(HarnessGuards, reports_what_only_a_launch_shows) {
  FakeBackend backend;
  backend.shown = [&backend] { return Shown{{{"launches", std::to_string(backend.launches)}}, 8, {1, 8}}; };
  TestCase test(shape(4, 4, 4), "bf16");
  const auto reports = test.run(backend);
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].rounding.slices, 8);
  EXPECT_EQ(reports[0].rounding.group_slices, (std::vector<int>{1, 8}));
  ASSERT_EQ(reports[0].details.size(), 2U) << "it is asked once";
  EXPECT_EQ(reports[0].details[1].first, "launches");
  EXPECT_NE(reports[0].details[1].second, "0") << "it is asked before there was a launch";
}

TEST(HarnessGuards, one_byte_before_the_output) {
  const auto report =
      run_with([](auto ports, auto*, int) { memory_named(ports, "d").data[-1] = std::byte{7}; }, shape(8, 8, 8));
  EXPECT_FALSE(report.guards_intact);
  EXPECT_EQ(report.guard_detail, "d: 1 byte before the start overwritten, the nearest at -1, now 0x07");
}

TEST(HarnessGuards, one_byte_after_the_output) {
  const auto report = run_with(
      [](auto ports, auto*, int) {
        const PortMemory& d = memory_named(ports, "d");
        d.data[d.port->extent_bytes()] = std::byte{1};
      },
      shape(3, 3, 8));
  EXPECT_FALSE(report.guards_intact);
  EXPECT_EQ(report.guard_detail, "d: 1 byte after the end overwritten, the nearest at +0, now 0x01");
}

TEST(HarnessGuards, an_empty_output_is_guarded_too) {
  const auto report =
      run_with([](auto ports, auto*, int) { memory_named(ports, "d").data[0] = std::byte{1}; }, shape(0, 8, 8));
  EXPECT_FALSE(report.guards_intact);
}

TEST(HarnessGuards, guards_of_inputs) {
  const auto report = run_with(
      [](auto ports, auto*, int) {
        const PortMemory& b = memory_named(ports, "b");
        b.data[b.port->extent_bytes() + 100] = std::byte{1};
      },
      shape(8, 8, 8));
  EXPECT_FALSE(report.guards_intact);
  EXPECT_NE(report.guard_detail.find("b: 1 byte after the end"), std::string::npos) << report.guard_detail;
}

TEST(HarnessGuards, workspace_overrun_right_after_the_requested_size) {
  const auto report = run_with([](auto, auto* workspace, int) { workspace[1000] = std::byte{0}; }, shape(8, 8, 8));
  EXPECT_FALSE(report.guards_intact);
  EXPECT_NE(report.guard_detail.find("workspace: "), std::string::npos) << report.guard_detail;
}

TEST(HarnessGuards, every_algorithm_has_a_workspace_of_its_own_size) {
  FakeBackend backend;
  backend.algorithm_count = 3;
  backend.misbehaving_algorithm = 2;
  backend.misbehave = [](auto, auto* workspace, int) { workspace[400] = std::byte{0}; };
  TestCase test(shape(4, 4, 4), "bf16");
  const auto reports = test.run(backend);
  ASSERT_EQ(reports.size(), 3U);
  EXPECT_EQ(reports[2].workspace_bytes, 400U);
  expect_clean(reports[0]);
  expect_clean(reports[1]);
  EXPECT_FALSE(reports[2].guards_intact) << "byte 400 is inside the first algorithm's workspace, not in this one's";
}

TEST(HarnessGuards, what_the_probe_damages_blames_no_other_algorithm) {
  FakeBackend backend;
  backend.algorithm_count = 2;
  backend.misbehaving_algorithm = 1;
  backend.misbehave = [](auto ports, auto*, int) { memory_named(ports, "d").data[-1] = std::byte{7}; };
  TestCase test(shape(8, 8, 8), "fp32");
  const auto reports = test.run(backend);
  ASSERT_EQ(reports.size(), 2U);
  expect_clean(reports[0]);
  EXPECT_FALSE(reports[1].guards_intact);
}

TEST(HarnessGuards, padding_that_differs_between_runs_is_damage_not_a_race) {
  const auto report = run_with(
      [](auto ports, auto*, int launch) {
        const PortMemory& d = memory_named(ports, "d");
        d.data[harness::element_offset(*d.port, 0, 0, d.port->cols)] = static_cast<std::byte>(launch);
      },
      padded(6, 5, 4));
  EXPECT_FALSE(report.guards_intact);
  EXPECT_TRUE(report.deterministic());
}

TEST(HarnessGuards, padding_between_rows) {
  const auto report = run_with(
      [](auto ports, auto*, int) {
        const PortMemory& d = memory_named(ports, "d");
        d.data[harness::element_offset(*d.port, 1, 2, d.port->cols)] = std::byte{0};
      },
      padded(6, 5, 4));
  EXPECT_FALSE(report.guards_intact);
  EXPECT_NE(report.guard_detail.find("d: padding at byte"), std::string::npos) << report.guard_detail;
}

TEST(HarnessGuards, padding_before_a_displaced_first_element) {
  const auto report =
      run_with([](auto ports, auto*, int) { memory_named(ports, "d").data[1] = std::byte{0}; }, padded(6, 5, 4));
  EXPECT_FALSE(report.guards_intact);
}

TEST(HarnessGuards, a_changed_input) {
  for (const GemmParams& params : {shape(8, 8, 8), padded(6, 5, 4)}) {
    const auto report = run_with(
        [](auto ports, auto*, int) {
          const PortMemory& a = memory_named(ports, "a");
          a.data[harness::element_offset(*a.port, 0, 1, 1)] ^= std::byte{1};
        },
        params);
    EXPECT_FALSE(report.inputs_intact);
    EXPECT_TRUE(report.guards_intact);
    EXPECT_NE(report.guard_detail.find("a: byte"), std::string::npos) << report.guard_detail;
  }
}

TEST(HarnessGuards, changed_padding_of_an_input) {
  const auto report = run_with(
      [](auto ports, auto*, int) {
        const PortMemory& a = memory_named(ports, "a");
        a.data[harness::element_offset(*a.port, 0, 0, a.port->cols)] = std::byte{0};
      },
      padded(6, 5, 4));
  EXPECT_FALSE(report.inputs_intact);
}

TEST(HarnessGuards, a_damaged_guard_does_not_blame_the_next_algorithm) {
  FakeBackend backend;
  backend.algorithm_count = 2;
  backend.misbehave = [](auto ports, auto*, int) {
    memory_named(ports, "d").data[-1] = std::byte{7};
    memory_named(ports, "a").data[0] = std::byte{0x77};
  };
  TestCase test(shape(8, 8, 8), "bf16");
  const auto reports = test.run(backend);
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_FALSE(reports[0].guards_intact);
  EXPECT_FALSE(reports[0].inputs_intact);
  expect_clean(reports[1]);
}

TEST(HarnessDeterminism, a_kernel_that_reads_its_workspace_is_not_deterministic) {
  const Misbehaviour reads_workspace = [](auto ports, auto* workspace, int) {
    memory_named(ports, "d").data[0] = workspace[5];
  };
  EXPECT_FALSE(run_with(reads_workspace, shape(8, 8, 8)).deterministic());
  FakeBackend backend;
  backend.misbehave = reads_workspace;
  TestCase test(shape(8, 8, 8), "bf16");
  worker::ExecuteOptions once;
  once.repeats = 1;
  EXPECT_TRUE(test.run(backend, once).at(0).deterministic()) << "one run cannot differ from itself";
}

TEST(HarnessDeterminism, unwritten_elements_come_back_as_poison) {
  FakeBackend backend;
  backend.misbehave = [](auto ports, auto*, int) {
    memory_named(ports, "d").data[0] = std::byte{0xFF};
    memory_named(ports, "d").data[1] = std::byte{0xFF};
  };
  TestCase test(shape(2, 2, 2), "bf16");
  EXPECT_TRUE(test.run(backend).at(0).deterministic());
  EXPECT_TRUE(std::isnan(test.output(0, 0)));
}

TEST(HarnessDeterminism, host_buffers_hold_the_first_run) {
  FakeBackend backend;
  backend.misbehave = [](auto ports, auto*, int launch) {
    const std::uint64_t bits = core::encode(launch + 1.0, core::Dtype::bf16);
    std::memcpy(memory_named(ports, "d").data, &bits, 2);
  };
  TestCase test(shape(2, 2, 2), "bf16");
  worker::ExecuteOptions thrice;
  thrice.repeats = 3;
  EXPECT_FALSE(test.run(backend, thrice).at(0).deterministic());
  EXPECT_EQ(test.output(0, 0), 1.0);
  EXPECT_EQ(backend.launches, 3);
}

TEST(HarnessDeterminism, only_the_output_that_differs_is_named) {
  FakeBackend backend;
  backend.misbehave = [](auto ports, auto*, int launch) {
    const auto amax = static_cast<float>(launch + 1);
    std::memcpy(memory_named(ports, "d_amax").data, &amax, sizeof amax);
  };
  GemmParams params = shape(3, 2, 2);
  params.output = "fp8_e4m3";
  TestCase test(params, "fp8_e4m3");
  const auto report = test.run(backend).at(0);
  EXPECT_FALSE(report.deterministic());
  ASSERT_EQ(report.outputs.size(), 2U);
  EXPECT_TRUE(report.outputs[0].repeats) << report.outputs[0].port;
  EXPECT_FALSE(report.outputs[1].repeats) << report.outputs[1].port;
}

TEST(HarnessDigest, ignores_padding) {
  FakeBackend backend;
  TestCase dense(shape(6, 5, 4), "bf16");
  GemmParams with_padding = padded(6, 5, 4);
  with_padding.batch = 1;
  TestCase sparse(with_padding, "bf16");
  const auto first = dense.run(backend).at(0).outputs.at(0).digest;
  EXPECT_EQ(first, sparse.run(backend).at(0).outputs.at(0).digest);
  TestCase other(shape(5, 6, 4), "bf16");
  EXPECT_NE(first, other.run(backend).at(0).outputs.at(0).digest);
}

TEST(HarnessDigest, host_buffers_may_be_larger_than_the_ports) {
  FakeBackend backend;
  TestCase fitting(shape(6, 5, 4), "bf16"), roomy(shape(6, 5, 4), "bf16");
  for (worker::HostPort& port : roomy.host) {
    auto& buffer = roomy.bytes.find(port.port->name)->second;
    buffer.resize(buffer.size() + 100, std::byte{9});
    port.bytes = buffer;
  }
  EXPECT_EQ(fitting.run(backend).at(0).outputs.at(0).digest, roomy.run(backend).at(0).outputs.at(0).digest);
  EXPECT_EQ(roomy.bytes.find("d")->second.back(), std::byte{9});
}

TEST(HarnessDigest, amax_is_zeroed_not_poisoned) {
  FakeBackend backend;
  GemmParams params = shape(3, 2, 2);
  params.output = "fp8_e4m3";
  TestCase test(params, "fp8_e4m3");
  const auto report = test.run(backend).at(0);
  EXPECT_TRUE(report.deterministic());
  ASSERT_EQ(report.outputs.size(), 2U);
  EXPECT_EQ(report.outputs[1].port, "d_amax");
  double largest = 0;
  for (std::int64_t r = 0; r < 3; ++r) {
    for (std::int64_t c = 0; c < 2; ++c) {
      largest = std::max(largest, std::fabs(test.output(r, c)));
    }
  }
  float amax = 0;
  std::memcpy(&amax, test.bytes.find("d_amax")->second.data(), sizeof amax);
  EXPECT_GT(largest, 0);
  EXPECT_EQ(core::round_to(static_cast<double>(amax), core::Dtype::fp8_e4m3), largest) << "D is rounded, amax is not";
}

}  // namespace
}  // namespace numcheck::kernels::test
