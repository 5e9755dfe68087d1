// The limits of cuDNN that the bindings check before they call it.
#include <gtest/gtest.h>

#include "kernels/cudnn/binding.hpp"
#include "kernels/cudnn/bindings.hpp"
#include "op/layernorm_bwd.hpp"
#include "op/layernorm_fwd.hpp"
#include "op/rmsnorm_bwd.hpp"
#include "op/rmsnorm_fwd.hpp"
#include "op/softmax_bwd.hpp"
#include "op/softmax_fwd.hpp"

namespace numcheck::kernels::cudnn {
namespace {

template <class Params>
std::string obstacle_of(const Binding& binding, const op::Op& op, const Params& params, std::string_view mode) {
  plan::Case c;
  c.op = &op;
  c.params = op::to_params(params);
  c.mode = op::find_mode(mode);
  const std::vector<op::Port> ports = op.ports(c.params, *c.mode);
  EXPECT_EQ(binding.op, op.name);
  EXPECT_EQ(binding.backend, "cudnn");
  return static_cast<const CudnnBinding&>(binding).obstacle({&c, ports, ""});
}

std::string forward(const op::SoftmaxFwdParams& params, std::string_view mode = "bf16") {
  return obstacle_of(cudnn::softmax_fwd(), op::softmax_fwd(), params, mode);
}

std::string backward(const op::SoftmaxBwdParams& params, std::string_view mode = "bf16") {
  return obstacle_of(cudnn::softmax_bwd(), op::softmax_bwd(), params, mode);
}

/// True if the text contains the phrase; otherwise the test's message shows the text.
::testing::AssertionResult says(const std::string& text, std::string_view phrase) {
  return text.find(phrase) != std::string::npos ? ::testing::AssertionSuccess()
                                                : ::testing::AssertionFailure() << "it says: \"" << text << '"';
}

TEST(CudnnNormObstacle, storage_formats_are_required) {
  op::LayernormFwdParams layer;
  layer.rows = layer.hidden = 8;
  op::RmsnormBwdParams rms;
  rms.rows = rms.hidden = 8;
  rms.zero_centered_gamma = true;
  for (const char* add : {"fp32", "weight"}) {
    rms.gamma_add = add;
    for (const char* mode : {"fp32", "tf32", "bf16", "fp16"}) {
      EXPECT_EQ(obstacle_of(cudnn::layernorm_fwd(), op::layernorm_fwd(), layer, mode), "") << mode;
      EXPECT_EQ(obstacle_of(cudnn::rmsnorm_bwd(), op::rmsnorm_bwd(), rms, mode), "") << mode;
    }
  }
}

TEST(CudnnNormObstacle, fp8_hugging_face_and_nothing) {
  op::RmsnormFwdParams p;
  p.rows = p.hidden = 8;
  p.output = "fp8_e4m3";
  EXPECT_TRUE(says(obstacle_of(cudnn::rmsnorm_fwd(), op::rmsnorm_fwd(), p, "bf16"), "no fp8_e4m3 output"));
  p.output = "default";
  p.gamma_order = "hf";
  EXPECT_TRUE(says(obstacle_of(cudnn::rmsnorm_fwd(), op::rmsnorm_fwd(), p, "bf16"), "set gamma_order to te"));
  op::LayernormBwdParams none;
  none.hidden = 8;
  EXPECT_TRUE(says(obstacle_of(cudnn::layernorm_bwd(), op::layernorm_bwd(), none, "bf16"), "dz is empty"));
}

TEST(CudnnNormObstacle, no_residual_gradient) {
  op::RmsnormBwdParams p;
  p.rows = p.hidden = 8;
  p.add = true;
  EXPECT_TRUE(says(obstacle_of(cudnn::rmsnorm_bwd(), op::rmsnorm_bwd(), p, "fp32"), "residual gradient"));
}

TEST(CudnnSoftmaxObstacle, forward_has_no_scale) {
  op::SoftmaxFwdParams p;
  p.sq = p.sk = 32;
  EXPECT_EQ(forward(p), "");
  p.scale = 1.001;  // BF16 has 1 and 1.0078
  EXPECT_EQ(forward(p), "");
  EXPECT_TRUE(says(forward(p, "fp32"), "alpha multiplies the result"));
  p.scale_rounding = "ideal";
  EXPECT_TRUE(says(forward(p), "set scale to 1"));
}

TEST(CudnnSoftmaxObstacle, forward_has_no_mask) {
  op::SoftmaxFwdParams p;
  p.sq = p.sk = 32;
  for (const char* mask : {"arbitrary", "causal", "causal_bottom_right"}) {
    p.mask = mask;
    EXPECT_TRUE(says(forward(p), "set mask to none")) << mask;
  }
}

TEST(CudnnSoftmaxObstacle, backward_scales_and_needs_no_arbitrary_mask) {
  op::SoftmaxBwdParams p;
  p.sq = p.sk = 32;
  p.scale = 0.3;
  for (const char* mask : {"none", "arbitrary"}) {
    p.mask = mask;
    EXPECT_EQ(backward(p), "") << mask;
  }
  for (const char* mask : {"causal", "causal_bottom_right"}) {
    p.mask = mask;
    EXPECT_TRUE(says(backward(p), "set mask to none or arbitrary")) << mask;
  }
}

TEST(CudnnSoftmaxObstacle, elements_are_counted_in_int) {
  op::SoftmaxFwdParams p;
  p.batches = 2;
  p.sq = 1 << 15;
  p.sk = 1 << 15;
  EXPECT_TRUE(says(forward(p), "fewer than 2^31 elements"));
  p.batches = 1;
  EXPECT_EQ(forward(p), "");
  p.sq = 0;
  EXPECT_TRUE(says(forward(p), "x is empty"));
}

}  // namespace
}  // namespace numcheck::kernels::cudnn
