"""Scaled dot-product attention."""

from attention_cases import (
    ALIBI, ANY, BOTTOM, CAP, CAUSAL, DRAWN, DROPPED, EMPTY, LIBRARIES, MODES, NO_SHIFT, OPTIONS, PADDED, RAGGED, ROUNDING,
    WIDE_VALUES, WINDOW, case, fwd, paths)
from attention_drawing import forward
from drawing import Clean
from families import SEEN, Row


def exact(mode="bf16", **rest):
    return case("attention_fwd", mode, "exact", **rest)


MAX = {"max_logit": True}
SINKS = {"softmax_offset": {"distribution": "normal", "sigma": 4}}
# The third sequence is empty, the fifth has queries only.
NO_KEYS = {"mask": "padding", "batches": 5}

MASKED_FIRST = "masked scores are -infinity before they are scaled by a negative number"
SINK = "the sink is left out of the denominator"
LEAK = "NaN and infinities of values that are masked out reach the output"
OVERFLOW = "scores above 65504 overflow in fp16"
IN_AMAX = "queries that are padding count in the amax"
BEYOND = "queries of zeros beyond the last one count in the amax"
DECODING = {"batches": 1, "heads": 16, "kv_heads": 16, "sq": 2, "sk": 256}
# All queries are there, 64 zeros fill their last tile, and cuDNN 9.14 counts their weights of 1/256 (on an H200).
ZEROS_BEYOND = {
    **case("attention_fwd", "fp8_hybrid", inputs={"sigma": 0.015625}, batches=1, heads=1, kv_heads=1, sq=288, sk=512, d=128,
           scale=0.3, mask="padding"),
    "seed": 3054365758,
}
# Weights of nearly 1: under this mask only the last tile of queries has blocks of keys before its diagonal (the same).
CAUSAL_PADDING = {
    **case("attention_fwd", "fp8_hybrid", inputs={"sigma": 4}, batches=1, heads=2, kv_heads=1, sq=288, sk=512, d=64, scale=1,
           mask="padding_causal"),
    "seed": 286225690,
}
LONG_PADDING = {"batches": 1, "heads": 2, "kv_heads": 2, "sq": 256, "sk": 256, "d": 128}

# Scores of 10^7 and more: in FP32 two keys of the first query are alike, of which one has all the weight.
HUGE = {
    **case("attention_fwd", "bf16", "log_uniform", {"low": -20, "high": 20}, batches=3, sq=128, sk=128, d=8, scale=0.3,
           window_left=37, layout="sbhd", packing="kv_2hd"),
    "seed": 3439025318,
}

# The same; the key that loses has much larger values than the one that weighs most.
CONTESTED = {
    **case("attention_fwd", "bf16", "log_uniform", {"low": -20, "high": 20}, batches=3, heads=9, kv_heads=3, sq=129, sk=129,
           d=8, softmax="off_by_one", layout="bhsd"),
    "seed": 2831614352,
}

NAN_VALUES = {"v": {"distribution": "specials", "fraction": 0.0005}}  # most channels have none

# Weights of 1 - 10^-11: errors of scores, however large, hardly move the largest one.
PEAKED = {
    **case("attention_fwd", "fp8_e4m3", batches=3, heads=4, kv_heads=2, sq=66, sk=127, d=128, scale=1, window_left=88),
    "seed": 3368683645,
}

# Infinities of other queries leave their rows undecided.
NAN_QUERIES = {**fwd(inputs={"q": {"distribution": "specials", "fraction": 0.0005}}), "tolerance": {"min_judged": 0.8}}

FAULTS = [
    ("swapped_rows", HUGE, SEEN),
    ("swapped_rows", CONTESTED, SEEN),
    ("mask_off_by_one", {**CONTESTED, "params": {**CONTESTED["params"], **CAUSAL}}, SEEN),
    # masks
    ("mask_off_by_one", fwd(**CAUSAL), SEEN),
    ("mask_off_by_one", fwd("fp16", **BOTTOM), SEEN),
    ("mask_off_by_one", fwd("fp32", mask="padding_causal"), SEEN),
    ("mask_off_by_one", exact(**CAUSAL), ["exact"]),
    ("top_left_mask", fwd(**BOTTOM), SEEN),
    ("top_left_mask", fwd("fp32", mask="padding_causal_bottom_right"), SEEN),
    ("top_left_mask", exact("fp16", **BOTTOM), ["exact"]),
    ("window_too_wide", fwd(**WINDOW), SEEN),
    ("window_too_wide", fwd("fp32", window_left=10, window_right=0), SEEN),
    ("window_too_wide", exact("tf32", mask="causal_bottom_right", window_left=15), ["exact"]),
    ("padding_attended", fwd(**PADDED), SEEN),
    ("padding_attended", fwd("fp16", mask="padding_causal_bottom_right"), SEEN),
    ("padding_attended", fwd("fp32", **RAGGED), SEEN),
    ("mask_off_by_one", fwd(mask="padding_causal", layout="thd", batches=4, packing="kv_h2d"), SEEN),
    ("last_row_stale", exact(**RAGGED), ["exact", "G0 pattern"]),
    # scores
    ("softmax_scale_missing", fwd(), SEEN),
    ("softmax_scale_missing", fwd("fp32", scale=0.3), SEEN),
    ("scale_by_d", fwd(), SEEN),
    ("scale_by_d", fwd("fp16", d=20), SEEN),
    ("head_map_rotated", fwd(), SEEN),
    ("head_map_rotated", exact("fp32"), ["exact"]),
    ("rounded_scores", fwd(), SEEN),
    Row("rounded_scores", fwd("fp16", scale=1, inputs={"sigma": 100}), ["G0 pattern"], named=OVERFLOW),
    ("rounded_scores", fwd("fp16"), SEEN),
    ("bias_after_scale", fwd(bias="pre_scale"), SEEN),
    ("bias_after_scale", fwd("fp32", bias="pre_scale"), SEEN),
    ("neighbour_slope", fwd(**ALIBI), SEEN),
    ("neighbour_slope", fwd("fp32", **ALIBI, **CAUSAL), SEEN),
    ("softcap_missing", fwd(**CAP), SEEN),
    ("softcap_missing", fwd("fp16", **CAP, bias="post_scale"), SEEN),
    # sums
    ("no_max_subtraction", fwd(distribution="large_mean", scale=1), ["G0 pattern"]),
    ("no_max_subtraction", fwd("fp32", inputs={"q": {"distribution": "normal", "sigma": 40}}), ["G0 pattern"]),
    ("rescale_missing", fwd(), SEEN),
    ("rescale_missing", fwd("fp32"), SEEN),
    ("tf32_silently", fwd("fp32"), SEEN),
    ("tf32_silently", fwd("fp32", **CAUSAL, softmax="learnable"), SEEN),
    ("acc16_values", fwd("fp16", sk=600), ANY),
    ("acc16_values", fwd("fp32"), SEEN),
    ("acc16_values", fwd("bf16", sk=2000), ANY),
    ("key_tile_dropped", fwd(), SEEN),
    ("key_tile_dropped", fwd("fp32", **BOTTOM), SEEN),
    ("key_tile_dropped", exact(), ["exact"]),
    ("values_transposed", fwd(), SEEN),
    ("values_transposed", exact(), ["exact"]),
    Row("sink_missing", fwd(softmax="off_by_one"), SEEN + ["G3 slope"], named=SINK),
    Row("sink_missing", fwd("fp32", softmax="learnable"), SEEN, named=SINK),
    Row("sink_missing", fwd("fp8_hybrid", sq=100, sk=100, softmax="off_by_one"), SEEN + ["G3 slope"], named=SINK),
    ("sink_missing", exact(softmax="off_by_one"), ["exact"]),
    Row("padding_in_amax", fwd("fp8_hybrid", **PADDED, **LONG_PADDING), SEEN, named=IN_AMAX),
    Row("padding_in_amax", fwd("fp8_e4m3", mask="padding_causal_bottom_right", **LONG_PADDING), SEEN, named=IN_AMAX),
    Row("padding_in_amax", CAUSAL_PADDING, SEEN + ["amax of codes"], named=IN_AMAX),
    Row("padding_in_amax", ZEROS_BEYOND, SEEN, named=IN_AMAX),
    Row("queries_beyond_in_amax", fwd("fp8_hybrid", sq=100, scale=-0.2, distribution="positive", softmax="off_by_one"),
        SEEN + ["amax of codes"], named=BEYOND),
    # cuDNN 9.14 and 9.19 on an H200, under a causal mask: the queries beyond see what it would show to them
    Row("queries_beyond_in_amax",
        fwd("fp8_hybrid", sq=100, scale=-0.2, distribution="positive", softmax="off_by_one", mask="causal"),
        SEEN + ["amax of codes"], named=BEYOND),
    Row("queries_beyond_in_amax",
        fwd("fp8_hybrid", sq=100, scale=-0.2, distribution="positive", softmax="off_by_one", **WINDOW),
        SEEN + ["amax of codes"], named=BEYOND),
    # statistics: the output itself is right
    Row("stale_lse", fwd(), SEEN),
    Row("stale_lse", fwd("fp32"), SEEN),
    ("lse_in_log2", fwd(), SEEN),
    ("lse_in_log2", fwd("fp32", **CAUSAL), SEEN),
    Row("alibi_shift_missing", fwd(bias="alibi", mask="padding_causal_bottom_right"), SEEN, named=NO_SHIFT),
    Row("mask_before_scale", fwd(scale=-0.2, **BOTTOM), ["G0 pattern"], named=MASKED_FIRST),
    Row("mask_before_scale", fwd("fp32", scale=-0.2, **RAGGED), ["G0 pattern"], named=MASKED_FIRST),
    Row("masked_values_leak", fwd(**BOTTOM, inputs=NAN_VALUES), ["G0 pattern"], named=LEAK),
    Row("masked_values_leak", fwd("fp16", **PADDED, inputs={"v": {"distribution": "specials", "fraction": 0.005}}),
        ["G0 pattern"], named=LEAK),
    Row("masked_values_leak", fwd("fp32", **WINDOW, inputs=NAN_VALUES), ["G0 pattern"], named=LEAK),
    Row("empty_sequence_unwritten", fwd(**NO_KEYS), ["G0 pattern"], also="G0 unwritten", named=EMPTY),
    Row("empty_sequence_unwritten", fwd("fp32", **NO_KEYS, softmax="off_by_one"), ["G0 pattern"], named=EMPTY),
    Row("empty_sequence_unwritten", fwd("fp16", **{**NO_KEYS, "mask": "padding_causal"}, layout="thd"), ["G0 pattern"],
        also="G0 unwritten", named=EMPTY),
    Row("max_logit_has_sink", fwd(**MAX, softmax="learnable", inputs=SINKS), SEEN),
    Row("max_logit_has_sink", fwd("fp32", **MAX, softmax="off_by_one", **CAUSAL), ANY),
    Row("max_logit_before_bias", fwd(**MAX, bias="post_scale"), SEEN),
    Row("max_logit_before_bias", fwd("fp32", **MAX, **ALIBI), SEEN),
    Row("softmax_scale_missing", fwd("fp16", **MAX), SEEN),
    # dropout
    ("dropout_scale_missing", fwd(**DROPPED), SEEN + ["G3 slope"]),
    ("dropout_scale_missing", fwd("fp32", **DROPPED, **CAUSAL), SEEN + ["G3 slope"]),
    ("dropout_scale_missing", exact(dropout=0.5), ["exact"]),
    ("dropout_mask_shifted", fwd(**DROPPED), SEEN),
    ("dropout_mask_shifted", fwd("fp16", dropout=0.5), SEEN),
    ("dropout_mask_shifted", exact("fp32", dropout=0.5), ["exact"]),
    # scales
    ("value_descale_of_keys", fwd("fp8_e4m3", inputs=WIDE_VALUES), SEEN),
    ("value_descale_of_keys", fwd("fp8_hybrid", inputs=WIDE_VALUES, **CAUSAL), SEEN),
    # few queries, whose heads are what statistics have to go by
    ("value_descale_of_keys", {**fwd("fp8_e4m3", **DECODING), "seed": 1}, ["G2 rms"]),
    ("output_scale_1_01", {**fwd(**{**DECODING, "sq": 1}), "seed": 1}, ["G2 rms"]),
    ("stale_weight_scale", fwd("fp8_e4m3"), SEEN),
    ("stale_weight_scale", fwd("fp8_hybrid", **PADDED), SEEN),
    ("stale_amax", fwd("fp8_hybrid"), SEEN),
    ("stale_amax", PEAKED, SEEN),
    Row("stale_amax", fwd("fp8_e4m3", **CAUSAL), SEEN + ["amax of codes"], also="amax of codes"),
    ("mask_off_by_one", fwd("fp8_hybrid", **CAUSAL), SEEN),
    ("key_tile_dropped", fwd("fp8_hybrid"), SEEN),
    ("softmax_scale_missing", fwd("fp8_hybrid"), SEEN),
    ("rescale_missing", fwd("fp8_e4m3"), SEEN),
    ("output_scale_1_01", fwd("fp8_hybrid"), ROUNDING),
    ("truncated_output", fwd("fp8_hybrid"), ROUNDING),
    # stores
    ("truncated_output", fwd(), ROUNDING),
    ("bf16_output_in_fp32", fwd("fp32"), SEEN),
    ("output_scale_1_01", fwd("fp32"), ROUNDING),
    ("output_scale_1_01", fwd(), ROUNDING),
    ("nan_dropped", fwd(inputs=NAN_VALUES), ["G0 pattern"]),
    ("nan_dropped", NAN_QUERIES, ["G0 pattern"]),
    ("last_row_stale", fwd(), ANY),
    # a mask that is drawn
    ("dropout_scale_missing", fwd(**DRAWN), SEEN + ["G3 slope"]),
    ("dropout_mask_shifted", fwd("fp16", **DRAWN), SEEN),
    ("nothing_dropped", fwd(**DRAWN), ["dropped share"]),
    ("mask_scaled", fwd("fp32", **DRAWN), ["neither 0 nor 1"]),
]

REFUSED = [
    ("mask_off_by_one", fwd(), "no query has a key after its last one"),
    ("mask_off_by_one", fwd(**BOTTOM, sq=1), "no query has a key after its last one"),
    ("top_left_mask", fwd(**CAUSAL), "does not end in the bottom right corner"),
    ("top_left_mask", fwd(**BOTTOM, sk=50), "a square matrix has only one diagonal"),
    ("head_map_rotated", fwd(kv_heads=1), "heads do not share keys in groups"),
    ("softmax_scale_missing", fwd(scale=1), "the scale is 1"),
    ("scale_by_d", fwd(scale=0.3), "the plan gives the scale"),
    ("rounded_scores", fwd("fp32"), "scores are FP32 numbers anyway"),
    ("key_tile_dropped", fwd(sk=64), "all keys are in one tile"),
    ("window_too_wide", fwd(), "there is no window"),
    ("padding_attended", fwd(), "no sequence is padded"),
    ("bias_after_scale", fwd(bias="post_scale"), "no bias is added before scaling"),
    ("neighbour_slope", fwd(), "heads do not have slopes of their own"),
    ("sink_missing", fwd(), "the denominator has only keys"),
    ("padding_in_amax", fwd(**PADDED), "tensors have no scales"),
    ("padding_in_amax", fwd("fp8_e4m3", **{**LONG_PADDING, **PADDED, "sk": 128}), "no 64 queries are all padding"),
    ("queries_beyond_in_amax", fwd("fp8_hybrid", sq=128), "queries fill their tiles"),
    ("softcap_missing", fwd(), "scores are not capped"),
    ("masked_values_leak", fwd(), "every query sees every key"),
    ("mask_before_scale", fwd(scale=-0.2), "no masked score is scaled by a negative number"),
    ("alibi_shift_missing", fwd(**ALIBI), "no slope is shifted"),
    ("values_transposed", fwd(sk=1), "a single row or column"),
    ("value_descale_of_keys", fwd(), "tensors have no scales"),
    ("stale_weight_scale", fwd("fp32"), "tensors have no scales"),
    ("empty_sequence_unwritten", fwd(**PADDED), "no sequence has queries, but no keys"),
    ("dropout_scale_missing", fwd(), "no weight is dropped"),
    ("dropout_mask_shifted", fwd(**DROPPED, sk=1), "there is only one key"),
    ("max_logit_has_sink", fwd(**MAX), "there is no sink"),
    ("max_logit_before_bias", fwd(bias="post_scale"), "the largest score is not an output"),
]

CLEAN = {"attention_fwd": Clean(forward, **{**LIBRARIES, "modes": (*MODES, "tf32")})}

PATHS = paths("attention_fwd")
PATHS.append({"op": "attention_fwd", "params": {**OPTIONS, "max_logit": True, "mask": ["none", "causal", "padding"],
                                                "softmax": ["vanilla", "learnable"]}})
