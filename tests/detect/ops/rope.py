"""Rotary position embedding and its gradient."""

from drawing import MOST_ELEMENTS, Clean
from families import SEEN


def rope(op="rope_fwd", mode="fp32", **params):
    params = {"seq": 33, "batch": 2, "heads": 3, "dim": 64, **params}
    return {"op": op, "mode": mode, "backend": "sim", "params": params, "inputs": {"distribution": "normal"}}


FAULTS = [
    ("wrong_pairs", rope(), SEEN),
    ("wrong_pairs", rope("rope_bwd", "bf16", interleaved=True), SEEN),
    ("opposite_sign", rope(), SEEN),
    ("opposite_sign", rope("rope_bwd"), SEEN),
    ("next_position", rope(), SEEN),
    ("next_position", rope("rope_bwd"), SEEN),
    ("start_ignored", rope(start=5), SEEN),
    ("start_ignored", rope("rope_bwd", start=5), SEEN),
    ("bf16_angles", rope("rope_bwd"), SEEN),
    ("bf16_angles", rope(), SEEN),
    ("tf32_angles", rope(mode="bf16", position=3001), SEEN),
    ("tf32_angles", rope("rope_bwd", "bf16", position=3001), SEEN),
    ("rest_not_copied", rope(rotary=32), SEEN),
    ("rest_not_copied", rope("rope_bwd", rotary=32), SEEN),
]


def embeddings(rng, shape, mode):
    tokens, dim = shape(rng)
    dim = max(2, min(dim, 512) // 2 * 2)
    batch, heads = rng.randint(1, 3), rng.randint(1, 4)
    return {
        "seq": max(1, min(tokens, 4 * MOST_ELEMENTS // (dim * batch * heads))),
        "batch": batch,
        "heads": heads,
        "dim": dim,
        "rotary": rng.choice([0, 0, 2 * rng.randint(1, dim // 2)]),
        "interleaved": rng.random() < 0.5,
        "layout": rng.choice(["sbhd", "bshd"]),
        "start": rng.choice([0, 0, rng.randint(1, 300)]),
        "position": rng.choice([0, 0, rng.randint(1, 10**6)]),
        "base": rng.choice([10000, 500000, 100]),
    }


CLEAN = {"rope_fwd": Clean(embeddings), "rope_bwd": Clean(embeddings)}

PATHS = [
    {"op": "rope_fwd",
     "params": {"seq": 33, "batch": 2, "heads": 3, "dim": 66, "rotary": [0, 22], "interleaved": [False, True],
                "layout": ["sbhd", "bshd"]}},
    {"op": "rope_bwd",
     "params": {"seq": 33, "batch": 2, "heads": 3, "dim": 66, "rotary": [0, 22], "interleaved": [False, True],
                "layout": ["sbhd", "bshd"]}},
]
