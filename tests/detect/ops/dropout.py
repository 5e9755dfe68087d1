"""Dropout and its gradient."""

from drawing import Clean, sixteen_bit
from families import SEEN


def dropout(op, elements):
    params = {"elements": elements, "p": 0.25}
    return {"op": op, "mode": "fp32", "backend": "sim", "params": params, "inputs": {"distribution": "normal"}}


FWD = dropout("dropout_fwd", 65536)
BWD = dropout("dropout_bwd", 4096)

FAULTS = [
    ("scale_missing", FWD, ["elements off the mask"]),
    ("scale_by_p", FWD, ["elements off the mask"]),
    ("nothing_dropped", FWD, ["dropped share"]),
    ("mask_inverted", FWD, ["elements off the mask"]),
    ("constant_mask", FWD, ["dropped share", "dropped neighbours"]),
    ("share_half", FWD, ["dropped share"]),
    ("groups_restart", FWD, ["repeated draws"]),
    ("range_repeated", FWD, ["copied draws"]),
    ("range_repeated", dropout("dropout_fwd", 100016), ["copied draws"]),
    ("bit_flip", FWD, ["elements off the mask"]),
    ("element_zero", FWD, ["elements off the mask"]),
    ("inf_written", FWD, ["elements off the mask"]),
    ("stale_tile", FWD, ["elements off the mask"]),
    ("all_seven", FWD, ["elements off the mask"]),
    ("all_nan", FWD, ["elements off the mask"]),
    ("scale_missing", BWD, SEEN),
    ("scale_by_p", BWD, SEEN),
    ("mask_ignored", BWD, SEEN),
    ("mask_inverted", BWD, SEEN),
    ("mask_shifted", BWD, SEEN),
]

REFUSED = [
    ("groups_restart", dropout("dropout_fwd", 4096), "within so few elements"),
    ("range_repeated", dropout("dropout_fwd", 1008), "there are no two times 512 elements"),
]


def masks(rng, shape, mode):
    rows, cols = shape(rng)
    probability = rng.choice([0, 0.1, 0.5, round(rng.uniform(0, 0.99), 3)])
    return {"elements": max(16, rows * cols // 16 * 16), "p": probability, "rng_seed": rng.randint(0, 10**6)}


CLEAN = {"dropout_fwd": Clean(masks, sixteen_bit), "dropout_bwd": Clean(masks, sixteen_bit)}

PATHS = [
    {"op": "dropout_fwd",
     "params": {"elements": [16, 4112], "p": 0.3}},
    {"op": "dropout_bwd",
     "params": {"elements": [16, 4112], "p": 0.3}},
]
