"""The largest magnitude of a tensor, and the scale that follows from it."""

from drawing import FP8, Clean

BITS = ["exact"]
PATTERN = ["G0 pattern"]  # NaN or infinity instead of a number, or the reverse
# TransformerEngine's kernel loads 32 bytes at a time, the own one 16.
WIDTHS = [1, 2, 3, 7, 8, 15, 16, 17, 31, 33]


def amax(mode="bf16", distribution="normal", seed=1, inputs=None, **params):
    params = {"rows": 33, "cols": 65, **params}
    return {"op": "amax", "mode": mode, "backend": "sim", "params": params, "seed": seed,
            "inputs": {"distribution": distribution, **(inputs or {})}}


def scaled(mode="bf16", distribution="normal", **rest):
    return amax(mode, distribution, **{"format": "fp8_e4m3", **rest})


def with_any_amax(case):
    """An amax of infinity or 0 shows nothing else, which such a case expects."""
    return {**case, "tolerance": {"min_judged": 0}}


NEGATIVE = {"distribution": "uniform", "inputs": {"low": -2, "high": 1}}
TINY = {"distribution": "log_uniform", "inputs": {"low": -140, "high": -130}}

FAULTS = [
    *[("wrong_amax", amax(mode, **NEGATIVE), BITS) for mode in ("fp32", "bf16", "fp16")],
    ("nan_amax", with_any_amax(amax(distribution="specials")), PATTERN),
    ("nan_amax", with_any_amax(scaled("fp32", "specials", power_of_two=True)), PATTERN),
    ("infinity_skipped", with_any_amax(amax("fp16", "specials")), PATTERN),
    ("infinity_skipped", with_any_amax(scaled("fp32", "specials")), PATTERN),
    ("last_row_missed", amax(rows=1), BITS),
    ("last_row_missed", amax("fp32", rows=2, cols=64, **NEGATIVE, seed=2), BITS),
    ("last_vector_missed", amax("fp32", rows=1, cols=7), BITS),
    ("last_vector_missed", amax("fp16", rows=3, cols=5), BITS),
    ("amax_not_reset", amax(), BITS),
    ("amax_not_reset", with_any_amax(scaled("fp16", rows=0)), BITS),
    ("subnormal_amax_flushed", amax("fp32", **TINY), BITS),
    ("subnormal_amax_flushed", scaled("bf16", **TINY), BITS),
    ("fp16_detour", amax("fp32"), BITS),
    ("fp16_detour", amax("bf16", **TINY), BITS),
    ("epsilon_ignored", scaled(epsilon=8), BITS),
    ("epsilon_ignored", with_any_amax(scaled("fp16", epsilon=8, power_of_two=True, rows=0)), BITS),
    ("power_of_two_ignored", scaled("fp32", power_of_two=True), BITS),
    ("power_of_two_up", scaled("fp32", power_of_two=True), BITS),
    ("power_of_two_up", scaled("fp16", power_of_two=True, format="fp8_e5m2", epsilon=5), BITS),
    ("other_format", scaled(), BITS),
    ("other_format", scaled("fp32", format="fp8_e5m2", power_of_two=True), BITS),
    ("quotient_overflows", scaled("fp32", **TINY), PATTERN),
    ("zero_amax_divides", with_any_amax(scaled(rows=0)), BITS),
    ("zero_amax_divides", with_any_amax(scaled("fp32", "constant", inputs={"value": 0}, power_of_two=True)), BITS),
    ("scale_by_reciprocal", scaled("fp32", epsilon=5.75), BITS),
    ("scale_by_reciprocal", scaled("fp32", format="fp8_e5m2", epsilon=7.5), BITS),
    ("scale_inv_for_scale", scaled(), BITS),
    ("scale_inv_for_scale", scaled("fp16", format="fp8_e5m2", power_of_two=True), BITS),
    ("bf16_output_in_fp32", amax("fp32"), BITS),
    ("output_scale_1_01", scaled(), BITS),
    ("last_row_stale", amax(), BITS),
]

REFUSED = [
    ("epsilon_ignored", amax(), "the case has no scale"),
    ("epsilon_ignored", scaled(), "epsilon is 0"),
    ("power_of_two_up", scaled(), "the scale is not rounded to a power of two"),
    ("quotient_overflows", scaled(power_of_two=True), "the scale is rounded to a power of two"),
    ("last_vector_missed", amax("fp32", rows=2, cols=4), "vectors of 32 bytes hold all elements"),
    ("wrong_amax", amax(rows=0), "x is empty"),
    ("fp16_detour", amax("fp16"), "x is FP16"),
]


def tensors(rng, shape, mode):
    rows, cols = shape(rng)
    params = {"rows": rows, "cols": rng.choice([cols, *WIDTHS])}
    if rng.random() < 0.75:
        params["format"] = rng.choice(FP8)
        params["epsilon"] = rng.choice([0, 0, 0, 1e-12, 0.3, 8, 1e30])
        params["power_of_two"] = rng.random() < 0.5
    return params


CLEAN = {"amax": Clean(tensors)}

PATHS = [
    {"op": "amax", "zip": [["rows", "cols"]],
     "params": {"rows": [0, 1, 33, 64, 257, 3000], "cols": [65, 7, 65, 128, 1000, 2001],
                "format": ["none", "fp8_e4m3", "fp8_e5m2"]}},
    {"op": "amax",
     "params": {"rows": 33, "cols": 65, "format": ["fp8_e4m3", "fp8_e5m2"], "epsilon": [0, 8],
                "power_of_two": [False, True]}},
]
