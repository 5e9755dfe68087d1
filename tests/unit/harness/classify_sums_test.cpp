// The probe of how often sums of FP8 products are promoted, on products that are exact and others that are not.
#include "kernels/harness/classify_sums.hpp"

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "fake.hpp"
#include "kernels/harness/port_image.hpp"

namespace numcheck::kernels::test {
namespace {

using model::PrecisionClass;
using op::GemmParams;

std::string note_of(const worker::RunReport& report) {
  for (const auto& [key, value] : report.details) {
    if (key == "classification") {
      return value;
    }
  }
  return {};
}

/// Of a product whose first launch leaves `first_column` instead of the first column's first elements.
worker::RunReport probed(const GemmParams& params, const std::vector<double>& first_column = {},
                         std::string_view mode = "fp8_e4m3") {
  FakeBackend backend;
  backend.misbehave = [&first_column](std::span<const PortMemory> ports, std::byte*, int launch) {
    const PortMemory& d = memory_named(ports, "d");
    for (std::size_t i = 0; launch == 0 && i < first_column.size(); ++i) {
      const std::uint64_t bits = core::encode(first_column[i], d.port->dtype);
      std::memcpy(d.data + harness::element_offset(*d.port, 0, static_cast<std::int64_t>(i), 0), &bits,
                  static_cast<std::size_t>(core::dtype_info(d.port->dtype).storage_bytes));
    }
  };
  TestCase test(params, mode);
  return test.run(backend).at(0);
}

TEST(ClassifySums, exact_ones_survive_in_every_layout) {
  for (const char* output : {"fp32", "bf16", "fp8_e4m3"}) {
    for (const bool trans_a : {false, true}) {
      for (const bool trans_b : {false, true}) {
        GemmParams params = shape(5, 3, 400);
        params.trans_a = trans_a;
        params.trans_b = trans_b;
        params.output = output;
        params.pad_a = 3;
        params.pad_d = 1;
        const worker::RunReport report = probed(params);
        EXPECT_EQ(report.observed, PrecisionClass::fp8_promoted) << output;
        EXPECT_EQ(note_of(report), "");
        EXPECT_TRUE(report.guards_intact && report.inputs_intact) << report.guard_detail;
      }
    }
  }
}

TEST(ClassifySums, lost_ones_tell_the_interval) {
  const GemmParams params = shape(5, 3, 1000);
  EXPECT_EQ(probed(params, {0, 0, 0, 0}).observed, PrecisionClass::fp8_fast);
  EXPECT_EQ(probed(shape(1, 1, 257), {0}).observed, PrecisionClass::fp8_fast);
  const worker::RunReport rare = probed(params, {0, 0});
  EXPECT_EQ(rare.observed, PrecisionClass::fp8_rarely_promoted);
  EXPECT_EQ(note_of(rare), "sums are promoted after more than 256 and at most 384 products");
  EXPECT_EQ(probed(params, {32}).observed, PrecisionClass::unknown) << "half of it is left";
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(probed(params, {kNan, kNan, kNan, kNan}).observed, PrecisionClass::unknown) << "nothing was written";
}

TEST(ClassifySums, factors_and_epilogues) {
  GemmParams params = shape(2, 2, 300);
  params.bias = true;
  params.beta = 2;
  for (const double alpha : {1.0, -1.0, 0.25, -2.0, 2e-5, -1e-8, 1e6}) {
    for (const char* epilogue : {"none", "relu", "gelu"}) {
      params.alpha = alpha;
      params.epilogue = epilogue;
      EXPECT_EQ(probed(params).observed, PrecisionClass::fp8_promoted) << alpha << epilogue;
      EXPECT_EQ(probed(params, {0}).observed, PrecisionClass::fp8_fast) << alpha << epilogue;
    }
  }
}

// 2^13 and half an ulp of the output are a tie, which any product of the second interval breaks.
TEST(ClassifySums, one_product_beyond_the_first_interval_tells) {
  for (const std::int64_t k : {129, 144, 256}) {
    GemmParams params = shape(3, 2, k);
    for (const auto& [output, lost] :
         {std::pair("fp32", 8192.0), {"bf16", 8192.0}, {"fp16", 8192.0}, {"fp8_e4m3", 256.0}}) {
      params.output = output;
      for (const double alpha : {1.0, -2.0, 0.3, -7.77e5, 1e-6}) {
        params.alpha = alpha;
        EXPECT_EQ(probed(params).observed, PrecisionClass::fp8_promoted) << k << ' ' << output << ' ' << alpha;
        if (std::string_view(output) != "fp32") {  // there the sum is near 2^13, and no tie
          EXPECT_EQ(probed(params, {lost}).observed, PrecisionClass::fp8_fast) << k << ' ' << output << ' ' << alpha;
        }
        EXPECT_EQ(probed(params, {lost / 2}).observed, PrecisionClass::unknown);
      }
    }
  }
}

TEST(ClassifySums, groups_are_probed_at_once) {
  op::GroupedGemmParams params;
  params.m = "2+0+3";
  params.n = "3";
  params.k = "300+300+144";
  params.output = "bf16";
  const auto probed_groups = [&params](std::string_view port, double sum) {
    FakeBackend backend;
    backend.misbehave = [port, sum](std::span<const PortMemory> ports, std::byte*, int launch) {
      if (const PortMemory& d = memory_named(ports, port); launch == 0) {
        const std::uint64_t bits = core::encode(sum, d.port->dtype);
        std::memcpy(d.data + harness::element_offset(*d.port, 0, 0, 0), &bits, 2);
      }
    };
    TestCase test(op::grouped_gemm(), op::to_params(params), "fp8_e4m3");
    return test.run(backend).at(0);
  };
  EXPECT_EQ(probed_groups("d0", 64).observed, PrecisionClass::fp8_promoted);
  EXPECT_EQ(probed_groups("d0", 0).observed, PrecisionClass::fp8_fast);
  const worker::RunReport last = probed_groups("d2", 8192);
  EXPECT_EQ(last.observed, PrecisionClass::fp8_fast);
  EXPECT_EQ(note_of(last), "d2");
}

TEST(ClassifySums, does_not_apply) {
  GemmParams vanishing = shape(8, 8, 512), overflowing = shape(8, 8, 512);
  vanishing.alpha = 1e-30;
  vanishing.output = "fp8_e4m3";
  overflowing.alpha = 100;
  overflowing.output = "fp8_e4m3";
  for (const GemmParams& params : {shape(8, 8, 128), shape(0, 8, 512), vanishing, overflowing}) {
    EXPECT_EQ(probed(params).observed, std::nullopt);
  }
  EXPECT_EQ(probed(shape(8, 8, 512), {}, "bf16").observed, std::nullopt);
}

}  // namespace
}  // namespace numcheck::kernels::test
