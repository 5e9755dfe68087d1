// Sums of products whose groups have scales, as published for NVFP4 instructions: by hand.
#include "model/group_product.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "op/mode.hpp"

namespace numcheck::model {
namespace {

constexpr std::int64_t kGroup = 16, kStep = 64;

Schedule schedule(int sm = 100) {
  return gemm_schedule(sm, *op::find_mode("fp4_e2m1"), true, false);
}

/// A row and a column of so many groups, all zeros with scales of 1.
struct Line {
  std::vector<float> a, b, a_scales, b_scales;

  explicit Line(std::int64_t groups)
      : a(static_cast<std::size_t>(groups * kGroup)),
        b(a.size()),
        a_scales(static_cast<std::size_t>(groups), 1),
        b_scales(a_scales) {}

  /// Products of group g, from its first on, and its scales.
  void set(std::size_t g, const std::vector<float>& of_a, const std::vector<float>& of_b, float a_scale,
           float b_scale) {
    for (std::size_t t = 0; t < of_a.size(); ++t) {
      a[g * kGroup + t] = of_a[t];
      b[g * kGroup + t] = of_b[t];
    }
    a_scales[g] = a_scale;
    b_scales[g] = b_scale;
  }

  [[nodiscard]] float sum(const Schedule& how = schedule()) const {
    ProductOperands operands{a, b, 1, 1, static_cast<std::int64_t>(a.size())};
    operands.scales = {a_scales, b_scales, static_cast<std::int64_t>(a_scales.size()), kGroup, false, true};
    float result = -1;
    simulate_product(how, operands, {&result, 1});
    return result;
  }
};

TEST(GroupProduct, sums_small_numbers_exactly) {
  Line line(9);  // two steps and a group
  double expected = 0;
  for (std::size_t i = 0; i < line.a.size(); ++i) {
    line.a[i] = static_cast<float>(i % 5) - 2;
    line.b[i] = static_cast<float>(i % 7) / 2 - 1;
    line.a_scales[i / kGroup] = i / kGroup % 2 == 0 ? 1.75F : -0.5F;  // the sign is not read
    const double scale = i / kGroup % 2 == 0 ? 1.75 : 0.5;
    expected += static_cast<double>(line.a[i]) * static_cast<double>(line.b[i]) * scale;
  }
  EXPECT_EQ(static_cast<double>(line.sum()), expected);
  EXPECT_EQ(line.sum(schedule(120)), line.sum());
}

TEST(GroupProduct, aligns_groups_by_their_scales_alone) {
  constexpr float kTiny = 0x1p-9F;  // E4M3's smallest: 2^-3 times 2^-6
  Line line(2);
  line.set(1, {0.5F}, {0.5F}, kTiny, kTiny);
  EXPECT_EQ(line.sum(), 0x1p-20F);
  line.set(0, {1, 1}, {1, -1}, 256, 256);
  EXPECT_EQ(line.sum(), 0) << "below 2^(16 - 35), though the first group adds up to nothing";
  line.set(1, {1}, {0.5F}, kTiny, kTiny);
  EXPECT_EQ(line.sum(), 0x1p-19F);
  line.set(1, {0.5F}, {0.5F}, kTiny, kTiny);
  line.set(0, {1, 0}, {0, 1}, 256, 256);
  EXPECT_EQ(line.sum(), 0x1p-20F) << "a group of zeros has no exponent";
  line.set(0, {1, 1}, {1, -1}, 256, 0);
  EXPECT_EQ(line.sum(), 0x1p-20F) << "nor one whose scale is 0";
}

TEST(GroupProduct, truncates_what_earlier_steps_left) {
  Line line(5);
  line.set(0, {0.5F}, {0.5F}, 0x1p-9F, 0x1p-9F);
  line.set(4, {1, 1}, {1, -1}, 256, 256);
  EXPECT_EQ(line.sum(), 0);
  line.set(0, {0.5F}, {0.5F}, 1, 1);
  EXPECT_EQ(line.sum(), 0.25F);
}

TEST(GroupProduct, rounds_toward_zero) {
  for (const float sign : {1.0F, -1.0F}) {
    Line line(2);
    line.set(0, {6 * sign}, {6}, 448, 448);         // 7225344
    line.set(1, {sign, sign}, {1, 1}, 0.4375F, 1);  // 0.875
    EXPECT_EQ(line.sum(), sign * 7225344.5F) << "spacing 0.5";
  }
}

TEST(GroupProduct, passes_nan_on_and_refuses_other_scales) {
  Line line(4);
  line.set(2, {1}, {1}, std::numeric_limits<float>::quiet_NaN(), 1);
  EXPECT_TRUE(std::isnan(line.sum()));
  Schedule split = schedule();
  split.split_k = 2;
  EXPECT_THROW(static_cast<void>(line.sum(split)), core::InternalError);
  EXPECT_THROW(static_cast<void>(gemm_schedule(90, *op::find_mode("fp4_e2m1"), true, false)), core::EnvironmentError);
}

}  // namespace
}  // namespace numcheck::model
