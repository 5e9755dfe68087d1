// Codes with block scales, as the numbers that they represent.
#include "verdict/compared_port.hpp"

#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace numcheck::run {
namespace {

/// Two rows of 33 E4M3 codes, with two scales each, and what holds them.
struct Problem {
  prepare::PreparedCase prepared;
  std::vector<std::byte> codes{66, std::byte{0x38}};  // 1
  std::vector<std::byte> scales{4, std::byte{127}};   // 1
  worker::RunReport run;

  Problem() {
    op::Port y = op::dense_port("y", op::Role::output, core::Dtype::fp8_e4m3, 2, 33, "");
    y.scaled_by = "s";
    y.block_cols = 32;
    prepared.ports = {y, op::dense_port("s", op::Role::output, core::Dtype::e8m0, 2, 2, "")};
    run.outputs = {{"y", {1, 2}}, {"s", {3, 4}}};
  }

  verdict::ComparedPort port(std::size_t index) {
    prepared.host = {{.port = prepared.ports.data(), .bytes = codes}, {.port = &prepared.ports[1], .bytes = scales}};
    return {prepared, prepared.host, index, run};
  }
};

float number(const verdict::ComparedPort& port, std::size_t i) {
  float value = 0;
  std::memcpy(&value, port.bytes().data() + i * sizeof value, sizeof value);
  return value;
}

TEST(ComparedPort, codes_times_the_scale_of_their_block) {
  Problem problem;
  problem.scales = {std::byte{127}, std::byte{130}, std::byte{0}, std::byte{0xFF}};
  const verdict::ComparedPort port = problem.port(0);
  EXPECT_EQ(port.port().dtype, core::Dtype::fp32);
  EXPECT_EQ(number(port, 31), 1);
  EXPECT_EQ(number(port, 32), 8);
  EXPECT_EQ(number(port, 33), 0x1p-127F);
  EXPECT_TRUE(std::isnan(number(port, 65)));
}

TEST(ComparedPort, scales_are_numbers_themselves) {
  Problem problem;
  problem.scales = {std::byte{126}, std::byte{0xFE}, std::byte{0}, std::byte{0xFF}};
  const verdict::ComparedPort port = problem.port(1);
  EXPECT_EQ(number(port, 0), 0.5F);
  EXPECT_EQ(number(port, 1), 0x1p127F);
  EXPECT_EQ(number(port, 2), 0x1p-127F);
  EXPECT_TRUE(std::isnan(number(port, 3)));
}

TEST(ComparedPort, unwritten_elements_keep_the_poison) {
  Problem problem;
  problem.codes[5] = std::byte{0xFF};
  problem.codes[6] = std::byte{0x7F};  // a NaN that was
  const verdict::ComparedPort port = problem.port(0);
  const float unwritten = number(port, 5), nan = number(port, 6);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &unwritten, sizeof bits);
  EXPECT_EQ(bits, 0xFFFFFFFFU);
  std::memcpy(&bits, &nan, sizeof bits);
  EXPECT_EQ(bits, 0x7FC00000U);
}

TEST(ComparedPort, digest_depends_on_the_scales) {
  Problem problem;
  const std::string before = problem.port(0).digest();
  problem.run.outputs[1].digest.low = 5;
  EXPECT_NE(problem.port(0).digest(), before);
}

TEST(ComparedPort, errors_are_counted_in_codes) {
  Problem problem;
  problem.codes[3] = std::byte{0x39};  // 1.125
  problem.codes[32] = std::byte{0x3A};
  problem.scales[1] = std::byte{129};  // 1.25 * 4
  const verdict::ComparedPort port = problem.port(0);
  std::vector<double> expected(66, 1.0);
  expected[32] = 4;
  metric::Statistics s;
  s.worst.push_back({.index = 32, .got = 5, .expected = 4});
  port.measure_in_code_ulps(expected, s);
  EXPECT_EQ(s.max_ulp, 2);
  EXPECT_EQ(s.ulp_histogram[0], 64U);
  EXPECT_EQ(s.ulp_histogram[2], 1U);
  EXPECT_EQ(s.ulp_histogram[3], 1U);
  EXPECT_DOUBLE_EQ(s.mean_ulp, 3.0 / 66);
  EXPECT_EQ(s.worst[0].got_bits, 0x3AU);
  EXPECT_EQ(s.worst[0].ulps, 2);
}

TEST(ComparedPort, other_ports_are_compared_as_stored) {
  Problem problem;
  problem.prepared.ports[0].scaled_by = {};
  const verdict::ComparedPort port = problem.port(0);
  EXPECT_EQ(port.port().dtype, core::Dtype::fp8_e4m3);
  EXPECT_EQ(port.bytes().data(), problem.codes.data());
  metric::Statistics s;
  s.max_ulp = 7;
  port.measure_in_code_ulps(std::vector<double>(66), s);
  EXPECT_EQ(s.max_ulp, 7);
}

}  // namespace
}  // namespace numcheck::run
