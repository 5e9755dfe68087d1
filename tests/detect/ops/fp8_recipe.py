"""Delayed scaling: amax histories and the scales that follow from them."""

from drawing import FP8, Clean

BITS = ["exact"]
PATTERN = ["G0 pattern"]  # NaN or infinity instead of a number
COURSES = ["steady", "drifting", "spiking", "vanishing", "special", "restart_with_state", "restart_without_state",
           "calibration"]
# More tensors than a block of the own kernel has, histories about as long as its lanes.
LENGTHS = [1, 2, 3, 15, 16, 17, 31, 64]


def series(course="steady", distribution="normal", **params):
    params = {"steps": 30, "tensors": 3, "history": 8, "course": course, **params}
    return {"op": "fp8_recipe", "mode": "fp32", "backend": "sim", "params": params, "inputs": {"distribution": distribution}}


def reduced(course="steady", **params):
    return series(course, **{"kernel": "after_reduction", "modules": 2, **params})


RECENT = {"algorithm": "most_recent"}

FAULTS = [
    ("history_rolled_back", series(), BITS),
    ("history_rolled_back", reduced(**RECENT), BITS),
    ("current_amax_left_out", series(), BITS),
    ("current_amax_left_out", series("drifting", steps=2), BITS),
    ("current_amax_left_out", reduced(), BITS),
    ("oldest_amax_left_out", series(), BITS),
    ("oldest_amax_left_out", reduced("drifting"), BITS),
    ("slot_not_cleared", series(), BITS),
    ("slot_not_cleared", series(history=1, **RECENT), BITS),
    ("margin_sign", series(margin=1), BITS),
    ("margin_sign", reduced(margin=-2, **RECENT), BITS),
    ("most_recent_for_max", series("spiking"), BITS),
    ("most_recent_for_max", reduced(), BITS),
    ("scale_not_kept", series("special", **RECENT), BITS),
    ("scale_not_kept", reduced("special"), BITS),
    ("nan_amax_counts", series("special"), PATTERN),
    ("nan_amax_counts", reduced("special", **RECENT), PATTERN),
    ("quotient_overflows", series("vanishing"), PATTERN),
    ("quotient_overflows", reduced("vanishing", **RECENT), PATTERN),
    ("other_format", series(), BITS),
    ("other_format", reduced(format="fp8_e5m2"), BITS),
    ("neighbour_history", series(), BITS),
    ("neighbour_history", reduced("spiking"), BITS),
    ("idle_mistaken", series("special"), BITS),
    ("idle_mistaken", reduced("special"), BITS),
    ("reduction_ignored", reduced(second_rank=True), BITS),
    ("scale_not_delayed", series(), BITS),
    ("scale_not_delayed", series("calibration", steps=1), BITS),
    ("scale_inv_stale", series(), BITS),
    ("scale_inv_stale", reduced("restart_without_state"), BITS),
    ("bf16_output_in_fp32", series(), BITS),
    ("output_scale_1_01", series(), BITS),
    ("nan_dropped", series("special"), PATTERN),
    ("last_row_stale", series(), BITS),
]

REFUSED = [
    ("margin_sign", series(), "the margin is 0"),
    ("most_recent_for_max", series(**RECENT), "scales are for the most recent amax"),
    ("oldest_amax_left_out", series(history=1), "one amax is remembered"),
    ("history_rolled_back", series(history=2), "fewer than three amaxes are remembered"),
    ("neighbour_history", series(tensors=1), "a module has one tensor"),
    ("reduction_ignored", reduced(), "there is no other rank"),
    ("scale_inv_stale", series(steps=1), "there is one step"),
]


def courses(rng, shape, mode):
    rows, cols = shape(rng)
    kernel = rng.choice(["single", "after_reduction"])
    modules = rng.choice([1, 1, 2, 5])
    return {
        "steps": min(rows, 200),
        "tensors": max(1, min(cols, 300) // modules),
        "modules": modules,
        "history": rng.choice(LENGTHS),
        "algorithm": rng.choice(["max", "most_recent"]),
        "margin": rng.choice([0, 0, 0, rng.randint(-4, 4), rng.randint(-160, 160)]),
        "format": rng.choice(FP8),
        "kernel": kernel,
        "course": rng.choice(COURSES),
        "second_rank": kernel == "after_reduction" and rng.random() < 0.5,
    }


def long_histories(case, rng):
    case["params"]["history"] = rng.choice([1, 1024, 4096])
    case["params"]["steps"] = min(case["params"]["steps"], 20)
    case["params"]["tensors"] = min(case["params"]["tensors"], 40)


CLEAN = {"fp8_recipe": Clean(courses, modes=("fp32",), unusual=long_histories)}

PATHS = [
    {"op": "fp8_recipe", "mode": "fp32",
     "params": {"steps": [1, 2, 7], "tensors": [1, 33], "modules": 2, "history": [1, 16, 35],
                "algorithm": ["max", "most_recent"], "kernel": ["single", "after_reduction"], "course": "special"}},
]
