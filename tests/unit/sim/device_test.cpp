// The simulated device: what it supports, how it reads its ports, how it follows NVIDIA_TF32_OVERRIDE.
#include "tests/unit/sim/device.hpp"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "kernels/sim/bindings.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fwd.hpp"

namespace {

using namespace numcheck;
using testing_sim::SimDevice;
using testing_sim::TF32Override;

op::GemmParams shape(std::int64_t m, std::int64_t n, std::int64_t k) {
  op::GemmParams p;
  p.m = m;
  p.n = n;
  p.k = k;
  return p;
}

TEST(SimDevice, says_what_it_is) {
  const auto backend = kernels::sim::make_backend(90);
  EXPECT_EQ(backend->name(), "sim");
  EXPECT_EQ(backend->device().name, "simulated sm_90");
  EXPECT_EQ(backend->device().sm, 90);
  EXPECT_TRUE(backend->device().simulated);
  EXPECT_THROW(static_cast<void>(kernels::sim::make_backend(70)), core::EnvironmentError);
}

TEST(SimDevice, refuses_what_the_architecture_lacks) {
  const auto ampere = kernels::sim::make_backend(80);
  const auto fp8 = SimDevice(*ampere, shape(16, 16, 16), "fp8_e4m3").supports();
  EXPECT_FALSE(fp8.yes);
  EXPECT_NE(fp8.reason.find("FP8 needs sm_89"), std::string::npos);
  const auto blackwell = kernels::sim::make_backend(100);
  EXPECT_FALSE(SimDevice(*blackwell, shape(16, 16, 16), "bf16x9").supports().yes);
  const auto hopper = kernels::sim::make_backend(90);
  EXPECT_TRUE(SimDevice(*hopper, shape(16, 16, 16), "bf16x9").supports().yes);
  EXPECT_TRUE(SimDevice(*hopper, shape(16, 16, 16), "fp8_hybrid").supports().yes);
}

TEST(SimDevice, refuses_attention_in_formats_that_the_architecture_does_not_multiply) {
  const auto support = [](int sm, const op::Op& op) {
    op::AttentionParams p;
    p.sq = p.sk = p.d = 16;
    plan::Case c;
    c.op = &op;
    c.params = op::to_params(p);
    c.mode = op::find_mode("fp8_hybrid");
    c.backend = "sim";
    const std::vector<op::Port> ports = op.ports(c.params, *c.mode);
    const std::vector<const kernels::Binding*> bindings = {&kernels::sim::attention_fwd(),
                                                           &kernels::sim::attention_bwd()};
    return kernels::sim::make_backend(sm, bindings)->supports({&c, ports, ""});
  };
  for (const op::Op* op : {&op::attention_fwd(), &op::attention_bwd()}) {
    EXPECT_FALSE(support(80, *op).yes);
    EXPECT_NE(support(80, *op).reason.find("FP8 needs sm_89"), std::string::npos) << support(80, *op).reason;
    EXPECT_TRUE(support(90, *op).yes) << support(90, *op).reason;
  }
}

TEST(SimDevice, offers_split_schedules_on_request) {
  const auto backend = kernels::sim::make_backend(90);
  op::GemmParams p = shape(8, 8, 256);
  p.output = "fp32";
  SimDevice device(*backend, p, "bf16");
  ASSERT_EQ(device.algorithms().size(), 1U);
  device.c.algorithms = {plan::AlgorithmSpec::Kind::top, 2};
  EXPECT_EQ(device.algorithms().size(), 2U);
  device.c.algorithms = {plan::AlgorithmSpec::Kind::all, 1};
  const auto all = device.algorithms();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].label, "simulated sm_90, unsplit");
  EXPECT_EQ(all[2].label, "simulated sm_90, split-K 4");
  EXPECT_NE(device.run({}, 0), device.run({}, 2));
  EXPECT_EQ(device.run({}, 2), device.run({}, 2));
}

/// D in double for integer operands, whose sums are exact in every accumulator.
TEST(SimDevice, every_mode_and_layout_gives_exact_integers) {
  for (const int sm : {80, 86, 89, 90, 100, 120}) {
    const auto backend = kernels::sim::make_backend(sm);
    for (const op::Mode& mode : op::all_modes()) {
      if (mode.first == core::Dtype::fp4_e2m1) {
        continue;  // which has scales of blocks in one layout
      }
      for (const int variant : {0, 1, 2, 3}) {
        op::GemmParams p = shape(9, 11, 13);
        p.trans_a = (variant & 1) != 0;
        p.trans_b = (variant & 2) != 0;
        p.batch = variant == 0 ? 40 : 2;
        p.pad_a = variant;
        p.pad_b = 3 - variant;
        p.pad_d = 2 * variant;
        p.misalign = variant;
        p.alpha = 2;
        p.beta = -1;
        p.bias = true;
        p.epilogue = variant == 3 ? "relu" : "none";
        SimDevice device(*backend, p, std::string(mode.name).c_str());
        if (!device.supports().yes) {
          continue;
        }
        const auto value = [](std::size_t i, std::size_t salt) {
          return static_cast<double>((i * 7 + salt) % 3) - 1;  // -1, 0, 1
        };
        const auto filled = [&](std::string_view port, std::size_t salt) {
          std::vector<double> values(device.get(port).size());
          for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = value(i / 2 + i, salt);
          }
          device.set(port, values);
          return values;
        };
        const auto a = filled("a", 0);
        const auto b = filled("b", 1);
        const auto c = filled("c", 2);
        const auto bias = filled("bias", 1);
        const auto d = device.run();
        const auto m = static_cast<std::size_t>(p.m);
        const auto n = static_cast<std::size_t>(p.n);
        const auto k = static_cast<std::size_t>(p.k);
        for (std::size_t e = 0; e < d.size(); ++e) {
          const std::size_t batch = e / (m * n);
          const std::size_t i = e / n % m;
          const std::size_t j = e % n;
          double sum = 0;
          for (std::size_t t = 0; t < k; ++t) {
            sum += a[batch * m * k + (p.trans_a ? t * m + i : i * k + t)] *
                   b[batch * k * n + (p.trans_b ? j * k + t : t * n + j)];
          }
          double expected = 2 * sum - c[e] + bias[j];
          expected = p.epilogue == "relu" ? std::fmax(expected, 0.0) : expected;
          ASSERT_EQ(d[e], expected) << mode.name << " on sm_" << sm << " variant " << variant << " element " << e;
        }
      }
    }
  }
}

TEST(SimDevice, leaves_padding_alone) {
  const auto backend = kernels::sim::make_backend(90);
  op::GemmParams p = shape(3, 5, 4);
  p.pad_d = 3;
  p.misalign = 1;
  p.batch = 2;
  SimDevice device(*backend, p, "fp16");
  static_cast<void>(device.run());
  const auto bytes = device.bytes("d");
  std::size_t untouched = 0;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    untouched += bytes[i] == std::byte{0xFF} && bytes[i + 1] == std::byte{0xFF} ? 1 : 0;
  }
  EXPECT_EQ(untouched, bytes.size() / 2 - 30);
}

TEST(SimDevice, empty_products) {
  const auto backend = kernels::sim::make_backend(90);
  op::GemmParams p = shape(2, 3, 0);
  p.bias = true;
  SimDevice device(*backend, p, "bf16");
  device.set("bias", {1, 2, 3});
  EXPECT_EQ(device.run(), (std::vector<double>{1, 2, 3, 1, 2, 3}));
  SimDevice none(*backend, shape(0, 3, 5), "fp32");
  EXPECT_TRUE(none.run().empty());
}

TEST(SimDevice, scales_and_measures_fp8) {
  const auto backend = kernels::sim::make_backend(90);
  op::GemmParams p = shape(2, 2, 1);
  p.output = "fp8_e4m3";
  p.batch = 3;
  SimDevice device(*backend, p, "fp8_e4m3");
  device.set("a", {1, 2, 1, 2, 1, -4});
  device.set("b", {1, 3, 1, 3, 1, 3});
  device.set("a_scale_inv", {0.5});
  device.set("b_scale_inv", {0.25});
  device.set("d_scale", {8});
  const auto d = device.run();
  EXPECT_EQ(d[0], 1);  // 1 * 1 / 8 * 8
  EXPECT_EQ(d[3], 6);  // 2 * 3
  EXPECT_EQ(d[11], -12);
  EXPECT_EQ(device.get("d_amax")[0], 1.5);
  device.set("d_scale", {4096});
  EXPECT_EQ(device.run()[11], -448);
}

/// How a product of the operand with 1 comes out tells the class: 1 + 2^-12 survives only in FP32.
double probe(const char* mode, const char* override_value) {
  const TF32Override scope(override_value);
  const auto backend = kernels::sim::make_backend(90);
  SimDevice device(*backend, shape(1, 1, 1), mode);
  device.set("a", {1 + 0x1p-12 + 0x1p-11});
  device.set("b", {1});
  return device.run()[0];
}

TEST(SimDevice, follows_the_override) {
  constexpr double kFp32 = 1 + 0x1p-12 + 0x1p-11;
  constexpr double kTf32 = 1 + 0x1p-10;
  EXPECT_EQ(probe("fp32", nullptr), kFp32);
  EXPECT_EQ(probe("fp32", "0"), kFp32);
  EXPECT_EQ(probe("fp32", "1"), kTf32);
  EXPECT_EQ(probe("fp32", "00"), kFp32);
  EXPECT_EQ(probe("fp32_pedantic", "1"), kFp32);
  EXPECT_EQ(probe("tf32", nullptr), kTf32);
  EXPECT_EQ(probe("tf32", "0"), kFp32);
  EXPECT_EQ(probe("tf32", "1"), kTf32);
  EXPECT_EQ(probe("fp32_fast16f", "0"), kTf32);
  EXPECT_EQ(probe("fp32_fast16bf", nullptr), kTf32);
  EXPECT_EQ(probe("bf16x9", "1"), kFp32);
}

TEST(SimDevice, reads_the_override_once) {
  const TF32Override unset(nullptr);
  const auto backend = kernels::sim::make_backend(90);
  const TF32Override one("1");
  SimDevice device(*backend, shape(1, 1, 1), "fp32");
  device.set("a", {1 + 0x1p-20});
  device.set("b", {1});
  EXPECT_EQ(device.run()[0], 1 + 0x1p-20);
}

TEST(SimDevice, faster_modes_lose_what_they_should) {
  const auto backend = kernels::sim::make_backend(90);
  op::GemmParams fast = shape(4, 4, 512);
  fast.accumulate = "fast";
  fast.output = "fp32";
  op::GemmParams split = fast;
  split.accumulate = "split";
  // Positive integers: every sum passes 2^14, which 14 bits cannot hold unless sums are promoted every 128.
  const std::vector<double> operand(4 * 512, 9);
  for (const auto& [params, expected_exact] : {std::pair{fast, false}, std::pair{split, true}}) {
    SimDevice device(*backend, params, "fp8_e4m3");
    device.set("a", operand);
    device.set("b", std::vector<double>(4 * 512, 13));
    EXPECT_EQ(device.run()[5] == 9 * 13 * 512, expected_exact);
  }
}

}  // namespace
