// What NVIDIA's documents exclude, as it is said to users.
#include "kernels/cudnn/attention_gates.hpp"

#include <gtest/gtest.h>

namespace numcheck::kernels::cudnn {
namespace {

constexpr std::size_t kVersion = 91900;

op::AttentionParams small() {
  op::AttentionParams p;
  p.heads = 4;
  p.sq = p.sk = 128;
  p.d = 64;
  return p;
}

std::string forward(const op::AttentionParams& p, int sm = 90, std::size_t version = kVersion) {
  return attention_gate(p, {true, version, sm}).excluded;
}

std::string backward(const op::AttentionParams& p, int sm = 90, std::size_t version = kVersion) {
  return attention_gate(p, {false, version, sm}).excluded;
}

/// Why cuDNN is not asked about the forward pass.
std::string silence(const op::AttentionParams& p, int sm, std::size_t version, core::Dtype storage) {
  return attention_gate(p, {true, version, sm, storage}).not_asked;
}

::testing::AssertionResult says(const std::string& text, std::string_view phrase) {
  return text.find(phrase) != std::string::npos ? ::testing::AssertionSuccess()
                                                : ::testing::AssertionFailure() << "it says: \"" << text << '"';
}

TEST(CudnnAttentionGate, lets_plain_cases_pass) {
  op::AttentionParams p = small();
  for (const char* mask : {"none", "causal", "causal_bottom_right", "padding", "padding_causal"}) {
    p.mask = mask;
    for (const int sm : {80, 90, 100}) {
      EXPECT_EQ(forward(p, sm), "") << mask;
      EXPECT_EQ(backward(p, sm), "") << mask;
    }
  }
}

TEST(CudnnAttentionGate, knows_head_dimensions) {
  op::AttentionParams p = small();
  p.d = 36;
  EXPECT_TRUE(says(forward(p), "multiples of 8 (d is 36, dv is 36)"));
  p.d = 256;
  EXPECT_EQ(forward(p, 80), "");
  EXPECT_EQ(backward(p, 90), "");
  EXPECT_TRUE(says(backward(p, 80), "sm_80 takes head dimensions of up to 128"));
  EXPECT_TRUE(says(backward(p, 100), "up to 128"));
  p.dv = 128;
  EXPECT_TRUE(says(backward(p, 90), "wrong since 9.11"));
  p.d = 192;
  EXPECT_EQ(backward(p, 90), "");
  EXPECT_EQ(backward(p, 100), "");
  p.d = 264;
  EXPECT_TRUE(says(backward(p, 90), "up to 256"));
}

TEST(CudnnAttentionGate, knows_masks_and_windows) {
  op::AttentionParams p = small();
  p.sq = 256;
  p.mask = "causal_bottom_right";
  EXPECT_TRUE(says(forward(p), "at most as many queries as keys (256 and 128)"));
  p.mask = "padding_causal_bottom_right";
  EXPECT_EQ(forward(p), "");
  p.mask = "none";
  p.window_left = 4;
  EXPECT_TRUE(says(backward(p), "a window needs"));
  p.sk = 2048;
  EXPECT_EQ(forward(p), "");
  EXPECT_TRUE(says(forward(p, 90, 91400), "9.14.0 is known to be wrong"));
  p.mask = "causal_bottom_right";
  p.bias = "post_scale";
  EXPECT_TRUE(says(forward(p), "goes with no bias"));
}

TEST(CudnnAttentionGate, knows_what_is_added_to_scores) {
  op::AttentionParams p = small();
  p.bias = "alibi";
  EXPECT_TRUE(says(forward(p), "alibi needs a causal mask"));
  p.mask = "causal";
  EXPECT_EQ(forward(p), "");
  p.bias = "pre_scale";
  EXPECT_TRUE(says(backward(p), "gradient of a bias"));
  p.bias = "none";
  p.softcap = 30;
  EXPECT_TRUE(says(backward(p, 80), "no derivative of a cap on sm_80"));
  EXPECT_TRUE(says(backward(p, 90), "no cap"));
}

TEST(CudnnAttentionGate, knows_sinks_and_versions) {
  op::AttentionParams p = small();
  p.softmax = "off_by_one";
  EXPECT_EQ(forward(p), "");
  EXPECT_TRUE(says(forward(p, 90, 91300), "a sink needs 9.13.1"));
  p.sq = 1;
  EXPECT_TRUE(says(forward(p), "more than one query"));
  p.softmax = "vanilla";
  p.sk = 1;
  EXPECT_TRUE(says(backward(p), "more than one query or key"));
}

TEST(CudnnAttentionGate, does_not_ask_where_engines_accept_what_they_get_wrong) {
  op::AttentionParams p = small();
  EXPECT_TRUE(says(silence(p, 90, 91001, core::Dtype::bf16), "attention needs cuDNN 9.10.2"));
  EXPECT_EQ(silence(p, 90, 91400, core::Dtype::bf16), "");
  p.max_logit = true;
  p.softmax = "off_by_one";
  EXPECT_EQ(silence(p, 90, 91400, core::Dtype::bf16), "");
  EXPECT_EQ(silence(p, 90, 91400, core::Dtype::fp8_e4m3), "");
  p.dropout = 0.1;
  EXPECT_EQ(silence(p, 90, 91900, core::Dtype::bf16), "") << "what comes of a given mask is a finding";
  p.dropout = 0;
  p.softmax = "vanilla";
  p.mask = "padding";
  p.layout = "thd";
  EXPECT_TRUE(says(silence(p, 90, 91900, core::Dtype::fp8_e4m3), "the layout thd needs 9.23"));
}

}  // namespace
}  // namespace numcheck::kernels::cudnn
