// The classification product (probe G6) on products whose operand rounding is known.
#include "kernels/harness/classify.hpp"

#include <array>
#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>

#include "fake.hpp"

namespace numcheck::kernels::test {
namespace {

using core::Dtype;
using core::Rounding;
using op::GemmParams;

struct Expectation {
  OperandRounding rounding;
  std::string name;
  std::string note;
};

const std::vector<Expectation>& expectations() {
  static const std::vector<Expectation> all = {
      {{Dtype::fp32, Rounding::nearest_even}, "fp32", ""},
      {{Dtype::tf32, Rounding::nearest_even}, "tf32_rne", ""},
      {{Dtype::tf32, Rounding::nearest_away}, "tf32_rne", "ties rounded away from zero"},
      {{Dtype::tf32, Rounding::toward_zero}, "tf32_truncated", ""},
      {{Dtype::bf16, Rounding::nearest_even}, "bf16_inputs", ""},
      {{Dtype::bf16, Rounding::toward_zero}, "bf16_inputs", "truncated"},
      {{Dtype::fp16, Rounding::nearest_even}, "tf32_rne", "operands have the range of FP16"},
  };
  return all;
}

std::string note_of(const worker::RunReport& report) {
  for (const auto& [key, value] : report.details) {
    if (key == "classification") {
      return value;
    }
  }
  return {};
}

void expect_class(const GemmParams& params, const Expectation& wanted, std::string_view mode = "tf32") {
  FakeBackend backend;
  backend.first = backend.second = wanted.rounding;
  TestCase test(params, mode);
  const auto report = test.run(backend).at(0);
  EXPECT_EQ(report.observed, model::class_named(wanted.name)) << test.c.mode->name;
  EXPECT_EQ(note_of(report), wanted.note);
  const bool known = report.observed && report.observed != model::PrecisionClass::fp32 &&
                     report.observed != model::PrecisionClass::unknown && wanted.rounding.dtype != Dtype::fp16;
  EXPECT_EQ(report.conversion,
            known ? std::optional(model::Conversion{wanted.rounding.dtype, wanted.rounding.rounding}) : std::nullopt);
  EXPECT_TRUE(report.deterministic() && report.guards_intact && report.inputs_intact) << report.guard_detail;
}

TEST(Classify, every_rounding_at_every_size) {
  for (const GemmParams& params :
       {shape(64, 32, 16), shape(1, 1, 1), shape(1, 70, 2), shape(3, 2, 5), shape(6, 1, 1)}) {
    for (const Expectation& wanted : expectations()) {
      expect_class(params, wanted);
    }
  }
}

TEST(Classify, every_layout) {
  GemmParams params = shape(7, 9, 5);
  params.batch = 2;
  params.pad_a = 3;
  params.pad_b = 2;
  params.pad_d = 1;
  params.misalign = 3;
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      params.trans_a = trans_a;
      params.trans_b = trans_b;
      for (const Expectation& wanted : expectations()) {
        expect_class(params, wanted);
      }
    }
  }
}

TEST(Classify, factors_and_epilogues) {
  GemmParams params = shape(8, 8, 8);
  params.beta = 3;
  for (const double alpha : {1.0, -1.0, 0.3, -1e-20, 1e20}) {
    for (const char* epilogue : {"none", "relu"}) {
      params.alpha = alpha;
      params.epilogue = epilogue;
      for (const Expectation& wanted : expectations()) {
        expect_class(params, wanted);
      }
    }
  }
}

TEST(Classify, sees_through_gelu) {
  GemmParams params = shape(8, 8, 8);
  params.epilogue = "gelu";
  for (const double alpha : {1.0, -1.0, 0.3, -1e-3, 0x1p-25, 1e6, -1.9 * 0x1p33}) {
    params.alpha = alpha;
    for (const Expectation& wanted : expectations()) {
      expect_class(params, wanted);
    }
  }
}

TEST(Classify, does_not_apply) {
  GemmParams gelu = shape(8, 8, 8), no_alpha = shape(8, 8, 8), tiny = shape(8, 8, 8);
  gelu.epilogue = "gelu";
  gelu.alpha = 0x1p-26;
  no_alpha.alpha = 0;
  tiny.alpha = 1e-40;
  for (const GemmParams& params : {gelu, no_alpha, tiny, shape(8, 8, 0), shape(0, 8, 8)}) {
    expect_class(params, {{}, "", ""});
  }
  expect_class(shape(8, 8, 8), {{}, "", ""}, "bf16");
  expect_class(shape(8, 8, 8), {{}, "", ""}, "fp8_e4m3");
}

TEST(Classify, operands_that_disagree_are_unknown) {
  FakeBackend backend;
  backend.first = {Dtype::tf32, Rounding::nearest_even};
  TestCase test(shape(8, 8, 8), "tf32");
  const auto report = test.run(backend).at(0);
  EXPECT_EQ(report.observed, model::PrecisionClass::unknown);
  EXPECT_EQ(note_of(report), "a is tf32_rne, b is fp32");
}

TEST(Classify, operands_that_break_ties_differently_have_no_known_conversion) {
  FakeBackend backend;
  backend.first = {Dtype::tf32, Rounding::nearest_even};
  backend.second = {Dtype::tf32, Rounding::nearest_away};
  TestCase test(shape(8, 8, 8), "tf32");
  const auto report = test.run(backend).at(0);
  EXPECT_EQ(report.observed, model::PrecisionClass::tf32_rne);
  EXPECT_EQ(report.conversion, std::nullopt);
}

TEST(Classify, small_errors_do_not_hide_the_class) {
  for (const Expectation& wanted : expectations()) {
    // One error of all results, and one of changing sign.
    for (const auto& [shared, alternating] : {std::pair(1e-2, 0.0), std::pair(-3e-5, 0.0), std::pair(0.0, 5e-5)}) {
      if (wanted.rounding.dtype == Dtype::fp16 && shared > 1e-3) {
        continue;  // 2^17, which would show the shared error, overflows
      }
      std::array<float, kernels::harness::kProbeValues.size()> got{};
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double rounded = core::round_to(kernels::harness::kProbeValues[i], wanted.rounding.dtype,
                                              core::Overflow::ieee, wanted.rounding.rounding);
        got[i] = static_cast<float>(3 * rounded * (1 + shared + (i % 2 == 0 ? alternating : -alternating)));
      }
      const auto found = kernels::harness::classify_values(got, 3);
      EXPECT_EQ(found.precision, model::class_named(wanted.name)) << shared << " " << alternating;
      EXPECT_EQ(found.note, wanted.note);
    }
  }
}

TEST(Classify, bits_that_nothing_explains_are_unknown) {
  FakeBackend backend;
  backend.first = backend.second = {Dtype::fp8_e5m2, Rounding::nearest_even};
  TestCase test(shape(8, 8, 8), "fp32");
  EXPECT_EQ(test.run(backend).at(0).observed, model::PrecisionClass::unknown);
}

TEST(Classify, can_be_switched_off) {
  FakeBackend backend;
  TestCase test(shape(8, 8, 8), "fp32");
  worker::ExecuteOptions options;
  options.classify = false;
  EXPECT_EQ(test.run(backend, options).at(0).observed, std::nullopt);
  EXPECT_EQ(backend.launches, 2);
}

TEST(Classify, simulated_algorithms_are_probed_once_real_ones_every_time) {
  for (const bool simulated : {true, false}) {
    FakeBackend backend;
    backend.device_.simulated = simulated;
    TestCase test(shape(8, 8, 8), "fp32");
    EXPECT_EQ(test.run(backend).at(0).observed, model::PrecisionClass::fp32);
    const int first = backend.launches;
    EXPECT_EQ(test.run(backend).at(0).observed, model::PrecisionClass::fp32);
    EXPECT_EQ(backend.launches - first, simulated ? 2 : first);
  }
}

TEST(Classify, an_algorithm_that_fails_in_the_probe_is_reported) {
  FakeBackend backend;
  backend.misbehave = [](auto, auto*, int) { throw std::runtime_error("no"); };
  TestCase test(shape(8, 8, 8), "fp32");
  EXPECT_EQ(test.run(backend).at(0).error, "classification: no");
}

}  // namespace
}  // namespace numcheck::kernels::test
