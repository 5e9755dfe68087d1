"""Gradients of scaled dot-product attention."""

from attention_cases import (
    ALIBI, ANY, BOTTOM, CAP, CAUSAL, DRAWN, DROPPED, EMPTY, LIBRARIES, MODES, NO_SHIFT, OPTIONS, PADDED, RAGGED, ROUNDING,
    WIDE_VALUES, WINDOW, bwd, case, paths)
from attention_drawing import backward
from drawing import Clean
from families import SEEN, Row

OWN = {"statistics": "device"}
# The third sequence is empty, the fifth has queries only, the seventh keys only.
NO_QUERIES = {"mask": "padding", "batches": 7, "kv_heads": 6}

SUMS = "D is not multiplied by 1 - dropout"
OFFSET = "the gradient of the softmax offset is multiplied by 1 - dropout"
HALF = "half of the channels of the last rows of dq are zero"
LOST = "keys lack the parts of whole blocks of 64 queries"
BEYOND = "keys of zeros beyond the last one count in the amax"

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

# The weight of a sink far below the scores is subnormal, and so has few bits.
FAR_SINK = {
    **case("attention_bwd", "fp16", "normal", {"sigma": 8}, batches=3, heads=3, kv_heads=3, sq=15, sk=127, d=32, dv=78,
           mask="padding", softmax="learnable", layout="bhsd"),
    "seed": 2656419489,
}

# Scores near -200, so that exp(-lse) overflows.
LOW = {"q": {"distribution": "large_mean", "mean": 4, "sigma": 0.1}, "k": {"distribution": "large_mean", "mean": -8, "sigma": 0.1}}

LEAK = "NaN and infinities that are masked out reach the gradients"
NAN_GRADIENTS = {"do": {"distribution": "specials", "fraction": 0.0002}}  # most queries have none


def leaking(*mode, **params):
    """Infinities among the inputs leave many elements undecided."""
    return {**bwd(*mode, **params), "tolerance": {"min_judged": 0.5}}


LARGE = {"q": {"distribution": "normal", "sigma": 12}}  # scores whose rounding errors exceed those of weights

FAULTS = [
    # the forward pass before the gradients: its faults are seen in what it leaves
    ("stale_lse", bwd(**OWN), SEEN),
    ("swapped_rows", SINGLE, SEEN),
    ("delta_missing", TRUNCATED, SEEN),
    ("swapped_rows", FAR_SINK, SEEN),
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
    # gradients
    ("mask_off_by_one", bwd(**CAUSAL), SEEN),
    ("mask_off_by_one", bwd("fp32", mask="padding_causal"), SEEN),
    ("top_left_mask", bwd("fp16", **BOTTOM), SEEN),
    ("window_too_wide", bwd(**WINDOW), SEEN),
    ("padding_attended", bwd(**PADDED), SEEN),
    ("padding_attended", bwd("fp16", **RAGGED), SEEN),
    ("softmax_scale_missing", bwd(), SEEN + ["G0 pattern"]),
    ("head_map_rotated", bwd("fp32"), SEEN),
    ("tf32_silently", bwd("fp32"), SEEN),
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
    ("nan_written", bwd(**DRAWN, **OWN), ["G0 pattern"]),  # in dq, not in the mask
    ("delta_missing", bwd(), SEEN),
    ("delta_missing", bwd("fp32", **CAUSAL), SEEN),
    Row("lse_exponentiated", bwd(inputs=LOW), ["G0 pattern"], named="exp(-lse) overflows: the log-sum-exp is below -88.7"),
    Row("masked_values_leak", leaking(**BOTTOM, inputs=NAN_GRADIENTS), ["G0 pattern"], named=LEAK),
    Row("masked_values_leak", leaking("fp16", mask="padding", batches=3, inputs=NAN_GRADIENTS), ["G0 pattern"], named=LEAK),
    Row("masked_values_leak", leaking("fp32", **BOTTOM, inputs={"k": {"distribution": "specials", "fraction": 0.0002}}),
        ["G0 pattern"], named=LEAK),
    Row("empty_sequence_unwritten", bwd(**NO_QUERIES), ["G0 pattern"], also="G0 unwritten", named=EMPTY),
    Row("empty_sequence_unwritten", bwd("fp32", mask="padding", batches=3), ["G0 pattern"], also="G0 unwritten", named=EMPTY),
    Row("empty_sequence_unwritten", bwd("fp16", **NO_QUERIES, layout="thd"), ["G0 pattern"], also="G0 unwritten",
        named=EMPTY),
    Row("empty_sequence_unwritten", bwd(**{**NO_QUERIES, "kv_heads": 2}), ["G0 pattern"] + SEEN, named=EMPTY),
    Row("dq_half_zero", bwd("fp8_hybrid", sq=100, d=128), ROUNDING, named=HALF),
    Row("dq_half_zero", bwd("fp8_e4m3", sq=95, d=128, **CAUSAL), ROUNDING, named=HALF),
    Row("dq_half_zero", bwd("fp8_hybrid", heads=8, kv_heads=2, sq=255, sk=385, d=128, inputs=WIDE_VALUES), ROUNDING, named=HALF),
    Row("keys_beyond_in_amax", bwd("fp8_hybrid", sk=16, scale=-0.2, distribution="positive"), SEEN, named=BEYOND),
    Row("keys_beyond_in_amax", bwd("fp8_e4m3", sk=100, scale=-1, distribution="positive", **CAUSAL), SEEN, named=BEYOND),
    Row("queries_lost", bwd(sq=130), SEEN, named=LOST),
    Row("queries_lost", bwd("fp32", heads=3, **CAUSAL, sq=150), SEEN, named=LOST),
    Row("queries_lost", bwd("fp16", heads=3, sq=200, **DROPPED), SEEN, named=LOST),
    Row("queries_lost", bwd("fp8_hybrid", heads=6, kv_heads=6, sq=256, sk=256, d=128, mask="padding_causal"), ROUNDING,
        named=LOST),
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
    ("dropout_mask_shifted", bwd("fp32", **DRAWN, **OWN), SEEN),
    ("share_half", bwd(**DRAWN, **OWN), ["dropped share"]),
    # scales
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
    # stores
    ("truncated_output", bwd("fp8_hybrid"), ROUNDING),
    ("truncated_output", bwd(), ROUNDING),
    ("bf16_output_in_fp32", bwd("fp32"), SEEN),
    ("output_scale_1_01", bwd("fp32"), ROUNDING),
    ("output_scale_1_01", bwd(), ROUNDING),
    ("nan_dropped", {**bwd(inputs=NAN_GRADIENTS), "tolerance": {"min_judged": 0.8}}, ["G0 pattern"]),
    ("last_row_stale", bwd(), ANY),
]

REFUSED = [
    ("softcap_slope_missing", bwd(), "scores are not capped"),
    ("empty_sequence_unwritten", bwd(**PADDED), "no sequence with rows in a tensor lacks queries or keys"),
    ("empty_sequence_unwritten", bwd(**RAGGED), "no sequence with rows in a tensor lacks queries or keys"),
    ("dq_half_zero", bwd("fp8_hybrid", sq=96), "tensors have no scales, or no row"),
    ("dq_half_zero", bwd(sq=100), "tensors have no scales"),
    ("keys_beyond_in_amax", bwd("fp8_hybrid", sk=128), "keys fill their tiles"),
    ("stale_lse", bwd(), "attention_bwd has no such fault"),
    ("stale_lse", bwd(**OWN, sk=64), "all keys are in one tile"),
    ("queries_lost", bwd(), "no query beyond the 64th sees the first of many keys"),
    ("queries_lost", bwd(sq=150, window_left=10, **CAUSAL), "no query beyond the 64th sees the first of many keys"),
    ("dropout_not_in_dp", bwd(), "no weight is dropped"),
    ("one_head_of_group", bwd(kv_heads=6), "every head has keys of its own"),
    ("one_sequence_of_bias", bwd(bias="post_scale", batches=1), "no bias is shared by sequences"),
]

CLEAN = {"attention_bwd": Clean(backward, **{**LIBRARIES, "modes": (*MODES, "tf32")})}

PATHS = paths("attention_bwd")
# More derivatives of scores than are kept for dq, most of which the window hides.
PATHS.append({"op": "attention_bwd", "params": {"heads": 1, "sq": 11600, "sk": 11600, "d": 16, "mask": "causal", "window_left": 64}})
PATHS.append({"op": "attention_bwd", "params": {**OPTIONS, **OWN, "mask": ["none", "causal", "padding"]}})
