"""Softmax of scaled, masked scores, and its gradient."""

from drawing import MOST_ELEMENTS, Clean, multiple, sixteen_bit
from families import SEEN, Row

ROUNDED = "exponentials are rounded to {} before they are divided"
ROUNDING = SEEN + ["G3 slope", "G4 flips", "G4 element"]


def case(op, mode, distribution="normal", inputs=None, **params):
    return {
        "op": op,
        "mode": mode,
        "backend": "sim",
        "params": {"batches": 2, "heads": 2, "sq": 24, "sk": 96, "scale": 0.13, **params},
        "inputs": {"distribution": distribution, **(inputs or {})},
    }


def fwd(mode="fp32", **rest):
    return case("softmax_fwd", mode, **rest)


def bwd(mode="fp32", **rest):
    return case("softmax_bwd", mode, **rest)


# Scores down to -1e11, and in each row a few around 0.
HUGE = {"distribution": "log_uniform", "inputs": {"low": -8, "high": 40, "signed": False}, "scale": -0.13}
MASKED = {"mask": "arbitrary"}
INFINITE = {"masked_value": "minus_infinity"}
CAUSAL = {"mask": "causal"}
BOTTOM = {"mask": "causal_bottom_right"}
TALL = {"mask": "causal_bottom_right", "sq": 24, "sk": 17}  # its first seven rows are fully masked

FAULTS = [
    # scores
    ("softmax_scale_missing", fwd(), SEEN),
    ("softmax_scale_missing", fwd("bf16"), SEEN),
    ("softmax_scale_missing", bwd("fp16"), SEEN),
    ("softmax_scale_1_01", fwd(), SEEN),
    ("softmax_scale_1_01", fwd("bf16", scale=1.3), SEEN),
    ("softmax_scale_1_01", fwd("fp16", **MASKED), SEEN),
    ("softmax_scale_missing", fwd(**HUGE), SEEN),
    ("softmax_scale_missing", fwd("bf16", **HUGE), SEEN),
    ("softmax_scale_1_01", fwd(**HUGE), SEEN),
    ("last_column_missing", fwd(**HUGE), SEEN),
    ("softmax_scale_fp32", fwd("bf16"), SEEN),
    ("softmax_scale_fp32", fwd("fp16", scale=1.3), SEEN),
    ("softmax_scale_rounded", bwd("bf16"), ROUNDING),
    ("softmax_scale_rounded", bwd("fp16"), ROUNDING),
    ("bf16_exponent_argument", fwd(), SEEN),
    ("bf16_exponent_argument", fwd("bf16", scale=1.3), SEEN),
    Row("rounded_exponentials", fwd("bf16"), ROUNDING, named=ROUNDED.format("bf16")),
    Row("rounded_exponentials", fwd("fp16", sk=513), ROUNDING, named=ROUNDED.format("fp16")),
    Row("rounded_exponentials", fwd("bf16", **CAUSAL), ROUNDING, named=ROUNDED.format("bf16")),
    ("no_max_subtraction", fwd(distribution="large_mean", scale=1), ["G0 pattern"]),
    ("no_max_subtraction", fwd("bf16", distribution="large_mean", scale=1), ["G0 pattern"]),
    # masks
    ("mask_off_by_one", fwd(**MASKED), SEEN),
    ("mask_off_by_one", fwd("bf16", **CAUSAL), SEEN),
    ("mask_off_by_one", fwd("fp16", **BOTTOM), SEEN),
    ("mask_off_by_one", fwd(**BOTTOM, **INFINITE), SEEN),
    ("mask_off_by_one", bwd("bf16", **CAUSAL), SEEN),
    ("mask_off_by_one", bwd(**BOTTOM), SEEN),
    ("top_left_mask", fwd("bf16", **BOTTOM), SEEN),
    ("top_left_mask", fwd(**TALL), SEEN),
    ("masked_row_kept", fwd("bf16", **MASKED), SEEN),
    ("masked_row_kept", fwd(**MASKED, **INFINITE), ["G0 pattern"]),
    ("masked_row_kept", fwd(**TALL), SEEN),
    # sums: a wrong denominator must show in the row sums, too
    Row("last_column_missing", fwd(), SEEN, also="row sum"),
    Row("last_column_missing", fwd("bf16"), SEEN, also="row sum"),
    ("last_column_missing", fwd("fp16", sk=4096), SEEN + ["G3 slope"]),
    ("last_column_missing", bwd(), SEEN),
    ("last_column_missing", bwd("bf16"), SEEN),
    Row("bf16_row_sum", fwd(), SEEN, also="row sum"),
    ("bf16_row_sum", fwd("bf16"), SEEN + ["G3 slope"]),
    ("bf16_row_sum", bwd(), SEEN),
    ("bf16_row_sum", bwd("fp16"), SEEN),
    ("row_sum_missing", bwd(), SEEN),
    ("row_sum_missing", bwd("bf16"), SEEN),
    ("sum_of_dy", bwd(), SEEN),
    ("sum_of_dy", bwd("fp16", **CAUSAL), SEEN),
    # stores
    ("truncated_output", fwd("bf16"), ROUNDING),
    ("truncated_output", bwd("fp16"), ROUNDING),
    ("double_rounded_output", fwd("bf16", sq=256, sk=256), ROUNDING),
    ("double_rounded_output", bwd("bf16", sq=256, sk=256), ROUNDING),
    ("bf16_output_in_fp32", fwd(), SEEN),
    ("bf16_output_in_fp32", bwd(), SEEN),
    Row("output_scale_1_01", fwd(), SEEN, also="row sum"),
    ("output_scale_1_01", fwd("bf16"), ROUNDING),
    ("output_scale_1_01", bwd(), ROUNDING),
    ("nan_dropped", fwd(distribution="specials"), ["G0 pattern"]),
    ("nan_dropped", bwd("bf16", distribution="specials"), ["G0 pattern"]),
    ("last_row_stale", fwd("bf16"), SEEN),
    ("last_row_stale", bwd(), SEEN),
]

REFUSED = [
    ("softmax_scale_missing", fwd(scale=1), "the scale is 1"),
    ("softmax_scale_fp32", fwd("bf16", scale=0.125), "the scale is not rounded"),
    ("softmax_scale_fp32", fwd(), "the scale is not rounded"),
    ("softmax_scale_rounded", bwd(), "the scale is exact in the format"),
    ("mask_off_by_one", fwd(), "nothing is masked"),
    ("top_left_mask", fwd(**CAUSAL), "does not end in the bottom right corner"),
    ("top_left_mask", fwd(mask="causal_bottom_right", sq=9, sk=9), "a square matrix has only one diagonal"),
    ("masked_row_kept", fwd(**BOTTOM), "no row is entirely masked"),
    ("last_column_missing", bwd(sk=1), "a row has only one element"),
]


def scores(rng, shape):
    rows, sk = shape(rng)
    batches, heads = rng.randint(1, 3), rng.randint(1, 3)
    return {
        "batches": batches,
        "heads": heads,
        "sq": max(1, min(70, rows // (batches * heads))),
        "sk": sk,
        "scale": rng.choice([1, 0.125, rng.choice([-1, 1]) * 2.0 ** rng.uniform(-6, 8)]),
        "mask": rng.choice(["none", "arbitrary", "causal", "causal_bottom_right"]),
        "masked_value": rng.choice(["te", "minus_infinity"]),
    }


def softmax_fwd(rng, shape, mode):
    return {**scores(rng, shape), "scale_rounding": rng.choice(["as_implemented", "ideal"])}


def softmax_bwd(rng, shape, mode):
    return scores(rng, shape)


def block_rows(columns):
    """Rows of one block of TransformerEngine's kernels."""
    lanes = min(1 << (columns - 1).bit_length(), 32)
    return 128 // lanes * (2 if columns <= 128 else 1)


def te_limits(case, rng):
    sixteen_bit(case, rng)
    params = case["params"]
    if params["sk"] > 64:
        params["sk"] = multiple(params["sk"], 4)
    rows = block_rows(params["sk"])
    if params["mask"] == "causal":
        side = min(params["sk"], 96 if params["sk"] > 64 else 64)
        params["sk"] = side = multiple(side, 4) if side > 64 else side
        params["sq"] = side
        params["batches"], params["heads"] = rng.choice([1, 2, 4]), 1
        params["heads"] = max(1, block_rows(side) // params["batches"])
    elif params["mask"] != "causal_bottom_right":
        params["sq"] = multiple(params["sq"], rows)
    if params["mask"] in ("arbitrary", "causal_bottom_right"):
        params["masked_value"] = "te"
    if "scale_rounding" in params:
        params["scale_rounding"] = "as_implemented"


def cudnn_limits(case, rng):
    params = case["params"]
    if case["op"] == "softmax_fwd":
        params["mask"], params["scale"] = "none", 1
    else:
        params["mask"] = rng.choice(["none", "arbitrary"])


def unusual(case, rng):
    params = case["params"]
    if params["sk"] > MOST_ELEMENTS:
        params["batches"] = params["heads"] = 1
    params["scale"] = rng.choice([0, 1, -1, 1e-20, 6e4, -6e4, round(rng.uniform(-4, 4), 2)])
    if rng.random() < 0.5:
        params["masked_value"] = "minus_infinity"  # and so are all logits of some rows


CLEAN = {
    "softmax_fwd": Clean(softmax_fwd, te_limits, cudnn_limits=cudnn_limits, unusual=unusual),
    "softmax_bwd": Clean(softmax_bwd, te_limits, cudnn_limits=cudnn_limits, unusual=unusual),
}

PATHS = [
    # Warps, blocks and passes; full, whole and ragged rows.
    {"op": "softmax_fwd",
     "params": {"batches": 2, "heads": 2, "sq": 5, "sk": [128, 256, 512, 1024, 1000, 2048, 16384, 40000, 7, 1001],
                "mask": ["none", "arbitrary", "causal_bottom_right"]}},
    {"op": "softmax_bwd",
     "params": {"batches": 2, "heads": 2, "sq": 5, "sk": [128, 256, 512, 1024, 1000, 2048, 16384, 40000, 7, 1001],
                "mask": ["none", "arbitrary", "causal_bottom_right"]}},
]
