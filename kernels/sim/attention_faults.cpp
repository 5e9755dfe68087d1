#include "kernels/sim/attention_faults.hpp"

#include <array>
#include <string>

#include "kernels/sim/attention.hpp"
#include "kernels/sim/attention_padded_amax.hpp"
#include "kernels/sim/attention_skips.hpp"
#include "op/attention_fp8.hpp"

namespace numcheck::kernels::sim {
namespace {

op::AttentionParams params_of(const Call& call) {
  return op::from_params<op::AttentionParams>(call.c->params);
}

std::string unless(bool possible, const char* reason) {
  return possible ? "" : reason;
}

std::string needs_diagonal(const Call& call) {
  const op::AttentionParams p = params_of(call);
  return unless(p.is_causal() && (p.has_lengths() || p.visible(0, p.sq, p.sk).end < p.sk),
                "no query has a key after its last one");
}

/// The mask lets the last query see the last key.
bool ends_in_the_corner(const op::AttentionParams& p) {
  return p.is_causal() && p.diagonal(0, 1) != 0;
}

std::string needs_both_corners(const Call& call) {
  const op::AttentionParams p = params_of(call);
  if (!ends_in_the_corner(p)) {
    return "the mask does not end in the bottom right corner";
  }
  return unless(p.has_lengths() || p.sq != p.sk, "a square matrix has only one diagonal");
}

std::string needs_groups(const Call& call) {
  const op::AttentionParams p = params_of(call);
  return unless(p.key_heads() > 1 && p.key_heads() < p.heads, "heads do not share keys in groups");
}

std::string needs_shared_heads(const Call& call) {
  const op::AttentionParams p = params_of(call);
  return unless(p.key_heads() < p.heads, "every head has keys of its own");
}

std::string needs_short_format(const Call& call) {
  return unless(call.c->mode->first != core::Dtype::fp32, "scores are FP32 numbers anyway");
}

std::string needs_fp32_products(const Call& call) {
  return unless(call.c->mode->name == "fp32", "the products are not those of FP32 operands");
}

std::string needs_several_tiles(const Call& call) {
  return unless(params_of(call).sk > kKeysOfTile, "all keys are in one tile");
}

std::string needs_scale(const Call& call) {
  return unless(params_of(call).factor() != 1, "the scale is 1");
}

std::string needs_default_scale(const Call& call) {
  const op::AttentionParams p = params_of(call);
  return unless(p.scale == 0 && p.d > 1, "the plan gives the scale, or d is 1");
}

std::string needs_matrix(const Call& call) {
  const op::AttentionParams p = params_of(call);
  return unless(p.sk > 1 && p.value_channels() > 1, "the values of a head are a single row or column");
}

std::string needs_window(const Call& call) {
  const op::AttentionParams p = params_of(call);
  return unless(p.window_left >= 0 || p.window_right >= 0, "there is no window");
}

std::string needs_lengths(const Call& call) {
  return unless(params_of(call).has_lengths(), "no sequence is padded");
}

std::string needs_bias_before_scale(const Call& call) {
  const op::AttentionParams p = params_of(call);
  return unless(p.bias == "pre_scale" && p.factor() != 1, "no bias is added before scaling");
}

std::string needs_slopes(const Call& call) {
  const op::AttentionParams p = params_of(call);
  return unless(p.bias == "alibi" && p.heads > 1, "heads do not have slopes of their own");
}

bool masks(const op::AttentionParams& p) {
  return p.is_causal() || p.has_lengths() || p.window_left >= 0 || p.window_right >= 0;
}

std::string needs_mask(const Call& call) {
  return unless(masks(params_of(call)), "every query sees every key");
}

std::string needs_negative_scale(const Call& call) {
  const op::AttentionParams p = params_of(call);
  return unless(p.factor() < 0 && masks(p), "no masked score is scaled by a negative number");
}

std::string needs_shifted_slopes(const Call& call) {
  const op::AttentionParams p = params_of(call);
  return unless(p.bias == "alibi" && ends_in_the_corner(p) && (p.has_lengths() || p.sq != p.sk), "no slope is shifted");
}

std::string needs_sink(const Call& call) {
  return unless(params_of(call).softmax != "vanilla", "the denominator has only keys");
}

std::string needs_cap(const Call& call) {
  return unless(params_of(call).softcap != 0, "scores are not capped");
}

std::string needs_shared_bias(const Call& call) {
  const op::AttentionParams p = params_of(call);
  return unless(p.has_bias_tensor() && p.batches > 1, "no bias is shared by sequences");
}

std::string needs_dropout(const Call& call) {
  return unless(params_of(call).has_dropout(), "no weight is dropped");
}

std::string needs_dropped_columns(const Call& call) {
  const op::AttentionParams p = params_of(call);
  return unless(p.has_dropout() && p.sk > 1, "no weight is dropped, or there is only one key");
}

std::string needs_dropped_offset(const Call& call) {
  const op::AttentionParams p = params_of(call);
  return unless(p.has_dropout() && p.softmax == "learnable", "no weight is dropped, or there is no learnable offset");
}

std::string needs_max_with_sink(const Call& call) {
  const op::AttentionParams p = params_of(call);
  return unless(p.max_logit && p.softmax != "vanilla", "the largest score is not an output, or there is no sink");
}

std::string needs_max_with_bias(const Call& call) {
  const op::AttentionParams p = params_of(call);
  return unless(p.max_logit && p.bias != "none", "the largest score is not an output, or there is no bias");
}

std::string needs_partial_keys(const Call& call) {
  constexpr std::int64_t kTile = 128;
  const bool partial = params_of(call).sk % kTile != 0;
  return unless(op::has_scales(*call.c->mode) && partial, "tensors have no scales, or keys fill their tiles");
}

std::string needs_scales(const Call& call) {
  return unless(op::has_scales(*call.c->mode), "tensors have no scales");
}

constexpr FaultInfo kMaskOffByOne{"mask_off_by_one", "the mask is shifted by one column"};
constexpr FaultInfo kTopLeft{"top_left_mask", "the diagonal starts in the top left corner"};
constexpr FaultInfo kScaleMissing{"softmax_scale_missing", "the scores are not scaled"};
constexpr FaultInfo kScaleByD{"scale_by_d", "scores are divided by d instead of its square root"};
constexpr FaultInfo kHeadMap{"head_map_rotated", "neighbouring heads use different keys instead of the same ones"};
constexpr FaultInfo kTileDropped{"key_tile_dropped", "the last tile of keys is left out"};
constexpr FaultInfo kWindow{"window_too_wide", "the window is one key too wide"};
constexpr FaultInfo kMaskedLeak{"masked_values_leak",
                                "weights of 0 multiply values that are masked out, of which NaN and infinities show"};
constexpr FaultInfo kPadding{"padding_attended", "keys beyond a sequence's length are seen"};
constexpr FaultInfo kBiasAfter{"bias_after_scale", "the bias is added after scaling instead of before"};
constexpr FaultInfo kSlope{"neighbour_slope", "a head has the ALiBi slope of the next one"};
constexpr FaultInfo kCap{"softcap_missing", "scores are not capped"};
constexpr FaultInfo kScores{"rounded_scores", "scores are rounded to the tensor's format before the softmax"};

constexpr FaultInfo kTf32{"tf32_silently", "FP32 operands are rounded to TF32 and multiplied on tensor cores"};

constexpr FaultInfo kDropoutScale{"dropout_scale_missing", "kept weights are not divided by 1 - dropout"};
constexpr FaultInfo kDropoutMask{"dropout_mask_shifted", "the dropout mask is shifted by one column"};
constexpr FaultInfo kValueDescale{"value_descale_of_keys", "values are multiplied by the scale of the keys"};
constexpr FaultInfo kStaleWeights{"stale_weight_scale", "weights are quantised with the scale of an earlier case"};

constexpr FaultInfo kStaleGradients{"stale_gradient_scale",
                                    "gradients of scores are quantised with the scale of an earlier case"};

constexpr FaultInfo kEmptySequence{"empty_sequence_unwritten",
                                   "sequences without queries or without keys are left unwritten"};

constexpr std::array kForward = {
    OpFault{kMaskOffByOne, &needs_diagonal},
    OpFault{kTopLeft, &needs_both_corners},
    OpFault{kScaleMissing, &needs_scale},
    OpFault{kScaleByD, &needs_default_scale},
    OpFault{kHeadMap, &needs_groups},
    OpFault{kScores, &needs_short_format},
    OpFault{kTf32, &needs_fp32_products},
    OpFault{{"acc16_values", "weighed values are added in FP16"}},
    OpFault{{"no_max_subtraction", "the maximum is not subtracted from the scores"}},
    OpFault{kTileDropped, &needs_several_tiles},
    OpFault{{"rescale_missing", "earlier sums are not rescaled when a larger score comes"}, &needs_several_tiles},
    OpFault{{"stale_lse", "the log-sum-exp lacks the last tile of keys"}, &needs_several_tiles},
    OpFault{{"lse_in_log2", "the log-sum-exp is to base 2"}},
    OpFault{{"values_transposed", "the values of a head are read as if they were transposed"}, &needs_matrix},
    OpFault{kWindow, &needs_window},
    OpFault{kPadding, &needs_lengths},
    OpFault{kBiasAfter, &needs_bias_before_scale},
    OpFault{kSlope, &needs_slopes},
    OpFault{{"sink_missing", "the denominator has only keys"}, &needs_sink},
    OpFault{kCap, &needs_cap},
    OpFault{{"mask_before_scale", "masked scores are -infinity before they are scaled"}, &needs_negative_scale},
    OpFault{kMaskedLeak, &needs_mask},
    OpFault{{"alibi_shift_missing", "the log-sum-exp lacks ALiBi's shift of the diagonal"}, &needs_shifted_slopes},
    OpFault{kDropoutScale, &needs_dropout},
    OpFault{kDropoutMask, &needs_dropped_columns},
    OpFault{kEmptySequence, &needs_empty_sequence},
    OpFault{{"max_logit_has_sink", "the largest score may be the sink"}, &needs_max_with_sink},
    OpFault{{"max_logit_before_bias", "the largest score is that before the bias"}, &needs_max_with_bias},
    OpFault{kValueDescale, &needs_scales},
    OpFault{kStaleWeights, &needs_scales},
    OpFault{{"padding_in_amax", "queries that are padding count in the amax"}, &needs_padded_queries},
    OpFault{{"queries_beyond_in_amax", "queries of zeros beyond the last one count in the amax of the output"},
            &needs_partial_queries},
};

constexpr std::array kBackward = {
    OpFault{kMaskOffByOne, &needs_diagonal},
    OpFault{kTopLeft, &needs_both_corners},
    OpFault{kScaleMissing, &needs_scale},
    OpFault{kHeadMap, &needs_groups},
    OpFault{kScores, &needs_short_format},
    OpFault{kTf32, &needs_fp32_products},
    OpFault{kTileDropped, &needs_several_tiles},
    OpFault{kWindow, &needs_window},
    OpFault{kPadding, &needs_lengths},
    OpFault{kMaskedLeak, &needs_mask},
    OpFault{kBiasAfter, &needs_bias_before_scale},
    OpFault{kSlope, &needs_slopes},
    OpFault{kCap, &needs_cap},
    OpFault{{"softcap_slope_missing", "gradients do not pass through the cap"}, &needs_cap},
    OpFault{{"delta_missing", "gradients of the scores lack the row sum of do * o"}},
    OpFault{{"dq_not_zeroed", "gradients of the queries are added to those of an earlier run"}},
    OpFault{{"lse_exponentiated", "exp(-lse) scales dq on the way"}},
    OpFault{{"dq_half_zero", "half of the channels of the last rows of dq are zero"}, &needs_partial_tile},
    OpFault{{"queries_lost", "dk and dv of some keys lack a block of 64 queries"}, &needs_second_block},
    OpFault{kEmptySequence, &needs_empty_sequence},
    OpFault{{"one_head_of_group", "dk and dv come from the last of the heads that share keys"}, &needs_shared_heads},
    OpFault{kDropoutScale, &needs_dropout},
    OpFault{kDropoutMask, &needs_dropped_columns},
    OpFault{{"dropout_not_in_dp", "gradients of weights are not dropped"}, &needs_dropout},
    OpFault{{"dropout_not_in_sums", "D is not multiplied by 1 - dropout"}, &needs_dropout},
    OpFault{{"dropout_in_offset", "the gradient of the softmax offset is multiplied by 1 - dropout"},
            &needs_dropped_offset},
    OpFault{{"one_sequence_of_bias", "the gradient of the bias is that of the last sequence"}, &needs_shared_bias},
    OpFault{kValueDescale, &needs_scales},
    OpFault{kStaleWeights, &needs_scales},
    OpFault{kStaleGradients, &needs_scales},
    OpFault{{"keys_beyond_in_amax", "keys of zeros beyond the last one count in the amax"}, &needs_partial_keys},
};

}  // namespace

std::span<const OpFault> attention_fwd_faults() noexcept {
  return kForward;
}

std::span<const OpFault> attention_bwd_faults() noexcept {
  return kBackward;
}

}  // namespace numcheck::kernels::sim
