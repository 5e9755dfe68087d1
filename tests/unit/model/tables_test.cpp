// The tables of configs/: architectures, the arithmetic of declared products, expected precision classes.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "model/arithmetic.hpp"
#include "model/expected_class.hpp"
#include "model/schedule.hpp"

namespace {

using namespace numcheck;
using core::Dtype;
using model::Arithmetic;
using model::PrecisionClass;

const op::Mode& mode(const char* name) {
  return *op::find_mode(name);
}

TEST(Architectures, are_those_of_the_configuration_files) {
  std::vector<int> all;
  for (const model::Architecture& a : model::architectures()) {
    all.push_back(a.sm);
    EXPECT_FALSE(a.instructions.empty());
    EXPECT_FALSE(a.sources.empty());
    for (const model::Instruction& i : a.instructions) {
      EXPECT_FALSE(i.evidence.empty());
    }
  }
  EXPECT_EQ(all, (std::vector<int>{80, 86, 89, 90, 100, 120}));
}

TEST(Architectures, unknown_ones_are_the_nearest_earlier_one) {
  EXPECT_EQ(model::find_architecture(75), nullptr);
  EXPECT_EQ(model::find_architecture(87)->sm, 86);
  EXPECT_EQ(model::find_architecture(103)->sm, 100);
  EXPECT_EQ(model::find_architecture(121)->sm, 120);
}

TEST(Instructions, operands_are_mixed_only_where_the_hardware_does) {
  const model::Architecture& hopper = *model::find_architecture(90);
  const auto find = [&](Dtype a, Dtype b) {
    return model::find_instruction(hopper, model::InstructionClass::wgmma, a, b, Dtype::fp32);
  };
  EXPECT_NE(find(Dtype::fp8_e4m3, Dtype::fp8_e5m2), nullptr);
  EXPECT_NE(find(Dtype::bf16, Dtype::bf16), nullptr);
  EXPECT_EQ(find(Dtype::bf16, Dtype::fp16), nullptr);
  EXPECT_EQ(find(Dtype::fp32, Dtype::fp32), nullptr);
}

TEST(Instructions, operands_that_do_not_fit_are_refused) {
  const model::Architecture& hopper = *model::find_architecture(90);
  const auto* i = model::find_instruction(hopper, model::InstructionClass::mma, Dtype::bf16, Dtype::bf16, Dtype::fp32);
  const std::vector<std::uint32_t> words(17, 0);
  EXPECT_THROW(static_cast<void>(model::execute(*i, words, Dtype::bf16, words, Dtype::bf16, 0)), core::InternalError);
  const std::vector<std::uint32_t> few(3, 0);
  EXPECT_THROW(static_cast<void>(model::execute(*i, few, Dtype::fp16, few, Dtype::bf16, 0)), core::InternalError);
  EXPECT_EQ(model::execute(*i, few, Dtype::bf16, few, Dtype::bf16, 0x3F800000), 0x3F800000U);
}

struct Row {
  int sm;
  const char* mode;
  bool promotes;
  bool tf32;
  Arithmetic::Kind kind;
  int L;
  int F;
  int tau;
  int interval;
};

TEST(GemmArithmetic, of_every_mode_and_architecture) {
  using Kind = Arithmetic::Kind;
  for (const Row& row : {
           Row{80, "fp32", false, false, Kind::fma_chain, 1, 0, 24, 0},
           Row{90, "fp32_pedantic", false, false, Kind::fma_chain, 1, 0, 24, 0},
           Row{80, "tf32", false, true, Kind::tensor_core, 4, 24, 23, 0},
           Row{90, "tf32", false, true, Kind::tensor_core, 8, 25, 23, 0},
           Row{90, "tf32", false, false, Kind::fma_chain, 1, 0, 24, 0},
           Row{80, "bf16", false, false, Kind::tensor_core, 8, 24, 23, 0},
           Row{90, "fp16", false, false, Kind::tensor_core, 16, 25, 23, 0},
           Row{100, "bf16", false, false, Kind::tensor_core, 16, 25, 23, 0},
           Row{80, "fp16_acc16", false, false, Kind::fp16_chain, 8, 24, 11, 0},
           Row{90, "fp16_acc16", false, false, Kind::fp16_chain, 16, 25, 11, 0},
           Row{89, "fp8_e4m3", false, false, Kind::tensor_core, 16, 13, 13, 0},
           Row{89, "fp8_e4m3", true, false, Kind::tensor_core, 16, 13, 13, 128},
           Row{90, "fp8_e4m3", true, false, Kind::tensor_core, 32, 13, 13, 128},
           Row{90, "fp8_hybrid", false, false, Kind::tensor_core, 32, 13, 13, 0},
           Row{100, "fp8_hybrid", true, false, Kind::tensor_core, 32, 25, 23, 0},
           Row{120, "fp8_e4m3", true, false, Kind::tensor_core, 32, 25, 23, 0},
       }) {
    const Arithmetic a = model::gemm_arithmetic(row.sm, mode(row.mode), row.promotes, row.tf32);
    const std::string what = std::string(row.mode) + " on sm_" + std::to_string(row.sm);
    EXPECT_EQ(a.kind, row.kind) << what;
    EXPECT_EQ(a.L, row.L) << what;
    EXPECT_EQ(a.F, row.F) << what;
    EXPECT_EQ(a.tau, row.tau) << what;
    EXPECT_EQ(a.promotion_interval, row.interval) << what;
    EXPECT_EQ(a.promoted, row.interval != 0) << what;
    EXPECT_FALSE(a.description.empty());
  }
  EXPECT_EQ(model::gemm_arithmetic(80, mode("bf16"), false, false).steps_per_instruction, 2);
  EXPECT_EQ(model::gemm_arithmetic(90, mode("bf16"), false, false).steps_per_instruction, 1);
}

TEST(GemmArithmetic, descriptions_say_what_is_assumed) {
  EXPECT_EQ(model::gemm_arithmetic(90, mode("fp8_e4m3"), true, false).description,
            "sm_90 wgmma L=32 F=13 RZ to E8M13, promoted every 128");
  EXPECT_EQ(model::gemm_arithmetic(103, mode("fp16"), false, false).description,
            "sm_103 (modelled as sm_100) tcgen05 L=16 F=25 RZ to FP32");
}

TEST(GemmArithmetic, what_an_architecture_lacks_is_a_sentence) {
  EXPECT_EQ(model::gemm_obstacle(90, mode("fp8_e4m3")), "");
  EXPECT_NE(model::gemm_obstacle(80, mode("fp8_e4m3")).find("FP8 needs sm_89"), std::string::npos);
  EXPECT_NE(model::gemm_obstacle(75, mode("fp32")).find("sm_80"), std::string::npos);
  EXPECT_THROW(static_cast<void>(model::gemm_arithmetic(86, mode("fp8_hybrid"), true, false)), core::EnvironmentError);
}

TEST(Slices, are_contiguous_and_cover_k) {
  model::Schedule s;
  s.split_k = 4;
  s.split_granularity = 64;
  const auto slices = model::slices_of(s, 300);
  ASSERT_EQ(slices.size(), 3U);  // 75 rounded up to 128: the fourth slice is empty
  EXPECT_EQ(slices[0].end, 128);
  EXPECT_EQ(slices[2].begin, 256);
  EXPECT_EQ(slices[2].end, 300);
  EXPECT_TRUE(model::slices_of(s, 0).empty());
  s.split_k = 1;
  ASSERT_EQ(model::slices_of(s, 300).size(), 1U);
  EXPECT_EQ(model::slices_of(s, 300)[0].end, 300);
}

TEST(ExpectedClass, follows_the_measured_table) {
  struct Expectation {
    const char* mode;
    PrecisionClass unset;
    PrecisionClass zero;
    PrecisionClass one;
  };
  constexpr auto kFp32 = PrecisionClass::fp32;
  constexpr auto kTf32 = PrecisionClass::tf32_rne;
  constexpr auto kNative = PrecisionClass::native;
  for (const Expectation& e :
       {Expectation{"fp32", kFp32, kFp32, kTf32}, Expectation{"fp32_pedantic", kFp32, kFp32, kFp32},
        Expectation{"tf32", kTf32, kFp32, kTf32}, Expectation{"fp32_fast16f", kTf32, kTf32, kTf32},
        Expectation{"fp32_fast16bf", kTf32, kTf32, kTf32}, Expectation{"bf16x9", kFp32, kFp32, kFp32},
        Expectation{"bf16", kNative, kNative, kNative}, Expectation{"fp16", kNative, kNative, kNative},
        Expectation{"fp16_acc16", kNative, kNative, kNative}, Expectation{"fp8_e4m3", kNative, kNative, kNative},
        Expectation{"fp8_hybrid", kNative, kNative, kNative}}) {
    EXPECT_EQ(model::expected_class(mode(e.mode), ""), e.unset) << e.mode;
    EXPECT_EQ(model::expected_class(mode(e.mode), "0"), e.zero) << e.mode;
    EXPECT_EQ(model::expected_class(mode(e.mode), "1"), e.one) << e.mode;
    for (const char* other : {"00", "0 ", "false", "off", "2", "-1", "01"}) {
      EXPECT_EQ(model::expected_class(mode(e.mode), other), e.unset) << e.mode << " " << other;
    }
  }
}

TEST(ExpectedClass, every_mode_has_one) {
  for (const op::Mode& m : op::all_modes()) {
    EXPECT_NO_THROW(static_cast<void>(model::expected_class(m, "1"))) << m.name;
  }
}

TEST(ExpectedClass, a_fast_bf16_request_permits_bf16) {
  for (const op::Mode& m : op::all_modes()) {
    EXPECT_EQ(model::permitted_class(m, PrecisionClass::bf16_inputs), m.name == "fp32_fast16bf") << m.name;
    EXPECT_FALSE(model::permitted_class(m, PrecisionClass::tf32_truncated)) << m.name;
    const bool fast = m.name == "fp32_fast16bf";
    EXPECT_EQ(model::judged_class(m, PrecisionClass::tf32_rne, std::nullopt),
              fast ? PrecisionClass::bf16_inputs : PrecisionClass::tf32_rne);
    EXPECT_EQ(model::judged_class(m, PrecisionClass::tf32_rne, PrecisionClass::fp32), PrecisionClass::tf32_rne);
  }
}

TEST(ExpectedClass, only_fp32_may_stand_in_for_tf32) {
  constexpr PrecisionClass kAll[] = {PrecisionClass::fp32,           PrecisionClass::tf32_rne,
                                     PrecisionClass::tf32_truncated, PrecisionClass::bf16_inputs,
                                     PrecisionClass::native,         PrecisionClass::unknown};
  for (const PrecisionClass expected : kAll) {
    for (const PrecisionClass observed : kAll) {
      const bool stands_in = expected == PrecisionClass::tf32_rne && observed == PrecisionClass::fp32;
      EXPECT_EQ(model::acceptable_class(expected, observed), expected == observed || stands_in);
    }
  }
}

}  // namespace
