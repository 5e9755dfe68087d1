// Ports: values from the stream, rounded once and laid out with padding that is noticed if a kernel reads it.
#include "data/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "core/parallel.hpp"

namespace numcheck::test {
namespace {

using core::Dtype;

constexpr core::StreamId kStream{11, 22, 33};

op::Port dense(Dtype dtype, std::int64_t batch, std::int64_t rows, std::int64_t cols) {
  return {.name = "x",
          .dtype = dtype,
          .batch = batch,
          .rows = rows,
          .cols = cols,
          .ld = cols,
          .batch_stride = rows * cols,
          .offset_bytes = 0};
}

op::Port padded(Dtype dtype) {
  op::Port port = dense(dtype, 3, 5, 7);
  port.ld = 11;
  port.batch_stride = 5 * 11 + 6;
  port.offset_bytes = 3;
  return port;
}

std::vector<double> ramp(const op::Port& port) {
  std::vector<double> values(static_cast<std::size_t>(port.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = (static_cast<double>(i) - 50) / 8;
  }
  return values;
}

TEST(GeneratePort, is_the_stream_in_logical_order_whatever_the_threads) {
  const op::Port port = dense(Dtype::bf16, 2, 300, 257);
  const data::Distribution distribution = data::make_distribution("normal");
  std::vector<double> expected(static_cast<std::size_t>(port.elements()));
  data::generate(distribution, kStream, 0, expected);
  for (const int threads : {1, 3}) {
    core::set_thread_count(threads);
    const core::Buffer<double> values = data::generate_port(port, distribution, kStream, {});
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), values.span().begin(), values.span().end()));
  }
  op::Port other_layout = padded(Dtype::fp16);
  const core::Buffer<double> values = data::generate_port(other_layout, distribution, kStream, {});
  ASSERT_EQ(values.size(), 105U);
  EXPECT_TRUE(std::equal(values.span().begin(), values.span().end(), expected.begin()));
}

TEST(GeneratePort, empty_ports_have_no_values) {
  for (const char* name : {"normal", "exact"}) {
    EXPECT_TRUE(data::generate_port(dense(Dtype::fp32, 1, 0, 5), data::make_distribution(name), kStream, {}).empty());
  }
}

TEST(GeneratePort, exact_roles_take_their_bounds) {
  using Kind = data::ExactRole::Kind;
  const op::ExactPlan plan{.max_first = 2, .max_second = 3, .stride = 4, .max_addend = 5};
  const op::Port port = dense(Dtype::fp32, 2, 64, 48);
  const data::Distribution exact = data::make_distribution("exact");
  const auto largest = [&](const data::ExactRole& role) {
    return data::absolute_max(data::generate_port(port, exact, kStream, role).span());
  };
  EXPECT_EQ(largest({plan, Kind::first}), 2);
  EXPECT_EQ(largest({plan, Kind::second}), 3);
  EXPECT_EQ(largest({plan, Kind::addend}), 5);
  for (const bool along_rows : {false, true}) {
    const core::Buffer<double> values = data::generate_port(port, exact, kStream, {plan, Kind::first, along_rows});
    EXPECT_EQ(std::count_if(values.span().begin(), values.span().end(), [](double x) { return x != 0; }),
              2 * 64 * 48 / 4);
  }
  const core::Buffer<double> addend = data::generate_port(port, exact, kStream, {plan, Kind::addend});
  EXPECT_EQ(std::count(addend.span().begin(), addend.span().end(), 0.0), 0);
}

TEST(AbsoluteMax, ignores_what_is_not_finite) {
  EXPECT_EQ(data::absolute_max({}), 0);
  const std::vector<double> values = {1, -7, HUGE_VAL, -HUGE_VAL, std::nan(""), 3};
  EXPECT_EQ(data::absolute_max(values), 7);
  const std::vector<double> none = {HUGE_VAL, std::nan("")};
  EXPECT_EQ(data::absolute_max(none), 0);
  std::vector<double> many(300000, 0.5);
  many[299999] = -9;
  EXPECT_EQ(data::absolute_max(many), 9);
}

class Layout : public testing::TestWithParam<Dtype> {};
INSTANTIATE_TEST_SUITE_P(Formats, Layout,
                         testing::Values(Dtype::fp64, Dtype::fp32, Dtype::tf32, Dtype::bf16, Dtype::fp16,
                                         Dtype::fp8_e4m3, Dtype::fp8_e5m2),
                         [](const auto& given) { return std::string(core::dtype_info(given.param).name); });

TEST_P(Layout, elements_lie_where_the_port_says) {
  const op::Port port = padded(GetParam());
  const auto width = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  const std::vector<double> values = ramp(port);
  std::vector<std::byte> bytes(port.extent_bytes(), std::byte{0x55});
  data::store_port(port, values, 1, bytes);
  std::vector<bool> used(bytes.size(), false);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t batch = i / 35;
    const std::size_t row = i / 7 % 5;
    const std::size_t offset = 3 + (batch * 61 + row * 11 + i % 7) * width;
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + offset, width);
    ASSERT_EQ(word, core::encode(values[i], port.dtype)) << i;
    std::fill_n(used.begin() + static_cast<std::ptrdiff_t>(offset), width, true);
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    ASSERT_TRUE(used[i] || bytes[i] == std::byte{0xFF}) << i;
  }
  const core::Buffer<double> loaded = data::load_port(port, bytes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(loaded[i], core::round_to(values[i], port.dtype)) << i;
  }
}

TEST_P(Layout, large_dense_ports_round_trip) {
  const op::Port port = dense(GetParam(), 1, 3, 70001);
  core::Buffer<double> values =
      data::generate_port(port, data::make_distribution("normal"), kStream, data::ExactRole{});
  std::vector<std::byte> bytes(port.extent_bytes());
  data::store_port(port, values.span(), 1, bytes);
  const core::Buffer<double> loaded = data::load_port(port, bytes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(loaded[i], core::round_to(values[i], port.dtype)) << i;
  }
}

TEST(StorePort, infinities_that_codes_have_can_be_kept) {
  const std::vector<double> values = {1, 1e6, -HUGE_VAL, HUGE_VAL};
  std::vector<std::byte> bytes(4);
  data::store_port(dense(Dtype::fp8_e5m2, 1, 1, 4), values, 1, bytes);
  EXPECT_EQ(data::load_port(dense(Dtype::fp8_e5m2, 1, 1, 4), bytes)[3], 57344);
  data::store_port(dense(Dtype::fp8_e5m2, 1, 1, 4), values, 1, bytes, data::Infinities::kept);
  const core::Buffer<double> loaded = data::load_port(dense(Dtype::fp8_e5m2, 1, 1, 4), bytes);
  EXPECT_EQ(loaded[0], 1);
  EXPECT_EQ(loaded[1], 57344) << "a number that is too large";
  EXPECT_EQ(loaded[2], -HUGE_VAL);
  EXPECT_EQ(loaded[3], HUGE_VAL);
  data::store_port(dense(Dtype::fp8_e4m3, 1, 1, 4), values, 1, bytes, data::Infinities::kept);
  EXPECT_EQ(data::load_port(dense(Dtype::fp8_e4m3, 1, 1, 4), bytes)[2], -448) << "E4M3 has none";
}

/// The product is rounded to FP32 before it is quantised, as the cast kernels do, and FP8 saturates.
TEST(StorePort, scales_in_fp32_and_saturates) {
  const op::Port port = dense(Dtype::fp8_e4m3, 1, 1, 5);
  const float scale = 1.7F;
  const std::vector<double> values = {1, 100, 1e6, -HUGE_VAL, std::nan("")};
  std::vector<std::byte> bytes(5);
  data::store_port(port, values, scale, bytes);
  const core::Buffer<double> loaded = data::load_port(port, bytes);
  EXPECT_EQ(loaded[0], core::round_to(static_cast<double>(1.7F), Dtype::fp8_e4m3));
  EXPECT_EQ(loaded[1], core::round_to(static_cast<double>(100.0F * 1.7F), Dtype::fp8_e4m3));
  EXPECT_EQ(loaded[2], 448);
  EXPECT_EQ(loaded[3], -448);
  EXPECT_TRUE(std::isnan(loaded[4]));
  // The product is 1.0625 + 2^-27 - 2^-46: just above a tie of E4M3, and on it once it is rounded to FP32.
  const std::vector<double> near_tie(5, 1 + 0x1p-23);
  const float tie_scale = 1.0625F - 0x1p-23F;
  data::store_port(port, near_tie, tie_scale, bytes);
  EXPECT_EQ(core::round_to(near_tie[0] * static_cast<double>(tie_scale), Dtype::fp8_e4m3), 1.125);
  EXPECT_EQ(data::load_port(port, bytes)[0], 1);
}

}  // namespace
}  // namespace numcheck::test
