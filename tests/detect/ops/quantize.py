"""Casts to FP8 and back, and transposes."""

from drawing import FP8, Clean

BITS = ["exact"]


def case(op, mode="bf16", distribution="normal", **params):
    params = {"rows": 48, "cols": 64, **params}
    return {"op": op, "mode": mode, "backend": "sim", "params": params, "inputs": {"distribution": distribution}}


def quantize(mode="bf16", **rest):
    return case("quantize", mode, **{"layout": "both", **rest})


def dequantize(mode="bf16", **rest):
    return case("dequantize", mode, **rest)


def transpose(mode="bf16", **rest):
    return case("transpose", mode, **rest)


FAULTS = [
    ("scale_half", quantize(), BITS),
    ("scale_after_cast", quantize(scale=3.3), BITS),
    ("subnormal_codes_flushed", quantize(distribution="log_uniform"), BITS),
    ("wrong_amax", quantize(rows=9, cols=7), BITS),
    ("scaled_amax", quantize(), BITS),
    ("scale_inv_is_scale", quantize(), BITS),
    ("codes_not_transposed", quantize(), BITS),
    ("truncated_output", quantize(), BITS),
    ("double_rounded_output", quantize("fp32", format="fp8_e5m2", rows=512, cols=512), BITS),
    ("saturate_missing", quantize(scale=900), ["G0 pattern"]),
    ("stale_amax", quantize(), BITS),
    ("last_row_stale", quantize(), BITS),
    ("nan_dropped", quantize(distribution="specials"), ["G0 pattern"]),
    ("scale_half", dequantize(), BITS),
    ("scale_inverted", dequantize(), BITS),
    ("scale_ignored", dequantize(), BITS),
    ("sign_dropped", dequantize(), BITS),
    ("truncated_output", dequantize("fp16"), BITS),
    ("output_scale_1_01", dequantize(), BITS),
    ("codes_not_transposed", transpose(), BITS),
    ("tile_skipped", transpose(), BITS),
    ("swapped_pair", transpose(), BITS),
    ("last_row_repeated", transpose(), BITS),
    ("last_row_stale", transpose(), BITS),
    ("bf16_output_in_fp32", transpose("fp32"), BITS),
]


def casts(rng, shape, mode):
    rows, cols = shape(rng)
    layout = rng.choice(["rowwise", "columnwise", "both"])
    scale = rng.choice([0, 0, 1, 2.0 ** rng.randint(-8, 8), rng.uniform(0.01, 100)])
    return {"rows": rows, "cols": cols, "format": rng.choice(FP8), "layout": layout, "scale": scale}


def codes(rng, shape, mode):
    rows, cols = shape(rng)
    return {"rows": rows, "cols": cols, "format": rng.choice(FP8)}


def matrices(rng, shape, mode):
    rows, cols = shape(rng)
    return {"rows": rows, "cols": cols, "format": rng.choice(["default", *FP8])}


def te_limits(case, rng):
    if case["params"]["layout"] == "columnwise":
        case["params"]["layout"] = "both"


CLEAN = {"quantize": Clean(casts, te_limits), "dequantize": Clean(codes), "transpose": Clean(matrices)}

PATHS = [
    {"op": "quantize", "zip": [["rows", "cols"]],
     "params": {"rows": [33, 64, 257], "cols": [65, 128, 1000], "format": ["fp8_e4m3", "fp8_e5m2"],
                "layout": ["rowwise", "columnwise", "both"]}},
    {"op": "dequantize", "zip": [["rows", "cols"]],
     "params": {"rows": [33, 64, 257], "cols": [65, 128, 1000]}},
    {"op": "transpose", "zip": [["rows", "cols"]],
     "params": {"rows": [33, 64, 257], "cols": [65, 128, 1000]}},
]
