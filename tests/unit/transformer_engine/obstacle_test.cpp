// The limits of TransformerEngine that the bindings check before they call it.
#include "obstacle_of.hpp"
#include "op/activation_bwd.hpp"
#include "op/activation_fwd.hpp"
#include "op/amax.hpp"
#include "op/bias_grad.hpp"
#include "op/dropout.hpp"
#include "op/fp8_recipe.hpp"
#include "op/moe.hpp"
#include "op/multi_tensor_scale.hpp"
#include "op/quantize.hpp"
#include "op/rmsnorm_bwd.hpp"
#include "op/rmsnorm_fwd.hpp"
#include "op/rope.hpp"
#include "op/softmax_bwd.hpp"
#include "op/softmax_fwd.hpp"
#include "op/swizzle_scales.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

TEST(TeNormObstacle, variants_that_the_kernels_lack) {
  op::RmsnormFwdParams forward;
  forward.rows = 3;
  forward.hidden = 5;
  EXPECT_EQ(obstacle_of(transformer_engine::rmsnorm_fwd(), op::rmsnorm_fwd(), forward, "bf16"), "");
  forward.gamma_order = "hf";
  EXPECT_TRUE(says(obstacle_of(transformer_engine::rmsnorm_fwd(), op::rmsnorm_fwd(), forward, "bf16"),
                   "set gamma_order to te"));
  op::RmsnormBwdParams backward;
  backward.rows = 3;
  backward.hidden = 5;
  backward.zero_centered_gamma = true;
  backward.gamma_add = "weight";
  EXPECT_TRUE(says(obstacle_of(transformer_engine::rmsnorm_bwd(), op::rmsnorm_bwd(), backward, "bf16"), "in FP32"));
  backward.gamma_add = "fp32";
  EXPECT_EQ(obstacle_of(transformer_engine::rmsnorm_bwd(), op::rmsnorm_bwd(), backward, "bf16"), "");
  backward.add = true;
  EXPECT_EQ(obstacle_of(transformer_engine::rmsnorm_bwd(), op::rmsnorm_bwd(), backward, "bf16"),
            "TransformerEngine 2.20.2 has no nvte_rmsnorm_bwd_add; install a version that has it");
}

op::SoftmaxFwdParams scores(std::int64_t sq, std::int64_t sk, const std::string& mask = "none") {
  op::SoftmaxFwdParams p;
  p.batches = 2;
  p.heads = 4;
  p.sq = sq;
  p.sk = sk;
  p.mask = mask;
  return p;
}

std::string softmax_obstacle(const op::SoftmaxFwdParams& params, std::string_view mode = "bf16") {
  return obstacle_of(transformer_engine::softmax_fwd(), op::softmax_fwd(), params, mode);
}

TEST(TeSoftmaxObstacle, rows_per_block) {
  // 8 rows a block up to 128 columns, 4 beyond; a short row shares its warp: 16 and more.
  EXPECT_EQ(softmax_obstacle(scores(8, 128)), "");
  EXPECT_TRUE(says(softmax_obstacle(scores(12, 128)), "sq in multiples of 8"));
  EXPECT_EQ(softmax_obstacle(scores(12, 132)), "");
  EXPECT_TRUE(says(softmax_obstacle(scores(8, 16)), "sq in multiples of 16"));
  EXPECT_TRUE(says(softmax_obstacle(scores(2, 16384)), "sq in multiples of 4"));
  EXPECT_TRUE(says(softmax_obstacle(scores(4, 16388)), "up to 16384 columns"));
  EXPECT_TRUE(says(softmax_obstacle(scores(4, 130)), "multiple of 4"));
  EXPECT_EQ(softmax_obstacle(scores(3, 132, "causal_bottom_right")), "");
  EXPECT_EQ(softmax_obstacle(scores(64, 64, "causal")), "");
  EXPECT_TRUE(says(softmax_obstacle(scores(32, 64, "causal")), "sq must equal sk"));
  EXPECT_TRUE(says(softmax_obstacle(scores(16, 16, "causal")), "batches * heads in multiples of 16"));
}

TEST(TeSoftmaxObstacle, backward_would_leave_rows_unwritten) {
  op::SoftmaxBwdParams p;
  p.sq = 6;
  p.sk = 256;
  EXPECT_TRUE(says(obstacle_of(transformer_engine::softmax_bwd(), op::softmax_bwd(), p, "bf16"),
                   "leaves other rows unwritten"));
  p.heads = 2;
  EXPECT_EQ(obstacle_of(transformer_engine::softmax_bwd(), op::softmax_bwd(), p, "bf16"), "");
}

TEST(TeSoftmaxObstacle, formats_and_variants) {
  EXPECT_TRUE(says(softmax_obstacle(scores(8, 128), "fp32"), "BF16 and FP16 only"));
  op::SoftmaxFwdParams p = scores(8, 128, "arbitrary");
  EXPECT_EQ(softmax_obstacle(p), "");
  p.masked_value = "minus_infinity";
  EXPECT_TRUE(says(softmax_obstacle(p), "set masked_value to te"));
  p = scores(8, 128);
  p.scale_rounding = "ideal";
  EXPECT_EQ(softmax_obstacle(p), "");
  p.scale = 0.13;
  EXPECT_TRUE(says(softmax_obstacle(p), "rounds the forward scale"));
}

TEST(TeActivationObstacle, kinds_and_versions) {
  op::ActivationParams p;
  p.rows = p.hidden = 4;
  const auto obstacle = [&p] {
    return obstacle_of(transformer_engine::activation_fwd(), op::activation_fwd(), p, "bf16");
  };
  EXPECT_EQ(obstacle(), "");
  p.kind = "gelu_erf";
  EXPECT_TRUE(says(obstacle(), "has no gelu_erf"));
  p.kind = "clamped_swiglu";
  EXPECT_EQ(obstacle(), "");
  p.offset = 0;
  EXPECT_TRUE(says(obstacle(), "has no nvte_clamped_swiglu_v2"));
  p.kind = "gelu";
  p.rows = 0;
  EXPECT_TRUE(says(obstacle(), "does not accept empty tensors"));
}

TEST(TeActivationObstacle, mxfp8_needs_a_device_and_whole_blocks) {
  op::ActivationParams p;
  p.rows = p.hidden = 64;
  p.output = "mxfp8_e4m3";
  p.layout = "both";
  const auto obstacle = [&p](int sm) {
    return obstacle_of(transformer_engine::activation_bwd(), op::activation_bwd(), p, "bf16", "2.20.2", sm);
  };
  EXPECT_TRUE(says(obstacle(90), "compute capability 10.0 and later, and this one has 9.0"));
  EXPECT_TRUE(says(obstacle(100), "has no nvte_dgelu"));  // the fake library; nothing else stands in the way
  p.hidden = 40;
  EXPECT_TRUE(says(obstacle(100), "has no nvte_dgelu")) << "ends of blocks are its kernels' own affair";
  p.kind = "geglu";
  EXPECT_TRUE(says(obstacle(100), "multiples of 32, not 40"));
  p.kind = "gelu";
  p.output = "fp8_e4m3";
  p.layout = "rowwise";
  EXPECT_TRUE(says(obstacle(90), "has no nvte_dgelu"));
}

TEST(TeCastObstacle, blocks_depend_on_version_and_device) {
  op::QuantizeParams p{.rows = 64, .cols = 64, .recipe = "block_1x128"};
  const auto obstacle = [&p](const char* version, int sm = 90) {
    return obstacle_of(transformer_engine::quantize(), op::quantize(), p, "bf16", version, sm);
  };
  EXPECT_TRUE(says(obstacle("2.20.2"), "has no nvte_quantize_v2"));  // the fake library; nothing else stands in the way
  p.scale_layout = "compact";
  EXPECT_TRUE(says(obstacle("2.11.0"), "has no nvte_quantize_v2"));
  EXPECT_TRUE(says(obstacle("2.12.0"), "only up to 2.11, and this library is 2.12.0"));
  EXPECT_TRUE(says(obstacle(""), "only up to 2.11, and this library is of unknown version"));
  p.scale_layout = "gemm_ready";
  p.power_of_two = "off";
  EXPECT_TRUE(says(obstacle("2.20.2"), "has no nvte_quantize_v2"));
  EXPECT_TRUE(says(obstacle("2.20.2", 100), "set power_of_two to on"));
  p.power_of_two = "default";
  p.recipe = "block_128x128";
  p.layout = "columnwise";
  EXPECT_TRUE(says(obstacle("2.20.2"), "has no nvte_quantize_v2"));
  EXPECT_TRUE(says(obstacle("2.11.0"), "only from 2.20 on, and this library is 2.11.0: set layout to both"));
  p.rows = 0;
  EXPECT_TRUE(says(obstacle("2.20.2"), "does not accept empty tensors"));
}

TEST(TeCastObstacle, mxfp8_needs_a_device_and_rounds_up) {
  op::QuantizeParams p{.rows = 64, .cols = 64, .recipe = "mxfp8"};
  const auto obstacle = [&p](int sm) {
    return obstacle_of(transformer_engine::quantize(), op::quantize(), p, "bf16", "2.20.2", sm);
  };
  EXPECT_TRUE(says(obstacle(90), "writes MXFP8 outputs only on devices of compute capability 10.0 and later"));
  EXPECT_TRUE(says(obstacle(100), "has no nvte_quantize"));
  p.rounding = "floor";
  EXPECT_TRUE(says(obstacle(100), "set rounding to up"));
}

TEST(TeCastObstacle, nvfp4_is_rounded_to_nearest_on_devices_that_have_it) {
  op::QuantizeParams p{.rows = 64, .cols = 64, .format = "fp4_e2m1", .recipe = "nvfp4"};
  const auto obstacle = [&p](const char* mode, int sm, const char* version = "2.20.2") {
    return obstacle_of(transformer_engine::quantize(), op::quantize(), p, mode, version, sm);
  };
  EXPECT_TRUE(says(obstacle("bf16", 90), "nearest NVFP4 codes only on devices of compute capability 10.0 and later"));
  EXPECT_TRUE(says(obstacle("bf16", 100), "has no nvte_quantize_v2"));
  p.stochastic = true;
  EXPECT_TRUE(says(obstacle("bf16", 90), "BF16 tensors of 32 x 32 elements to NVFP4 codes only on devices"));
  EXPECT_TRUE(says(obstacle("fp32", 90), "has no nvte_quantize_v2"));
  EXPECT_TRUE(says(obstacle("fp32", 90, "2.11.0"), "only from 2.20 on, and this library is 2.11.0"));
  p.layout = "columnwise";
  EXPECT_TRUE(says(obstacle("bf16", 90), "has no nvte_quantize_v2"));
  p.block_shape = "16x16";
  EXPECT_TRUE(says(obstacle("bf16", 90), "BF16 tensors of 32 x 32 elements"));
  p.rows = 48;
  EXPECT_TRUE(says(obstacle("bf16", 90), "has no nvte_quantize_v2"));
  p.rows = 40;
  EXPECT_TRUE(says(obstacle("bf16", 90), "rows and cols must be multiples, not 40 and 64"));
}

TEST(TeCastObstacle, nvfp4_codes_are_read_on_all_devices) {
  op::DequantizeParams p{.rows = 3, .cols = 64, .format = "fp4_e2m1", .recipe = "nvfp4"};
  const auto obstacle = [&p] {
    return obstacle_of(transformer_engine::dequantize(), op::dequantize(), p, "bf16", "2.20.2", 90);
  };
  EXPECT_TRUE(says(obstacle(), "has no nvte_dequantize"));
  p.cols = 24;
  EXPECT_TRUE(says(obstacle(), "cols must be a multiple, not 24"));
}

TEST(TeCastObstacle, codes_with_fp32_scales_of_blocks_are_not_read) {
  op::DequantizeParams p{.rows = 64, .cols = 64, .recipe = "block_1x128"};
  const auto obstacle = [&p](int sm) {
    return obstacle_of(transformer_engine::dequantize(), op::dequantize(), p, "bf16", "2.20.2", sm);
  };
  EXPECT_TRUE(says(obstacle(90), "does not read codes with FP32 scales of blocks"));
  p.recipe = "mxfp8";
  EXPECT_TRUE(says(obstacle(90), "dequantises MXFP8 codes only on devices of compute capability 10.0"));
  EXPECT_TRUE(says(obstacle(100), "has no nvte_dequantize"));
}

TEST(TeActivationObstacle, other_kernels_have_a_fast_sigmoid) {
  op::ActivationParams p;
  p.rows = p.hidden = 64;
  p.kind = "swiglu";
  const auto obstacle = [&p](int sm) {
    return obstacle_of(transformer_engine::activation_bwd(), op::activation_bwd(), p, "bf16", "2.20.2", sm);
  };
  EXPECT_TRUE(says(obstacle(90), "has no nvte_dswiglu"));
  EXPECT_TRUE(says(obstacle(100), "set sigmoid to fast"));
  p.hidden = 72;
  EXPECT_TRUE(says(obstacle(100), "has no nvte_dswiglu")) << "the plain kernel";
  p.hidden = 64;
  p.output = "mxfp8_e4m3";
  EXPECT_TRUE(says(obstacle(100), "set sigmoid to fast"));
  p.sigmoid = "fast";
  EXPECT_TRUE(says(obstacle(100), "has no nvte_dswiglu"));
  p.output = "default";
  EXPECT_TRUE(says(obstacle(90), "has no nvte_dswiglu")) << "an accurate one is good enough";
}

TEST(TeRopeObstacle, depends_on_the_version) {
  op::RopeParams p;
  p.seq = 4;
  p.dim = 8;
  const auto obstacle = [&p](const char* version) {
    return obstacle_of(transformer_engine::rope_bwd(), op::rope_bwd(), p, "bf16", version);
  };
  EXPECT_EQ(obstacle("2.9.0"), "");
  EXPECT_EQ(obstacle("2.10.0"), "");
  EXPECT_TRUE(says(obstacle(""), "version, which is unknown"));
  p.start = 2;
  EXPECT_TRUE(says(obstacle("2.9.0"), "does not take start positions"));
  EXPECT_EQ(obstacle("2.10.0"), "");
  p.seq = 1 << 24;
  p.heads = 32;
  EXPECT_TRUE(says(obstacle("2.20.2"), "32 bits"));
}

TEST(TeMoeObstacle, rows_and_the_routers_format) {
  op::MoePermuteParams rows;
  rows.tokens = 4;
  rows.hidden = 12;
  EXPECT_TRUE(
      says(obstacle_of(transformer_engine::moe_permute(), op::moe_permute(), rows, "bf16"), "16 bytes at a time"));
  EXPECT_TRUE(
      says(obstacle_of(transformer_engine::moe_permute(), op::moe_permute(), rows, "fp32"), "has no nvte_permute"));
  op::RouterTopkParams router;
  router.tokens = 4;
  router.experts = 8;
  const auto obstacle = [&router](std::string_view mode, const char* version) {
    return obstacle_of(transformer_engine::router_topk(), op::router_topk(), router, mode, version);
  };
  EXPECT_EQ(obstacle("bf16", "2.13.0"), "");
  EXPECT_EQ(obstacle("fp32", "2.11.0"), "");
  EXPECT_TRUE(says(obstacle("bf16", "2.11.0"), "2.13 and newer in FP32"));
}

TEST(TeAmaxObstacle, its_function_is_needed_and_empty_tensors_are_accepted) {
  op::AmaxParams p;
  const auto obstacle = [&p] { return obstacle_of(transformer_engine::amax(), op::amax(), p, "bf16"); };
  EXPECT_TRUE(says(obstacle(), "has no nvte_compute_amax"));
  p.rows = p.cols = 4;
  p.format = "fp8_e4m3";
  EXPECT_TRUE(says(obstacle(), "has no nvte_compute_amax"));
}

TEST(TeSwizzleObstacle, its_function_is_needed_and_empty_tensors_are_refused) {
  op::SwizzleScalesParams p;
  const auto obstacle = [&p] {
    return obstacle_of(transformer_engine::swizzle_scales(), op::swizzle_scales(), p, "fp32");
  };
  EXPECT_TRUE(says(obstacle(), "does not accept empty tensors"));
  p.rows = 1;
  p.cols = 32;
  EXPECT_TRUE(says(obstacle(), "has no nvte_swizzle_scaling_factors"));
}

TEST(TeMultiTensorScaleObstacle, its_function_is_needed_and_empty_tensors_are_refused) {
  op::MultiTensorScaleParams p;
  const auto obstacle = [&p] {
    return obstacle_of(transformer_engine::multi_tensor_scale(), op::multi_tensor_scale(), p, "fp32");
  };
  EXPECT_TRUE(says(obstacle(), "does not accept empty tensors"));
  p.tensors = 1;
  EXPECT_TRUE(says(obstacle(), "has no nvte_multi_tensor_compute_scale_and_scale_inv_cuda"));
}

TEST(TeFp8RecipeObstacle, each_kernel_needs_its_function_and_casts) {
  op::Fp8RecipeParams p;
  p.steps = p.tensors = 4;
  const auto obstacle = [&p] { return obstacle_of(transformer_engine::fp8_recipe(), op::fp8_recipe(), p, "fp32"); };
  EXPECT_TRUE(says(obstacle(), "has no nvte_delayed_scaling_recipe_amax_and_scale_update"));
  p.kernel = "after_reduction";
  EXPECT_TRUE(says(obstacle(), "has no nvte_delayed_scaling_recipe_amax_and_scale_update_after_reduction"));
  p.modules = 10000;
  EXPECT_TRUE(says(obstacle(), "does not hold those of 10000 modules"));
  p.steps = 0;
  EXPECT_TRUE(says(obstacle(), "does not accept empty tensors"));
}

TEST(TeOtherObstacles, dropout_and_bias_gradient) {
  op::DropoutParams dropout;
  dropout.elements = 64;
  EXPECT_EQ(obstacle_of(transformer_engine::dropout_fwd(), op::dropout_fwd(), dropout, "fp16"), "");
  EXPECT_TRUE(
      says(obstacle_of(transformer_engine::dropout_fwd(), op::dropout_fwd(), dropout, "fp32"), "BF16 and FP16 only"));
  op::BiasGradParams gradient;
  gradient.rows = gradient.hidden = 16;
  EXPECT_EQ(obstacle_of(transformer_engine::bias_grad(), op::bias_grad(), gradient, "bf16"), "");
  gradient.fused = "gelu";
  EXPECT_TRUE(says(obstacle_of(transformer_engine::bias_grad(), op::bias_grad(), gradient, "bf16"),
                   "nvte_quantize_dbias_dgelu"));
  gradient.output = "mxfp8_e4m3";
  EXPECT_TRUE(says(obstacle_of(transformer_engine::bias_grad(), op::bias_grad(), gradient, "bf16"),
                   "writes MXFP8 outputs only on devices of compute capability 10.0 and later"));
  gradient.fused = "none";
  gradient.cast = true;
  gradient.output = "fp8_e4m3";
  EXPECT_EQ(obstacle_of(transformer_engine::bias_grad(), op::bias_grad(), gradient, "bf16"), "");
}

}  // namespace
}  // namespace numcheck::kernels::transformer_engine
