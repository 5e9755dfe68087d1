"""Activations, gated or not, their gradients, and the gradient of a bias, alone or fused with one of those."""

from drawing import FP8, Clean, multiple
from families import SEEN

ROUNDING = ["G1 bound", "G2 rms", "G3 slope", "G4 flips", "G4 element"]

PLAIN = ["gelu", "gelu_erf", "silu", "relu", "qgelu", "srelu"]
GATED = ["geglu", "swiglu", "reglu", "qgeglu", "sreglu", "clamped_swiglu"]
OUTPUTS = ["default"] * 3 + FP8
MXFP8 = ["mxfp8_e4m3", "mxfp8_e5m2"]

HUGE = {"distribution": "log_uniform", "low": 120, "high": 124}  # of either sign: the sigmoid is 0 or 1
MX = {"output": "mxfp8_e4m3", "layout": "both"}


def case(op, mode, distribution="normal", inputs=None, **params):
    return {
        "op": op,
        "mode": mode,
        "backend": "sim",
        "params": {"rows": 48, "hidden": 64, **params},
        "inputs": {"distribution": distribution, **(inputs or {})},
    }


def fwd(kind, mode="fp32", **rest):
    return case("activation_fwd", mode, kind=kind, **rest)


def bwd(kind, mode="fp32", **rest):
    return case("activation_bwd", mode, kind=kind, **rest)


def bias(fused="none", mode="fp32", **rest):
    return case("bias_grad", mode, fused=fused, **rest)


FAULTS = [
    # the functions
    ("erf_for_tanh", fwd("gelu"), SEEN),
    ("erf_for_tanh", fwd("geglu", mode="bf16", rows=128, hidden=256), SEEN + ["G4 flips", "G4 element"]),
    ("erf_for_tanh", bwd("gelu"), SEEN),
    ("tanh_for_erf", fwd("gelu_erf"), SEEN),
    ("tanh_for_erf", bwd("gelu_erf"), SEEN),
    ("gelu_constant", fwd("gelu"), SEEN),
    ("gelu_constant", fwd("gelu", mode="bf16"), SEEN),
    ("gelu_constant", bwd("geglu"), SEEN),
    ("gelu_constant", bias("gelu"), SEEN),
    ("factor_2_missing", fwd("gelu"), SEEN),
    ("factor_2_missing", bwd("gelu"), SEEN),
    ("factor_2_missing", bwd("srelu", mode="bf16"), SEEN),
    ("factor_2_missing", bwd("sreglu", distribution="exact"), ["exact"]),
    ("factor_2_missing", bias("srelu"), SEEN),
    ("bf16_intermediate", fwd("gelu"), SEEN),
    ("bf16_intermediate", fwd("swiglu", mode="bf16"), SEEN + ["G4 element"]),
    ("bf16_intermediate", fwd("gelu_erf"), SEEN),
    ("bf16_intermediate", bwd("silu"), SEEN),
    ("bf16_intermediate", bias("qgelu"), SEEN),
    ("derivative_sign", bwd("silu"), SEEN),
    ("derivative_sign", bwd("qgeglu", mode="fp16"), SEEN),
    ("derivative_sign", bwd("gelu_erf", mode="bf16", output="fp8_e5m2"), SEEN),
    ("derivative_sign", bias("gelu"), SEEN),
    ("value_for_derivative", bwd("relu"), SEEN),
    ("value_for_derivative", bwd("clamped_swiglu", mode="bf16"), SEEN),
    ("value_for_derivative", bwd("srelu", distribution="exact"), ["exact"]),
    # halves and clamp
    ("halves_swapped", fwd("swiglu", mode="bf16"), SEEN),
    ("halves_swapped", fwd("reglu", distribution="exact"), ["exact"]),
    ("halves_swapped", bwd("geglu"), SEEN),
    ("clamp_missing", fwd("clamped_swiglu", limit=1), SEEN),
    ("clamp_missing", fwd("clamped_swiglu", mode="bf16", inputs={"sigma": 8}), SEEN),
    ("clamp_missing", bwd("clamped_swiglu", limit=1), SEEN),
    # sums of columns
    ("last_row_missing", bias(), SEEN),
    ("last_row_missing", bias("silu", mode="bf16"), SEEN),
    ("last_row_missing", bias(distribution="exact"), ["exact"]),
    ("last_row_missing", bias("relu", mode="fp16", distribution="exact", rows=3000), ["exact"]),
    ("bf16_sum", bias(), SEEN),
    ("bf16_sum", bias("gelu", mode="bf16"), SEEN),
    ("bf16_sum", case("bias_grad", "fp32", "log_uniform", {"low": 0, "high": 1, "x": HUGE}, fused="silu"), SEEN),
    ("sum_of_dy", bias("gelu"), SEEN),
    ("sum_of_dy", bias("relu", mode="bf16"), SEEN),
    ("sum_of_rounded", bias("silu", mode="bf16", output="fp8_e4m3"), SEEN),
    ("sum_of_rounded", bias("gelu", mode="bf16", hidden=2048), SEEN + ["G4 flips", "G4 element"]),
    # stores
    ("truncated_output", fwd("gelu", mode="bf16"), ROUNDING),
    ("truncated_output", bwd("swiglu", mode="fp16"), ROUNDING),
    ("truncated_output", fwd("relu", output="fp8_e4m3"), ROUNDING),
    ("truncated_output", bias(mode="bf16", hidden=512), ROUNDING),
    ("double_rounded_output", fwd("silu", mode="bf16", rows=512, hidden=512), ROUNDING),
    ("double_rounded_output", fwd("silu", output="fp8_e4m3", rows=512, hidden=512), ROUNDING),
    ("bf16_output_in_fp32", fwd("silu"), SEEN),
    ("bf16_output_in_fp32", bias(), SEEN),
    ("output_scale_1_01", fwd("gelu", mode="bf16"), ROUNDING),
    ("output_scale_1_01", bwd("silu", mode="bf16", output="fp8_e4m3", rows=256, hidden=256), ROUNDING),
    ("output_scale_1_01", bias("silu"), ROUNDING),
    ("stale_amax", fwd("swiglu", mode="bf16", output="fp8_e4m3"), ["G1 bound"]),
    ("stale_amax", bwd("gelu", mode="bf16", output="fp8_e5m2"), ["G1 bound"]),
    ("stale_amax", bias("gelu", mode="bf16", output="fp8_e4m3"), ["G1 bound"]),
    ("nan_dropped", fwd("gelu", distribution="specials"), ["G0 pattern"]),
    ("nan_dropped", bwd("silu", mode="bf16", distribution="specials"), ["G0 pattern"]),
    ("nan_dropped", bias(distribution="specials"), ["G0 pattern"]),
    # transposed codes
    *[(fault, bias(fused, mode=mode, distribution=distribution, output=output, layout="both"), [gate])
      for fault in ("untransposed_copy", "transpose_lanes_swapped")
      for fused, mode, output, distribution, gate in (("gelu", "bf16", "fp8_e4m3", "normal", "G1 bound"),
                                                      ("relu", "fp32", "fp8_e5m2", "specials", "G0 pattern"),
                                                      ("relu", "fp16", "fp8_e4m3", "exact", "exact"))],
    ("transpose_lanes_swapped", case("bias_grad", "bf16", cast=True, output="fp8_e4m3", layout="both"), ["G1 bound"]),
    # scales of blocks
    ("block_scale_floor", fwd("gelu", mode="bf16", **MX), SEEN),
    ("block_scale_floor", bwd("swiglu", output="mxfp8_e5m2", layout="columnwise"), SEEN),
    ("block_scale_off", fwd("swiglu", mode="fp16", **MX), SEEN),
    ("block_scale_off", bwd("relu", distribution="exact", mode="bf16", **MX), ["exact"]),
    ("neighbour_scale", fwd("silu", distribution="outliers", mode="bf16", **MX), SEEN),
    ("neighbour_scale", bwd("gelu", **MX), SEEN),
    ("first_rounding_missing", fwd("gelu", mode="bf16", **MX), SEEN),
    ("first_rounding_missing", bwd("swiglu", mode="bf16", **MX), SEEN),
    ("first_rounding_missing", fwd("geglu", mode="fp16", rows=128, hidden=128, **MX), SEEN),
    ("columnwise_from_rowwise", fwd("gelu", mode="bf16", **MX), SEEN),
    ("columnwise_from_rowwise", bwd("clamped_swiglu", mode="fp16", **MX), SEEN),
    ("truncated_output", fwd("gelu", mode="bf16", **MX), SEEN),
    ("output_scale_1_01", bwd("silu", mode="bf16", **MX), SEEN),
    ("nan_dropped", fwd("gelu", mode="bf16", distribution="specials", **MX), ["G0 pattern"]),
    ("last_row_stale", fwd("gelu", mode="bf16", **MX), SEEN),
    ("bf16_intermediate", fwd("swiglu", output="mxfp8_e4m3"), SEEN),
    *[(fault, bias("gelu", mode="bf16", **MX), SEEN) for fault in
      ("block_scale_floor", "block_scale_off", "neighbour_scale", "first_rounding_missing", "columnwise_from_rowwise",
       "truncated_output", "output_scale_1_01", "last_row_stale", "last_row_missing", "sum_of_dy")],
    *[(fault, bias(cast=True, mode=mode, output="mxfp8_e5m2", layout=layout), SEEN)
      for mode, layout in (("fp32", "rowwise"), ("bf16", "columnwise"))
      for fault in ("block_scale_floor", "block_scale_off", "neighbour_scale", "truncated_output", "last_row_missing")],
    *[(fault, bias(cast=True, mode=mode, output="fp8_e4m3"), SEEN) for mode in ("fp32", "bf16") for fault in
      ("truncated_output", "output_scale_1_01", "last_row_missing", "sum_of_rounded", "last_row_stale")],
    ("sum_of_rounded", bias("silu", mode="bf16", hidden=2048, rows=256, **MX), SEEN + ["G4 flips", "G4 element"]),
    ("stale_amax", bias(cast=True, mode="bf16", output="fp8_e4m3"), ["G1 bound"]),
    ("nan_dropped", bias(cast=True, mode="bf16", distribution="specials", **MX), ["G0 pattern"]),
    ("last_row_stale", fwd("gelu"), SEEN),
    ("last_row_stale", bwd("relu"), SEEN),
]

REFUSED = [
    ("untransposed_copy", bias("gelu", output="fp8_e4m3"), "there is no dx_t"),
    ("transpose_lanes_swapped", case("bias_grad", "fp32", rows=1, cast=True, output="fp8_e4m3", layout="both"),
     "a row and its transpose are stored alike"),
    ("erf_for_tanh", fwd("silu"), "silu does not use tanh"),
    ("halves_swapped", bwd("gelu"), "gelu has no halves"),
    ("clamp_missing", fwd("swiglu"), "swiglu has no clamp"),
    ("block_scale_floor", fwd("gelu", output="fp8_e4m3"), "the output has no block scales"),
    ("first_rounding_missing", fwd("gelu", **MX), "FP32 results are not rounded"),
    ("columnwise_from_rowwise", bwd("gelu", output="mxfp8_e5m2"), "no output has both layouts"),
    ("neighbour_scale", fwd("gelu", output="mxfp8_e5m2", rows=1, hidden=32), "only one block"),
    ("saturate_missing", fwd("gelu", **MX), "no output of this case can show it"),
    ("sum_of_dy", bias(), "without an activation the sum is over dy"),
    ("sum_of_rounded", bias("gelu"), "dx is not rounded"),
    ("sum_of_rounded", bias(), "a sum without activation or cast has no dx"),
    ("sum_of_rounded", bias("relu", mode="bf16"), "dx is not rounded"),
    *[(fault, bias(cast=True, mode="bf16", **MX), "dx is dy or 0, which is not rounded")
      for fault in ("first_rounding_missing", "sum_of_rounded")],
]


def activation(rng, shape, mode):
    rows, hidden = shape(rng)
    params = {"kind": rng.choice(PLAIN + GATED), "rows": rows, "hidden": hidden, "output": rng.choice(OUTPUTS + MXFP8)}
    if params["output"] in MXFP8:
        params["layout"] = rng.choice(["rowwise", "columnwise", "both"])
    if params["kind"] == "clamped_swiglu":
        params["limit"] = rng.choice([0.5, 7, 100])
        params["offset"] = rng.choice([0, 1])
    return params


def activation_bwd(rng, shape, mode):
    params = activation(rng, shape, mode)
    if params["kind"] in ("swiglu", "clamped_swiglu") and rng.random() < 0.3:
        params["sigmoid"] = "fast"
    return params


def bias_grad(rng, shape, mode):
    rows, hidden = shape(rng)
    params = {"rows": rows, "hidden": hidden, "fused": rng.choice(["none", "gelu", "silu", "relu", "qgelu", "srelu"])}
    if params["fused"] != "none":
        params["output"] = rng.choice(OUTPUTS + MXFP8)
    elif rng.random() < 0.5:
        params.update(cast=True, output=rng.choice(["fp8_e4m3", "fp8_e5m2", *MXFP8]))
    if params.get("output") in MXFP8:
        params["layout"] = rng.choice(["rowwise", "columnwise", "both"])
    elif params.get("output", "").startswith("fp8"):
        params["layout"] = rng.choice(["rowwise", "both"])
    return params


def te_limits(case, rng):
    params = case["params"]
    if params["kind"] == "gelu_erf":
        params["kind"] = "gelu"
    params.pop("sigmoid", None)
    if params["output"].startswith("mxfp8") and rng.random() < 0.9:  # its kernels need compute capability 10.0
        params["output"] = "default"
        del params["layout"]
    elif params["output"].startswith("mxfp8"):
        params["hidden"] = multiple(params["hidden"], 32)


def te_limits_of_bias_grad(case, rng):
    params = case["params"]
    params["rows"], params["hidden"] = multiple(params["rows"], 64), multiple(params["hidden"], 64)
    if params.get("output", "").startswith("mxfp8") and rng.random() < 0.9:  # as above
        params.update(output="fp8_e4m3", layout=rng.choice(["rowwise", "both"]))


CLEAN = {
    "activation_fwd": Clean(activation, te_limits),
    "activation_bwd": Clean(activation_bwd, te_limits),
    "bias_grad": Clean(bias_grad, te_limits_of_bias_grad),
}

PATHS = [
    {"op": "activation_fwd", "zip": [["rows", "hidden"]],
     "params": {"kind": ["gelu", "swiglu"], "rows": [7, 33], "hidden": [1024, 259],
                "output": ["default", "fp8_e4m3"]}},
    {"op": "activation_bwd", "zip": [["rows", "hidden"]],
     "params": {"kind": ["gelu", "swiglu"], "rows": [7, 33], "hidden": [1024, 259],
                "output": ["default", "fp8_e4m3"]}},
    {"op": "activation_fwd", "zip": [["rows", "hidden"]],
     "params": {"kind": ["gelu", "swiglu"], "rows": [64, 33], "hidden": [96, 259],
                "output": ["mxfp8_e4m3", "mxfp8_e5m2"], "layout": ["rowwise", "columnwise", "both"]}},
    {"op": "activation_bwd", "zip": [["rows", "hidden"]],
     "params": {"kind": ["gelu", "swiglu"], "rows": [64, 33], "hidden": [96, 259],
                "output": ["mxfp8_e4m3", "mxfp8_e5m2"], "layout": ["rowwise", "columnwise", "both"]}},
    {"op": "bias_grad", "zip": [["rows", "hidden"]],
     "params": {"rows": [1, 33, 5000], "hidden": [33, 1024, 129], "fused": ["none", "gelu"]}},
    {"op": "bias_grad", "zip": [["rows", "hidden"]],
     "params": {"rows": [64, 33], "hidden": [96, 259], "fused": "gelu",
                "output": ["mxfp8_e4m3", "mxfp8_e5m2"], "layout": ["rowwise", "columnwise", "both"]}},
    {"op": "bias_grad", "zip": [["rows", "hidden"]],
     "params": {"rows": [64, 33], "hidden": [96, 259], "cast": True, "output": ["fp8_e4m3", "mxfp8_e5m2"]}},
    {"op": "bias_grad", "zip": [["rows", "hidden"]],
     "params": {"rows": [1, 64, 33], "hidden": [5, 96, 259], "fused": ["silu", "relu"], "output": ["fp8_e4m3", "fp8_e5m2"], "layout": "both"}},
    {"op": "bias_grad", "zip": [["rows", "hidden"]],
     "params": {"rows": [64, 33], "hidden": [96, 259], "cast": True, "output": "fp8_e5m2", "layout": "both"}},
]
