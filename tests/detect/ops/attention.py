"""Scaled dot-product attention, and its gradients."""

from attention_drawing import FP8, backward, forward, libraries_take, library_limits, unfused_limits
from drawing import Clean
from families import SEEN, Row

ROUNDING = SEEN + ["G3 slope", "G4 ratio", "G4 element"]
ANY = SEEN + ["G0 pattern", "G3 slope", "G4 ratio", "G4 element"]


def case(op, mode, distribution="normal", inputs=None, **params):
    return {
        "op": op,
        "mode": mode,
        "backend": "sim",
        "params": {"batches": 2, "heads": 6, "kv_heads": 3, "sq": 50, "sk": 150, "d": 64, **params},
        "inputs": {"distribution": distribution, **(inputs or {})},
    }


def fwd(mode="bf16", **rest):
    return case("attention_fwd", mode, **rest)


def bwd(mode="bf16", **rest):
    return case("attention_bwd", mode, **rest)


def exact(mode="bf16", **rest):
    return case("attention_fwd", mode, "exact", **rest)


CAUSAL = {"mask": "causal"}
BOTTOM = {"mask": "causal_bottom_right"}
PADDED = {"mask": "padding"}
RAGGED = {"mask": "padding", "layout": "thd", "batches": 4}
WINDOW = {"mask": "causal_bottom_right", "window_left": 20}
ALIBI = {"bias": "alibi", "heads": 6}
CAP = {"softcap": 1.5}
DROPPED = {"dropout": 0.1}
DRAWN = {"dropout": 0.2, "dropout_mask": "drawn"}
MAX = {"max_logit": True}
OWN = {"statistics": "device"}
SINKS = {"softmax_offset": {"distribution": "normal", "sigma": 4}}

NO_SHIFT = "the log-sum-exp lacks ALiBi's shift of the diagonal"
MASKED_FIRST = "masked scores are -infinity before they are scaled by a negative number"

EMPTY = "sequences without queries or without keys are left unwritten"
SUMS = "D is not multiplied by 1 - dropout"
OFFSET = "the gradient of the softmax offset is multiplied by 1 - dropout"
SINK = "the sink is left out of the denominator"
HALF = "half of the channels of the last rows of dq are zero"
# The third sequence is empty, the fifth has queries only, the seventh keys only.
NO_KEYS = {"mask": "padding", "batches": 5}
NO_QUERIES = {"mask": "padding", "batches": 7, "kv_heads": 6}

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

# Each query sees one key, and a sink with the same weight as that: all gradients are products with the same two factors.
SINGLE = {
    **case("attention_bwd", "bf16", "normal", {"sigma": 0.00390625}, batches=3, heads=2, kv_heads=2, sq=129, sk=129, d=16,
           mask="causal", window_left=0, bias="alibi", softmax="learnable", softcap=1, layout="bhsd", statistics="device"),
    "seed": 3509570071,
}

# Each query sees one key, whose weight a dropout scale of 1 / 0.9 makes a number that FP16 does not hold: dp and D cancel to
# the same small part of dp in all rows, and so does the truncation of dp.
TRUNCATED = {
    **case("attention_bwd", "fp16", "positive", {}, batches=9, heads=16, kv_heads=2, sq=65, sk=65, d=128, scale=1,
           mask="padding_causal", window_left=0, layout="thd", align=16, dropout=0.1, dropout_mask="drawn", rng_seed=569403,
           statistics="device"),
    "seed": 277100745,
}

# Scores near -200, so that exp(-lse) overflows.
LOW = {"q": {"distribution": "large_mean", "mean": 4, "sigma": 0.1}, "k": {"distribution": "large_mean", "mean": -8, "sigma": 0.1}}
MODES = ("fp32", "fp32", "bf16", "bf16", "fp16", "fp16", *FP8)
WIDE_VALUES = {"v": {"distribution": "normal", "sigma": 5}}  # whose scale is not that of the keys

NAN_VALUES = {"v": {"distribution": "specials", "fraction": 0.0005}}  # most channels have none
NAN_GRADIENTS = {"do": {"distribution": "specials", "fraction": 0.0002}}  # most queries have none

# Weights of 1 - 10^-11: errors of scores, however large, hardly move the largest one.
PEAKED = {
    **case("attention_fwd", "fp8_e4m3", batches=3, heads=4, kv_heads=2, sq=66, sk=127, d=128, scale=1, window_left=88),
    "seed": 3368683645,
}

LARGE = {"q": {"distribution": "normal", "sigma": 12}}  # scores whose rounding errors exceed those of weights

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
    Row("sink_missing", fwd("fp8_hybrid", sq=100, sk=100, softmax="off_by_one"), SEEN, named=SINK),
    ("sink_missing", exact(softmax="off_by_one"), ["exact"]),
    # statistics: the output itself is right
    Row("stale_lse", fwd(), SEEN),
    Row("stale_lse", fwd("fp32"), SEEN),
    ("lse_in_log2", fwd(), SEEN),
    ("lse_in_log2", fwd("fp32", **CAUSAL), SEEN),
    Row("alibi_shift_missing", fwd(bias="alibi", mask="padding_causal_bottom_right"), SEEN, named=NO_SHIFT),
    Row("mask_before_scale", fwd(scale=-0.2, **BOTTOM), ["G0 pattern"], named=MASKED_FIRST),
    Row("mask_before_scale", fwd("fp32", scale=-0.2, **RAGGED), ["G0 pattern"], named=MASKED_FIRST),
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
    ("stale_weight_scale", fwd("fp8_e4m3"), SEEN),
    ("stale_weight_scale", fwd("fp8_hybrid", **PADDED), SEEN),
    ("stale_amax", fwd("fp8_hybrid"), SEEN),
    ("stale_amax", PEAKED, SEEN),
    ("mask_off_by_one", fwd("fp8_hybrid", **CAUSAL), SEEN),
    ("key_tile_dropped", fwd("fp8_hybrid"), SEEN),
    ("softmax_scale_missing", fwd("fp8_hybrid"), SEEN),
    ("rescale_missing", fwd("fp8_e4m3"), SEEN),
    ("output_scale_1_01", fwd("fp8_hybrid"), ROUNDING),
    ("truncated_output", fwd("fp8_hybrid"), ROUNDING),
    # the forward pass before the gradients: its faults are seen in what it leaves
    ("stale_lse", bwd(**OWN), SEEN),
    ("swapped_rows", SINGLE, SEEN),
    ("delta_missing", TRUNCATED, SEEN),
    ("stale_lse", bwd("fp32", **OWN, mask="padding", layout="thd"), SEEN),
    ("lse_in_log2", bwd(**OWN), SEEN),
    ("lse_in_log2", bwd("fp16", **OWN, **CAUSAL, **DROPPED), SEEN),
    ("values_transposed", bwd("fp32", **OWN), SEEN),
    ("scale_by_d", bwd(**OWN), SEEN),
    ("rescale_missing", bwd("fp16", **OWN), SEEN),
    ("acc16_values", bwd("fp32", **OWN), SEEN),
    ("no_max_subtraction", bwd("fp32", **OWN, inputs={"q": {"distribution": "normal", "sigma": 40}}), ["G0 pattern"]),
    Row("alibi_shift_missing", bwd(**OWN, bias="alibi", mask="padding_causal_bottom_right"), SEEN, named=NO_SHIFT),
    ("mask_off_by_one", bwd(**OWN, **CAUSAL), SEEN),
    ("delta_missing", bwd(**OWN), SEEN),
    ("dq_not_zeroed", bwd("fp32", **OWN, **BOTTOM), SEEN),
    # stores
    ("truncated_output", fwd(), ROUNDING),
    ("bf16_output_in_fp32", fwd("fp32"), SEEN),
    ("output_scale_1_01", fwd("fp32"), ROUNDING),
    ("output_scale_1_01", fwd(), ROUNDING),
    ("nan_dropped", fwd(inputs=NAN_VALUES), ["G0 pattern"]),
    ("last_row_stale", fwd(), ANY),
    # gradients
    ("mask_off_by_one", bwd(**CAUSAL), SEEN),
    ("mask_off_by_one", bwd("fp32", mask="padding_causal"), SEEN),
    ("top_left_mask", bwd("fp16", **BOTTOM), SEEN),
    ("window_too_wide", bwd(**WINDOW), SEEN),
    ("padding_attended", bwd(**PADDED), SEEN),
    ("padding_attended", bwd("fp16", **RAGGED), SEEN),
    ("softmax_scale_missing", bwd(), SEEN + ["G0 pattern"]),
    ("head_map_rotated", bwd("fp32"), SEEN),
    ("rounded_scores", bwd(inputs=LARGE), SEEN),
    ("rounded_scores", bwd("fp16", inputs=LARGE), SEEN),
    ("bias_after_scale", bwd(bias="pre_scale"), SEEN),
    ("neighbour_slope", bwd("fp32", **ALIBI), SEEN),
    ("softcap_missing", bwd(**CAP), SEEN),
    ("softcap_slope_missing", bwd(**CAP), SEEN),
    ("softcap_slope_missing", bwd("fp32", softcap=4), SEEN),
    ("key_tile_dropped", bwd(), SEEN),
    ("key_tile_dropped", bwd("fp32", **BOTTOM), SEEN),
    # large scores, and a query that sees nothing
    ("key_tile_dropped", bwd(sq=151, **BOTTOM, inputs={"sigma": 30}), ANY),
    ("nan_written", bwd(sq=151, **BOTTOM, inputs={"sigma": 30}), ["G0 pattern"]),
    ("nan_written", bwd("fp16", batches=5, mask="padding", distribution="outliers"), ["G0 pattern"]),
    ("delta_missing", bwd(), SEEN),
    ("delta_missing", bwd("fp32", **CAUSAL), SEEN),
    Row("lse_exponentiated", bwd(inputs=LOW), ["G0 pattern"], named="exp(-lse) overflows: the log-sum-exp is below -88.7"),
    Row("empty_sequence_unwritten", bwd(**NO_QUERIES), ["G0 pattern"], also="G0 unwritten", named=EMPTY),
    Row("empty_sequence_unwritten", bwd("fp32", mask="padding", batches=3), ["G0 pattern"], also="G0 unwritten", named=EMPTY),
    Row("empty_sequence_unwritten", bwd("fp16", **NO_QUERIES, layout="thd"), ["G0 pattern"], also="G0 unwritten",
        named=EMPTY),
    Row("empty_sequence_unwritten", bwd(**{**NO_QUERIES, "kv_heads": 2}), ["G0 pattern"] + SEEN, named=EMPTY),
    Row("dq_half_zero", bwd("fp8_hybrid", sq=100, d=128), SEEN, named=HALF),
    Row("dq_half_zero", bwd("fp8_e4m3", sq=95, d=128, **CAUSAL), SEEN, named=HALF),
    Row("dq_half_zero", bwd("fp8_hybrid", heads=8, kv_heads=2, sq=255, sk=385, d=128, inputs=WIDE_VALUES), SEEN, named=HALF),
    ("dq_not_zeroed", bwd(), SEEN),
    ("dq_not_zeroed", bwd("fp16", **CAUSAL), SEEN),
    ("one_head_of_group", bwd(), SEEN),
    ("one_head_of_group", bwd("fp32", kv_heads=1), SEEN),
    ("one_sequence_of_bias", bwd(bias="post_scale"), SEEN),
    ("one_sequence_of_bias", bwd("fp32", bias="pre_scale"), SEEN),
    ("dropout_scale_missing", bwd(**DROPPED), SEEN + ["G3 slope"]),
    ("dropout_scale_missing", bwd("fp32", **DROPPED, **CAUSAL), SEEN + ["G3 slope"]),
    ("dropout_mask_shifted", bwd(**DROPPED), SEEN),
    ("dropout_mask_shifted", bwd("fp32", dropout=0.5), SEEN),
    ("dropout_not_in_dp", bwd(**DROPPED), SEEN),
    ("dropout_not_in_dp", bwd("fp16", **DROPPED, bias="post_scale"), SEEN),
    Row("dropout_not_in_sums", bwd(**DROPPED), SEEN, named=SUMS),
    Row("dropout_not_in_sums", bwd("fp16", **DRAWN, **OWN, bias="post_scale"), SEEN, named=SUMS),
    Row("dropout_in_offset", bwd(**DROPPED, softmax="learnable"), SEEN, named=OFFSET),
    Row("dropout_in_offset", bwd("fp32", **DRAWN, **OWN, softmax="learnable"), SEEN, named=OFFSET),
    # a mask that is drawn
    ("dropout_scale_missing", fwd(**DRAWN), SEEN + ["G3 slope"]),
    ("dropout_mask_shifted", fwd("fp16", **DRAWN), SEEN),
    ("dropout_mask_shifted", bwd("fp32", **DRAWN, **OWN), SEEN),
    ("nothing_dropped", fwd(**DRAWN), ["dropped share"]),
    ("share_half", bwd(**DRAWN, **OWN), ["dropped share"]),
    ("mask_scaled", fwd("fp32", **DRAWN), ["neither 0 nor 1"]),
    ("value_descale_of_keys", bwd("fp8_e4m3", inputs=WIDE_VALUES), SEEN),
    ("value_descale_of_keys", bwd("fp8_hybrid", inputs=WIDE_VALUES, **CAUSAL), SEEN),
    ("stale_weight_scale", bwd("fp8_e4m3"), SEEN),
    ("stale_weight_scale", bwd("fp8_hybrid", **PADDED), SEEN),
    ("stale_gradient_scale", bwd("fp8_e4m3"), SEEN),
    ("stale_gradient_scale", bwd("fp8_hybrid", **CAUSAL), SEEN),
    ("delta_missing", bwd("fp8_hybrid", d=128), SEEN),
    ("dq_not_zeroed", bwd("fp8_hybrid"), SEEN),
    ("key_tile_dropped", bwd("fp8_hybrid"), SEEN),
    ("mask_off_by_one", bwd("fp8_hybrid", **CAUSAL), SEEN),
    ("stale_amax", bwd("fp8_hybrid"), SEEN),
    ("truncated_output", bwd("fp8_hybrid"), ROUNDING),
    ("truncated_output", bwd(), ROUNDING),
    ("bf16_output_in_fp32", bwd("fp32"), SEEN),
    ("output_scale_1_01", bwd("fp32"), ROUNDING),
    ("output_scale_1_01", bwd(), ROUNDING),
    ("nan_dropped", {**bwd(inputs=NAN_GRADIENTS), "tolerance": {"min_judged": 0.8}}, ["G0 pattern"]),
    ("last_row_stale", bwd(), ANY),
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
    ("softcap_missing", fwd(), "scores are not capped"),
    ("mask_before_scale", fwd(scale=-0.2), "no masked score is scaled by a negative number"),
    ("alibi_shift_missing", fwd(**ALIBI), "no slope is shifted"),
    ("values_transposed", fwd(sk=1), "a single row or column"),
    ("value_descale_of_keys", fwd(), "tensors have no scales"),
    ("stale_weight_scale", fwd("fp32"), "tensors have no scales"),
    ("softcap_slope_missing", bwd(), "scores are not capped"),
    ("empty_sequence_unwritten", fwd(**PADDED), "no sequence has queries, but no keys"),
    ("empty_sequence_unwritten", bwd(**PADDED), "no sequence with rows in a tensor lacks queries or keys"),
    ("empty_sequence_unwritten", bwd(**RAGGED), "no sequence with rows in a tensor lacks queries or keys"),
    ("dq_half_zero", bwd("fp8_hybrid", sq=96), "tensors have no scales, or no row"),
    ("dq_half_zero", bwd(sq=100), "tensors have no scales"),
    ("stale_lse", bwd(), "attention_bwd has no such fault"),
    ("stale_lse", bwd(**OWN, sk=64), "all keys are in one tile"),
    ("dropout_scale_missing", fwd(), "no weight is dropped"),
    ("dropout_mask_shifted", fwd(**DROPPED, sk=1), "there is only one key"),
    ("dropout_not_in_dp", bwd(), "no weight is dropped"),
    ("max_logit_has_sink", fwd(**MAX), "there is no sink"),
    ("max_logit_before_bias", fwd(bias="post_scale"), "the largest score is not an output"),
    ("one_head_of_group", bwd(kv_heads=6), "every head has keys of its own"),
    ("one_sequence_of_bias", bwd(bias="post_scale", batches=1), "no bias is shared by sequences"),
]


LIBRARIES = {"te_limits": library_limits, "cudnn_limits": library_limits, "unfused_limits": unfused_limits,
             "takes": libraries_take,
             "accept_too_much": True,
             "may_warn": ("cudnn", "transformer_engine", "unfused"), "modes": MODES}
CLEAN = {
    "attention_fwd": Clean(forward, **LIBRARIES),
    "attention_bwd": Clean(backward, **LIBRARIES),
}

# Tiles of queries, keys and channels and one more; every mask, bias, sink, layout and packing; groups of heads.
SIZES = {"batches": 2, "heads": 6, "kv_heads": [6, 2], "sq": [1, 33, 65, 129], "sk": [2, 64, 129]}
OPTIONS = {"batches": 2, "heads": 4, "kv_heads": 2, "sq": 70, "sk": 90, "d": 40}

BOTH = [
    {**SIZES, "d": [64, 65, 128, 200]},
    # A single key has all the weight, and the gradients of queries are zero, unless a sink takes a part.
    {**SIZES, "sk": 1, "d": 64, "softmax": "learnable"},
    {**OPTIONS, "dv": [8, 64, 72, 130, 300], "layout": ["bshd", "sbhd", "bhsd"]},
    {**OPTIONS, "mask": ["none", "causal", "causal_bottom_right", "padding", "padding_causal",
                         "padding_causal_bottom_right"],
     "window_left": [-1, 9], "window_right": [-1, 0, 5]},
    {**OPTIONS, "batches": 9, "layout": "thd", "align": [1, 16], "packing": ["none", "kv_2hd", "kv_h2d"],
     "mask": ["padding", "padding_causal_bottom_right"], "softmax": ["vanilla", "learnable"]},
    {**OPTIONS, "kv_heads": 4, "sk": 70, "layout": ["bshd", "sbhd"], "packing": ["qkv_3hd", "qkv_h3d"],
     "mask": ["none", "padding"]},
    {**OPTIONS, "bias": ["none", "pre_scale", "post_scale", "alibi"],
     "softmax": ["vanilla", "off_by_one", "learnable"], "softcap": [0, 2]},
    {**OPTIONS, "dropout": [0.1, 0.5], "mask": ["none", "causal", "padding"], "softcap": [0, 2]},
]

PATHS = [{"op": op, "params": params} for op in ("attention_fwd", "attention_bwd") for params in BOTH]
PATHS.append({"op": "attention_bwd", "params": {**OPTIONS, **OWN, "mask": ["none", "causal", "padding"]}})
PATHS.append({"op": "attention_fwd", "params": {**OPTIONS, "max_logit": True, "mask": ["none", "causal", "padding"],
                                                "softmax": ["vanilla", "learnable"]}})
