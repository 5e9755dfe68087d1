"""Mixture of experts: rows moved to their experts and back, and the router that chooses them."""

from drawing import MOST_ELEMENTS, Clean, multiple
from families import SEEN

BITS = ["exact"]
ALIKE = {"distribution": "constant", "value": 1}


def case(op, mode="fp32", **params):
    return {"op": op, "mode": mode, "backend": "sim", "params": params, "inputs": {"distribution": "normal"}}


def permute(**rest):
    return case("moe_permute", "bf16", **{"tokens": 33, "hidden": 64, "topk": 2, **rest})


def unpermute(mode="fp32", **rest):
    return case("moe_unpermute", mode, **{"tokens": 33, "hidden": 64, "topk": 3, **rest})


def router(score="softmax_pre", **rest):
    return case("router_topk", **{"tokens": 65, "experts": 32, "topk": 4, "score": score, **rest})


FAULTS = [
    ("map_shifted", permute(), BITS),
    ("token_major_map", permute(), BITS),
    ("dropped_overwrite", permute(dropped=5), BITS),
    ("last_column_missing", permute(), BITS),
    ("first_expert_only", permute(), BITS),
    ("last_row_stale", permute(), BITS),
    ("probs_ignored", unpermute(), SEEN),
    ("last_expert_missing", unpermute(), SEEN),
    ("mean_of_experts", unpermute(probs=False), SEEN),
    ("fp8_partial_sums", unpermute("bf16"), SEEN),
    ("map_shifted", unpermute(), SEEN),
    ("worst_experts", router(), SEEN),
    ("one_expert_less", router(), SEEN),
    ("softmax_elsewhere", router("softmax_post"), SEEN),
    ("not_normalised", router("sigmoid"), SEEN),
    ("scaling_ignored", router(scaling=2.5), SEEN),
    ("bf16_scores", router(), SEEN),
    # All experts are tied: whichever the device takes, their weights are known.
    ("not_normalised", {**router("sigmoid"), "inputs": ALIKE}, SEEN),
    ("softmax_elsewhere", {**router("softmax_post"), "inputs": ALIKE}, SEEN),
    ("one_expert_less", {**router(), "inputs": ALIKE}, SEEN),
]


def moves(rng, shape, mode):
    tokens, hidden = shape(rng)
    topk = rng.choice([1, 2, 3, 8])
    tokens = max(1, min(tokens, 4 * MOST_ELEMENTS // (hidden * topk)))
    dropped = rng.choice([0, 0, rng.randint(0, tokens * topk - 1)])
    return {"tokens": tokens, "hidden": hidden, "topk": topk, "dropped": dropped}


def sums(rng, shape, mode):
    return {**moves(rng, shape, mode), "probs": rng.random() < 0.6}


def choices(rng, shape, mode):
    tokens, experts = shape(rng)
    experts = min(experts, 513)
    return {
        "tokens": tokens,
        "experts": experts,
        "topk": rng.randint(1, min(8, experts)),
        "score": rng.choice(["softmax_pre", "softmax_post", "sigmoid"]),
        "scaling": rng.choice([1, 2.5]),
    }


def te_limits(case, rng):
    case["params"]["hidden"] = multiple(case["params"]["hidden"], 8)


def finite_logits(inputs, backend, _mode):
    """TransformerEngine's router (2.20.2) fails on infinite logits: (0, -inf) gets a probability of -inf."""
    infinite = inputs["distribution"] in ("specials", "log_uniform", "rows") or inputs.get("sigma", 1) > 64
    return not (infinite and backend.startswith("transformer_engine"))


CLEAN = {
    "moe_permute": Clean(moves, te_limits),
    "moe_unpermute": Clean(sums, te_limits),
    "router_topk": Clean(choices, takes=finite_logits),
}

PATHS = [
    {"op": "moe_permute",
     "params": {"tokens": 33, "hidden": [64, 65], "topk": [1, 3], "dropped": [0, 5]}},
    {"op": "moe_unpermute",
     "params": {"tokens": 33, "hidden": [64, 65], "topk": [1, 3], "dropped": [0, 5], "probs": [False, True]}},
    {"op": "router_topk",
     "params": {"tokens": 33, "experts": [5, 64, 257], "topk": [1, 5],
                "score": ["softmax_pre", "softmax_post", "sigmoid"]}},
]
