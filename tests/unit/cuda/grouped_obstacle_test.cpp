// Which groups are not passed to cuBLASLt.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cublaslt/gemm.hpp"
#include "kernels/cublaslt/grouped_gemm.hpp"
#include "op/gemm.hpp"
#include "op/grouped_gemm.hpp"
#include "plan/case.hpp"

namespace numcheck::kernels::cublaslt {
namespace {

constexpr std::size_t kLibrary = 130100;

std::string obstacle_of(const op::GroupedGemmParams& params, std::string_view mode, int sm = 90) {
  plan::Case c;
  c.op = &op::grouped_gemm();
  c.params = op::to_params(params);
  c.mode = op::find_mode(mode);
  const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
  return grouped_obstacle({.c = &c, .ports = ports, .inject = {}}, sm, kLibrary);
}

op::GroupedGemmParams two_groups(std::string k, bool trans_b = true) {
  return {.m = "16+32", .n = "32+16", .k = std::move(k), .trans_b = trans_b};
}

TEST(CublasLtGroups, are_multiplied_where_each_product_is) {
  for (const std::string_view mode : {"fp32", "tf32", "bf16", "fp16", "fp8_e4m3", "fp8_hybrid"}) {
    EXPECT_EQ(obstacle_of(two_groups("64+128"), mode), "") << mode;
  }
  EXPECT_EQ(obstacle_of(two_groups("64+127", false), "bf16"), "");
}

TEST(CublasLtProducts, of_fp4_need_instructions_that_devices_do_not_have) {
  op::GemmParams p;
  p.m = p.n = p.k = 32;
  p.trans_b = true;
  p.scaling = "nvfp4";
  plan::Case c;
  c.op = &op::gemm();
  c.params = op::to_params(p);
  c.mode = op::find_mode("fp4_e2m1");
  const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
  EXPECT_EQ(gemm_obstacle({.c = &c, .ports = ports, .inject = {}}, 90, kLibrary),
            "NVFP4 products need sm_100 or later; this device is sm_90");
}

TEST(CublasLtGroups, the_group_that_is_not_is_named) {
  const std::string rows = obstacle_of(two_groups("64+72"), "fp8_e4m3");
  EXPECT_TRUE(rows.starts_with("group 1: cuBLASLt's FP8 products need rows")) << rows;
  const std::string layout = obstacle_of(two_groups("64", false), "fp8_e4m3");
  EXPECT_TRUE(layout.starts_with("group 0: on sm_90 cuBLASLt multiplies FP8 only as A B^T")) << layout;
  const std::string device = obstacle_of(two_groups("64"), "fp8_e4m3", 80);
  EXPECT_TRUE(device.starts_with("group 0: FP8 products need sm_89")) << device;
  EXPECT_EQ(obstacle_of(two_groups("64+0"), "bf16"), "group 1: cuBLASLt does not accept products with k = 0");
}

TEST(CublasLtGroups, may_have_epilogues_and_scales_of_blocks) {
  op::GroupedGemmParams p = two_groups("64+144");
  p.bias = true;
  p.epilogue = "gelu";
  EXPECT_EQ(obstacle_of(p, "bf16"), "");
  p.epilogue = "none";
  p.scaling = "1x128_128x128";
  EXPECT_EQ(obstacle_of(p, "fp8_e4m3"), "");
  const std::string device = obstacle_of(p, "fp8_e4m3", 100);
  EXPECT_TRUE(device.starts_with("group 0: cuBLASLt takes FP32 scales of rows and blocks on sm_90 only")) << device;
  p.m = "16+30";
  const std::string rows = obstacle_of(p, "fp8_e4m3");
  EXPECT_TRUE(rows.starts_with("group 1: cuBLASLt's products with scales of blocks need m and n")) << rows;
}

TEST(CublasLtGroups, those_without_outputs_are_left_out) {
  const op::GroupedGemmParams p{.m = "16+0", .n = "32", .k = "64+7", .trans_b = true};
  EXPECT_EQ(obstacle_of(p, "fp8_e4m3"), "");
}

// Nothing is multiplied, but there is no arithmetic to judge such an output by.
TEST(CublasLtGroups, of_formats_that_the_device_does_not_multiply_are_not_though_all_are_empty) {
  op::GroupedGemmParams p{.m = "0", .n = "32", .k = "64", .trans_b = true};
  EXPECT_EQ(obstacle_of(p, "fp8_e4m3"), "");
  EXPECT_NE(obstacle_of(p, "fp8_e4m3", 80).find("FP8 needs sm_89"), std::string::npos);
  p.scaling = "nvfp4";
  EXPECT_NE(obstacle_of(p, "fp4_e2m1").find("group 0: sm_90 has no matrix instruction for fp4_e2m1"),
            std::string::npos);
  EXPECT_EQ(obstacle_of(p, "fp4_e2m1", 100), "");
}

}  // namespace
}  // namespace numcheck::kernels::cublaslt
