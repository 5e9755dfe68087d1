#include "reference/mistakes.hpp"

#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "core/dtype.hpp"
#include "op/activation_params.hpp"
#include "op/attention_fwd.hpp"
#include "op/field.hpp"
#include "op/gemm.hpp"
#include "op/layernorm_bwd.hpp"
#include "op/layernorm_fwd.hpp"
#include "op/moe.hpp"
#include "op/rmsnorm_bwd.hpp"
#include "op/rmsnorm_fwd.hpp"
#include "op/rope.hpp"
#include "op/softmax_bwd.hpp"
#include "op/softmax_fwd.hpp"
#include "reference/mistake_list.hpp"

namespace numcheck::reference {
namespace {

bool is_narrow(const op::Mode& mode) {
  return core::dtype_info(mode.first).storage_bytes < 4;
}

template <class P>
void add_epsilon(Mistakes<P>& mistakes) {
  if (mistakes.p.epsilon > 0) {
    mistakes.add("epsilon_x10", "epsilon from ten times epsilon", [](P& p) { p.epsilon *= 10; });
  }
}

template <class P>
void add_centre(Mistakes<P>& mistakes) {
  mistakes.add("gamma_not_centred", "gamma from gamma + 1", [](P& p) {
    p.zero_centered_gamma = !p.zero_centered_gamma;
    p.gamma_add = "fp32";
  });
}

template <class P>
void add_scale(Mistakes<P>& mistakes) {
  if (mistakes.p.scale != 1 && mistakes.p.scale != 0) {
    mistakes.add("scale_missing", "the scale of the scores from 1", [](P& p) { p.scale = 1; });
  }
  if (mistakes.p.scale != 0) {
    mistakes.add("scale_1_01", "the scale of the scores from 1.01 times it", [](P& p) { p.scale *= 1.01; });
  }
}

template <class P>
void add_mask(Mistakes<P>& mistakes) {
  const P& right = mistakes.p;
  if (right.mask != "none") {
    mistakes.add("mask_missing", "the mask from none", [](P& p) { p.mask = "none"; });
  }
  if (right.sq != right.sk && right.mask == "causal_bottom_right") {
    mistakes.add("top_left_mask", "a mask that ends in the bottom right corner from one that starts in the top left",
                 [](P& p) { p.mask = "causal"; });
  }
}

std::vector<op::Mistake> activation_mistakes(const op::Params& params, Instead halves_swapped) {
  using P = op::ActivationParams;
  Mistakes<P> mistakes(params);
  add_other_functions(mistakes, &P::kind);
  if (mistakes.p.kind == "clamped_swiglu") {
    mistakes.add("clamp_missing", "the clamp from none", [](P& p) { p.limit = 1e6; });
  }
  if (op::activation_kind(mistakes.p.kind).gated && !mistakes.p.output.starts_with("mxfp8")) {
    mistakes.add_instead("halves_swapped", "the half that f takes from the other one", halves_swapped);
  }
  return mistakes.take();
}

double gelu_by_erf(double x) {
  return x / 2 * std::erfc(-x / std::numbers::sqrt2);
}

}  // namespace

std::vector<op::Mistake> layernorm_fwd_mistakes(const op::Params& params, const op::Mode&) {
  Mistakes<op::LayernormFwdParams> mistakes(params);
  add_epsilon(mistakes);
  add_centre(mistakes);
  return mistakes.take();
}

std::vector<op::Mistake> layernorm_bwd_mistakes(const op::Params& params, const op::Mode&) {
  Mistakes<op::LayernormBwdParams> mistakes(params);
  add_centre(mistakes);
  return mistakes.take();
}

std::vector<op::Mistake> rmsnorm_fwd_mistakes(const op::Params& params, const op::Mode& mode) {
  Mistakes<op::RmsnormFwdParams> mistakes(params);
  add_epsilon(mistakes);
  add_centre(mistakes);
  if (is_narrow(mode)) {
    mistakes.add("gamma_order_swapped", "a product with gamma before rounding from one after it",
                 [](op::RmsnormFwdParams& p) { p.gamma_order = p.gamma_order == "te" ? "hf" : "te"; });
  }
  return mistakes.take();
}

std::vector<op::Mistake> rmsnorm_bwd_mistakes(const op::Params& params, const op::Mode&) {
  Mistakes<op::RmsnormBwdParams> mistakes(params);
  add_centre(mistakes);
  if (mistakes.p.add) {
    mistakes.add("add_missing", "the residual gradient from none", [](op::RmsnormBwdParams& p) { p.add = false; });
  }
  return mistakes.take();
}

std::vector<op::Mistake> softmax_fwd_mistakes(const op::Params& params, const op::Mode&) {
  Mistakes<op::SoftmaxFwdParams> mistakes(params);
  add_scale(mistakes);
  add_mask(mistakes);
  return mistakes.take();
}

std::vector<op::Mistake> softmax_bwd_mistakes(const op::Params& params, const op::Mode&) {
  Mistakes<op::SoftmaxBwdParams> mistakes(params);
  add_scale(mistakes);
  return mistakes.take();
}

std::vector<op::Mistake> activation_fwd_mistakes(const op::Params& params, const op::Mode&) {
  return activation_mistakes(params, &activation_of_swapped_halves);
}

std::vector<op::Mistake> activation_bwd_mistakes(const op::Params& params, const op::Mode&) {
  return activation_mistakes(params, &gradients_of_swapped_halves);
}

std::vector<op::Mistake> gemm_mistakes(const op::Params& params, const op::Mode&) {
  using P = op::GemmParams;
  Mistakes<P> mistakes(params);
  if (mistakes.p.epilogue == "gelu") {
    mistakes.add("gelu_erf", "gelu by tanh from gelu by erf", [](P& p) { p.epilogue = "none"; }, &gelu_by_erf);
  }
  if (mistakes.p.epilogue == "relu") {
    mistakes.add("relu_missing", "relu from none", [](P& p) { p.epilogue = "none"; });
  }
  if (mistakes.p.bias) {
    mistakes.add("bias_missing", "the bias from none", [](P& p) { p.bias = false; });
  }
  if (mistakes.p.beta != 0) {
    mistakes.add("beta_ignored", "beta from 0", [](P& p) { p.beta = 0; });
  }
  if ((mistakes.p.bias || mistakes.p.beta != 0) && mistakes.p.alpha != 0 && mistakes.p.k > 0) {
    mistakes.add("product_missing", "the product beside its addends from none", [](P& p) { p.alpha = 0; });
  }
  if (mistakes.p.alpha != 0 && mistakes.p.alpha != 1) {
    mistakes.add("alpha_ignored", "alpha from 1", [](P& p) { p.alpha = 1; });
  }
  return mistakes.take();
}

std::vector<op::Mistake> rope_mistakes(const op::Params& params, const op::Mode&) {
  Mistakes<op::RopeParams> mistakes(params);
  if (mistakes.p.rotated() > 2) {
    mistakes.add("other_pairs", "pairs of neighbours from pairs of halves",
                 [](op::RopeParams& p) { p.interleaved = !p.interleaved; });
  }
  mistakes.add_instead("rotated_back", "a rotation from its inverse", &rotated_back);
  return mistakes.take();
}

std::vector<op::Mistake> moe_unpermute_mistakes(const op::Params& params, const op::Mode&) {
  Mistakes<op::MoeUnpermuteParams> mistakes(params);
  if (mistakes.p.probs) {
    mistakes.add("probs_ignored", "probabilities from 1", [](op::MoeUnpermuteParams& p) { p.probs = false; });
  }
  if (mistakes.p.topk > 1) {
    mistakes.add_instead("mean_for_sum", "sums over experts from means", &mean_of_experts);
  }
  return mistakes.take();
}

std::vector<op::Mistake> router_mistakes(const op::Params& params, const op::Mode&) {
  using P = op::RouterTopkParams;
  Mistakes<P> mistakes(params);
  if (mistakes.p.score != "sigmoid") {
    mistakes.add("softmax_elsewhere", "softmax before the choice from softmax after it",
                 [](P& p) { p.score = p.score == "softmax_pre" ? "softmax_post" : "softmax_pre"; });
  } else {
    mistakes.add("softmax_for_sigmoid", "sigmoid from softmax", [](P& p) { p.score = "softmax_pre"; });
  }
  if (mistakes.p.scaling != 1) {
    mistakes.add("scaling_ignored", "the factor of the probabilities from 1", [](P& p) { p.scaling = 1; });
  }
  return mistakes.take();
}

std::vector<op::Mistake> attention_fwd_mistakes(const op::Params& params, const op::Mode& mode) {
  Mistakes<op::AttentionFwdParams> mistakes(params);
  add_attention(mistakes, &attention_without_sink);
  if (mode.scaled) {
    mistakes.add_instead("value_descale_of_keys", "the scale of v from that of k", &attention_with_scale_of_keys);
  }
  return mistakes.take();
}

}  // namespace numcheck::reference
