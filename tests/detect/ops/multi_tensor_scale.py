"""FP8 scales of many tensors from their amaxes."""

from drawing import FP8, Clean

BITS = ["exact"]
PATTERN = ["G0 pattern"]  # NaN or infinity instead of a number, or the reverse


def scales(distribution="normal", inputs=None, seed=1, **params):
    return {"op": "multi_tensor_scale", "mode": "fp32", "backend": "sim", "seed": seed,
            "params": {"tensors": 70, "elements": 3, **params}, "inputs": {"distribution": distribution, **(inputs or {})}}


SPECIALS = {"distribution": "specials", "inputs": {"fraction": 0.2}}
TINY = {"distribution": "log_uniform", "inputs": {"low": -126, "high": -110}}

FAULTS = [
    ("other_format", scales(), BITS),
    ("other_format", scales(format="fp8_e5m2", power_of_two=True), BITS),
    ("epsilon_ignored", scales(epsilon=0.5), BITS),
    ("epsilon_ignored", scales(epsilon=0.5, power_of_two=True), BITS),
    ("power_of_two_ignored", scales(power_of_two=True), BITS),
    ("power_of_two_up", scales(power_of_two=True, format="fp8_e5m2"), BITS),
    ("scale_by_reciprocal", scales(), BITS),
    ("scale_by_reciprocal", scales(format="fp8_e5m2", elements=200), BITS),
    ("zero_amax_divides", scales(**SPECIALS), BITS),
    ("zero_amax_divides", scales(**SPECIALS, power_of_two=True), BITS),
    ("infinite_amax_divides", scales(**SPECIALS), PATTERN + BITS),
    ("nan_amax_propagates", scales(**SPECIALS), PATTERN),
    ("quotient_overflows", scales(**TINY), PATTERN),
    ("scale_inv_of_amax", scales(), BITS),
    ("scale_inv_of_amax", scales(power_of_two=True), BITS),
    ("next_tensor", scales(), BITS),
    ("last_chunk_missed", scales(tensors=2, elements=100, chunk=64), PATTERN + BITS),
    ("second_launch_missed", scales(tensors=400, elements=1), PATTERN + BITS),
    ("second_launch_missed", scales(tensors=2, elements=1000, chunk=5), PATTERN + BITS),
]

REFUSED = [
    ("epsilon_ignored", scales(), "epsilon is 0"),
    ("power_of_two_up", scales(), "scales are not rounded to powers of two"),
    ("quotient_overflows", scales(power_of_two=True), "scales are rounded to powers of two"),
    ("next_tensor", scales(tensors=1), "there are fewer than two tensors"),
    ("last_chunk_missed", scales(), "a tensor is one chunk"),
    ("second_launch_missed", scales(), "one launch takes all chunks"),
    ("other_format", scales(tensors=0), "there are no amaxes"),
]


def tensors(rng, shape, mode):
    rows, cols = shape(rng)
    params = {"tensors": rng.choice([min(rows, 4000), 47, 48, 49, 96, 321]), "elements": rng.choice([1, 1, cols % 200, 7])}
    if rng.random() < 0.5:
        params["chunk"] = rng.choice([1, 3, 64, 65536])
    return {**params, "format": rng.choice(FP8), "epsilon": rng.choice([0, 0, 0, 1e-12, 0.3, 8, 1e30]),
            "power_of_two": rng.random() < 0.5}


CLEAN = {"multi_tensor_scale": Clean(tensors, modes=("fp32",))}

PATHS = [
    {"op": "multi_tensor_scale", "mode": "fp32",
     "params": {"tensors": [0, 1, 400], "elements": [1, 1000], "chunk": [7, 65536], "format": ["fp8_e4m3", "fp8_e5m2"],
                "power_of_two": [False, True]}},
]
