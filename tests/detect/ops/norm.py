"""layernorm and rmsnorm, forward and backward."""

from drawing import Clean
from families import SEEN, Row

ROUNDING = SEEN + ["G3 slope", "G4 flips", "G4 element", "row scale error"]


def norm(op, mode="fp32", distribution="normal", **params):
    case = {"op": op, "mode": mode, "backend": "sim", "params": {"rows": 65, "hidden": 193, **params}}
    case["inputs"] = {"distribution": "normal", "x": {"distribution": distribution}}
    return case


def ln(mode="fp32", **rest):
    return norm("layernorm_fwd", mode, **rest)


def rms(mode="fp32", **rest):
    return norm("rmsnorm_fwd", mode, **rest)


def ln_bwd(mode="fp32", **rest):
    return norm("layernorm_bwd", mode, **rest)


def rms_bwd(mode="fp32", **rest):
    return norm("rmsnorm_bwd", mode, **rest)


FLUSHED = "subnormal numbers are taken for zero"
CUBED = "the cube of the reciprocal deviation overflows"
LONE = "rows of one element have no deviation, even of infinities and NaN"


def tiny(case, *ports):
    """Most numbers of these inputs are subnormal."""
    few = {"distribution": "log_uniform", "low": -149, "high": -125}
    return {**case, "inputs": {"distribution": "normal", **{port: few for port in ports}}}


def huge(case):
    """The cube of rsigma is below FP32's range."""
    return {**case, "inputs": {"distribution": "normal", "x": {"distribution": "normal", "sigma": 1e16}}}


def flat(case):
    """The cube of rsigma is beyond FP32's range."""
    return {**case, "params": {**case["params"], "epsilon": 1e-30}, "inputs": {"distribution": "normal", "x": {"distribution": "constant"}}}


FAULTS = [
    ("epsilon_x10", ln(), SEEN),
    ("epsilon_x10", rms("bf16", output="fp8_e4m3", distribution="rows"), SEEN),
    ("bessel", ln("bf16"), SEEN),
    ("bessel", rms(), SEEN),
    ("one_pass_variance", ln(distribution="rows"), SEEN),
    ("bf16_statistics", ln(), SEEN),
    ("bf16_statistics", rms("fp16"), SEEN),
    ("last_element_missing", ln(), SEEN),
    ("last_element_missing", rms(), SEEN),
    ("previous_row_statistics", ln(), SEEN),
    ("previous_row_statistics", rms("bf16", distribution="rows"), SEEN),
    ("gamma_not_centred", ln(zero_centered_gamma=True), SEEN),
    ("gamma_not_centred", rms("bf16", zero_centered_gamma=True), SEEN),
    ("beta_missing", ln("bf16"), SEEN),
    ("epsilon_outside_root", rms(), SEEN),
    ("gamma_order_swapped", rms("bf16"), ROUNDING),
    ("gamma_order_swapped", rms("bf16", gamma_order="hf"), ROUNDING),
    ("truncated_output", ln("bf16"), ROUNDING),
    ("stale_amax", rms("bf16", output="fp8_e4m3"), SEEN),
    ("bf16_output_in_fp32", ln(), SEEN),
    ("output_scale_1_01", rms("fp16"), SEEN),
    ("last_row_stale", ln(), SEEN),
    ("mean_term_missing", ln_bwd(), SEEN),
    ("projection_missing", ln_bwd("bf16"), SEEN),
    ("projection_missing", rms_bwd(), SEEN),
    ("mean_over_n_minus_1", ln_bwd(), SEEN),
    ("mean_over_n_minus_1", rms_bwd(), SEEN),
    ("last_element_missing", ln_bwd(), SEEN),
    ("last_element_missing", rms_bwd(), SEEN),
    ("previous_row_statistics", ln_bwd(distribution="rows"), SEEN),
    ("previous_row_statistics", rms_bwd("bf16", distribution="rows"), SEEN),
    ("last_row_missing", ln_bwd(), SEEN),
    ("last_row_missing", rms_bwd(), SEEN),
    ("bf16_partial_sums", ln_bwd(rows=300), SEEN),
    ("bf16_partial_sums", rms_bwd(rows=300), SEEN),
    ("gamma_not_centred", ln_bwd(zero_centered_gamma=True), SEEN),
    ("gamma_not_centred", rms_bwd(zero_centered_gamma=True), SEEN),
    ("add_missing", rms_bwd(add=True), SEEN),
    Row("subnormals_flushed", tiny(ln(), "gamma", "beta"), SEEN, named=FLUSHED),
    Row("subnormals_flushed", tiny(ln("bf16"), "gamma", "beta"), SEEN, named=FLUSHED),
    Row("subnormals_flushed", tiny(rms(), "gamma"), SEEN, named=FLUSHED),
    Row("subnormals_flushed", tiny(ln_bwd(), "dz"), SEEN, named=FLUSHED),
    Row("subnormals_flushed", tiny(rms_bwd("bf16"), "dz"), SEEN, named=FLUSHED),
    Row("rsigma_cubed", huge(ln_bwd()), SEEN, named=FLUSHED),
    Row("rsigma_cubed", huge(rms_bwd("bf16")), SEEN, named=FLUSHED),
    Row("rsigma_cubed", flat(ln_bwd()), ["G0 pattern"], named=CUBED),
    Row("rsigma_cubed", flat(ln_bwd("bf16")), ["G0 pattern"], named=CUBED),
    Row("lone_deviation", ln(hidden=1, rows=4000, distribution="specials"), ["G0 pattern"], named=LONE),
]


def shared(rng, shape):
    rows, hidden = shape(rng)
    params = {"rows": rows, "hidden": hidden, "epsilon": rng.choice([1e-5, 1e-6, 1e-12, 1e-3])}
    if rng.random() < 0.4:
        params["zero_centered_gamma"] = True
        params["gamma_add"] = rng.choice(["fp32", "fp32", "weight"])
    return params


def layernorm_fwd(rng, shape, mode):
    return {**shared(rng, shape), "output": rng.choice(["default", "default", "fp8_e4m3"])}


def layernorm_bwd(rng, shape, mode):
    return shared(rng, shape)


def rmsnorm_fwd(rng, shape, mode):
    params = {**shared(rng, shape), "output": rng.choice(["default", "default", "fp8_e4m3"])}
    if rng.random() < 0.25:
        params["gamma_order"] = "hf"
    return params


def rmsnorm_bwd(rng, shape, mode):
    return {**shared(rng, shape), "add": rng.random() < 0.4}


def te_limits(case, rng):
    case["params"].pop("gamma_add", None)
    case["params"].pop("gamma_order", None)


def cudnn_limits(case, rng):
    params = case["params"]
    params.pop("gamma_order", None)
    if case["op"].endswith("_fwd"):
        params["output"] = "default"
    params.pop("add", None)


def unusual(case, rng):
    case["params"]["epsilon"] = rng.choice([0, 0, 1e-30, 1e-12, 1e-5, 1])
    if rng.random() < 0.5:  # only x
        case["inputs"] = {"distribution": "normal", "x": case["inputs"]}


CLEAN = {
    "layernorm_fwd": Clean(layernorm_fwd, te_limits, cudnn_limits=cudnn_limits, unusual=unusual),
    "layernorm_bwd": Clean(layernorm_bwd, te_limits, cudnn_limits=cudnn_limits, unusual=unusual),
    "rmsnorm_fwd": Clean(rmsnorm_fwd, te_limits, cudnn_limits=cudnn_limits, unusual=unusual),
    "rmsnorm_bwd": Clean(rmsnorm_bwd, te_limits, cudnn_limits=cudnn_limits, unusual=unusual),
}

PATHS = [
    # Warps with 1, 2, 4 and 8 groups, blocks, rows that no block holds; then rows that no vector divides.
    {"op": "layernorm_fwd",
     "params": {"rows": 5, "hidden": [128, 256, 512, 1024, 2048, 5120, 65536, 3, 259, 1030, 5003],
                "zero_centered_gamma": [False, True]}},
    {"op": "rmsnorm_fwd",
     "params": {"rows": 5, "hidden": [128, 256, 512, 1024, 2048, 5120, 65536, 3, 259, 1030, 5003],
                "zero_centered_gamma": [False, True]}},
    {"op": "layernorm_fwd",
     "params": {"rows": 5, "hidden": [256, 2048, 1030], "output": "fp8_e4m3"}},
    {"op": "rmsnorm_fwd",
     "params": {"rows": 5, "hidden": [256, 2048, 1030], "output": "fp8_e4m3"}},
    # Gradients in one pass, more rows than blocks that are resident at once; then in two passes.
    {"op": "layernorm_bwd", "zip": [["rows", "hidden"]],
     "params": {"rows": [5000, 5000, 2000, 2000, 1200, 40, 40, 300, 130],
                "hidden": [128, 256, 512, 1024, 2048, 8192, 16384, 259, 1030],
                "zero_centered_gamma": [False, True]}},
    {"op": "rmsnorm_bwd", "zip": [["rows", "hidden"]],
     "params": {"rows": [5000, 5000, 2000, 2000, 1200, 40, 40, 300, 130],
                "hidden": [128, 256, 512, 1024, 2048, 8192, 16384, 259, 1030],
                "zero_centered_gamma": [False, True]}},
    {"op": "rmsnorm_bwd",
     "params": {"rows": 40, "hidden": [256, 2048, 1030], "add": True}},
]
