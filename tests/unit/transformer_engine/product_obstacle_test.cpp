// The limits of TransformerEngine's products that the bindings check before they call it.
#include "obstacle_of.hpp"
#include "op/gemm.hpp"
#include "op/grouped_gemm.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

std::string gemm_obstacle(const op::GemmParams& params, std::string_view mode, int sm = 90) {
  return obstacle_of(transformer_engine::gemm(), op::gemm(), params, mode, "2.20.2", sm);
}

op::GemmParams product() {
  op::GemmParams p;
  p.m = p.n = p.k = 32;
  p.trans_b = true;
  return p;
}

TEST(TeGemmObstacle, modes_are_those_that_the_library_accepts) {
  for (const char* mode : {"tf32", "bf16", "fp16", "fp8_e4m3", "fp8_hybrid"}) {
    EXPECT_EQ(gemm_obstacle(product(), mode), "") << mode;
  }
  EXPECT_TRUE(says(gemm_obstacle(product(), "fp32"), "use the mode tf32, and NVIDIA_TF32_OVERRIDE=0"));
  EXPECT_TRUE(says(gemm_obstacle(product(), "fp16_acc16"), "not fp16_acc16"));
}

TEST(TeGemmObstacle, fp4_is_for_later_devices) {
  op::GemmParams p = product();
  p.scaling = "nvfp4";
  EXPECT_TRUE(says(gemm_obstacle(p, "fp4_e2m1"), "NVFP4 products need sm_100 or later; this device is sm_90"));
  EXPECT_TRUE(
      says(gemm_obstacle(p, "fp4_e2m1", 100), "reads NVFP4 scales in tiles of 128 x 4, and two codes in a byte"));
}

TEST(TeGemmObstacle, fp8_is_abt_only) {
  op::GemmParams p = product();
  p.trans_b = false;
  EXPECT_EQ(gemm_obstacle(p, "bf16"), "");
  EXPECT_TRUE(says(gemm_obstacle(p, "fp8_e4m3"), "only as A B^T"));
  EXPECT_TRUE(says(gemm_obstacle(product(), "fp8_e4m3", 80), "need sm_89"));
}

TEST(TeGroupedGemmObstacle, groups_have_products_or_no_outputs) {
  const auto obstacle = [](const op::GroupedGemmParams& p, std::string_view mode) {
    return obstacle_of(transformer_engine::grouped_gemm(), op::grouped_gemm(), p, mode);
  };
  EXPECT_EQ(obstacle({.m = "64+0+33", .trans_a = true}, "bf16"), "");
  EXPECT_EQ(obstacle({.m = "64+0", .k = "64+0"}, "tf32"), "");
  EXPECT_TRUE(says(obstacle({.k = "64+0"}, "fp16"), "need k > 0, and group 1 has none"));
  EXPECT_TRUE(says(obstacle({.n = "0"}, "fp16"), "no group has outputs"));
  EXPECT_TRUE(says(obstacle({}, "fp32"), "use the mode tf32"));
  EXPECT_TRUE(says(obstacle({.trans_a = true}, "fp8_e4m3"), "only as A B^T"));
  EXPECT_EQ(obstacle({.trans_b = true, .output = "fp8_e4m3"}, "fp8_e4m3"), "");
}

TEST(TeGroupedGemmObstacle, there_are_no_factors) {
  const auto obstacle = [](const op::GroupedGemmParams& p) {
    return obstacle_of(transformer_engine::grouped_gemm(), op::grouped_gemm(), p, "bf16");
  };
  EXPECT_EQ(obstacle({.beta = 1, .in_place = true}), "");
  EXPECT_TRUE(says(obstacle({.beta = 1}), "set in_place to true"));
  EXPECT_TRUE(says(obstacle({.alpha = 2}), "set alpha to 1, not 2, and beta to 0 or 1, not 0"));
  EXPECT_TRUE(says(obstacle({.beta = 0.5, .in_place = true}), "not 0.5"));
}

TEST(TeGroupedGemmObstacle, epilogues_and_scales_are_those_of_products) {
  const auto obstacle = [](op::GroupedGemmParams p, std::string_view mode, int sm = 90) {
    p.trans_b = true;
    return obstacle_of(transformer_engine::grouped_gemm(), op::grouped_gemm(), p, mode, "2.20.2", sm);
  };
  EXPECT_EQ(obstacle({.bias = true, .epilogue = "gelu"}, "bf16"), "");
  EXPECT_TRUE(says(obstacle({.epilogue = "relu"}, "bf16"), "no relu epilogue"));
  EXPECT_EQ(obstacle({.bias = true, .scaling = "1x128_128x128"}, "fp8_e4m3"), "");
  EXPECT_TRUE(says(obstacle({.scaling = "1x128_128x128"}, "fp8_e4m3", 89), "on sm_90 only; this device is sm_89"));
  EXPECT_TRUE(says(obstacle({.epilogue = "gelu", .scaling = "1x128_1x128"}, "fp8_e4m3"), "no gelu epilogue"));
  EXPECT_TRUE(says(obstacle({.scaling = "outer_vector"}, "fp8_e4m3"), "no scales of rows and columns"));
  EXPECT_TRUE(says(obstacle({.scaling = "mxfp8"}, "fp8_e4m3"), "MXFP8 products need sm_100 or later"));
}

TEST(TeGemmObstacle, shapes_and_epilogues) {
  op::GemmParams p = product();
  p.epilogue = "relu";
  EXPECT_TRUE(says(gemm_obstacle(p, "bf16"), "no relu epilogue"));
  p.epilogue = "gelu";
  p.bias = true;
  p.beta = 1;
  EXPECT_TRUE(says(gemm_obstacle(p, "bf16"), "set in_place to true"));
  p.in_place = true;
  EXPECT_EQ(gemm_obstacle(p, "bf16"), "");
  p.output = "fp8_e4m3";
  EXPECT_TRUE(says(gemm_obstacle(p, "fp8_e4m3"), "does not accumulate into an FP8 output"));
  p = product();
  p.batch = 2;
  EXPECT_TRUE(says(gemm_obstacle(p, "bf16"), "not batched"));
  p = product();
  p.pad_a = 8;
  EXPECT_TRUE(says(gemm_obstacle(p, "bf16"), "only dense tensors; a has rows of 32 elements, 40 apart"));
  p = product();
  p.k = 0;
  EXPECT_TRUE(says(gemm_obstacle(p, "bf16"), "does not accept empty tensors"));
}

}  // namespace
}  // namespace numcheck::kernels::transformer_engine
