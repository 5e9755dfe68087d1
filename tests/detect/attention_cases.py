"""What the planted faults and the clean cases of attention and of its gradients have in common."""

from attention_drawing import FP8, libraries_take, library_limits, unfused_limits
from families import SEEN

ROUNDING = SEEN + ["G3 slope", "G4 flips", "G4 element"]
ANY = SEEN + ["G0 pattern", "G3 slope", "G4 flips", "G4 element"]


def case(op, mode, distribution="normal", inputs=None, **params):
    return {
        "op": op,
        "mode": mode,
        "backend": "sim",
        "params": {"batches": 2, "heads": 6, "kv_heads": 3, "sq": 50, "sk": 150, "d": 64, **params},
        "inputs": {"distribution": distribution, **(inputs or {})},
    }


def fwd(mode="bf16", **rest):
    return case("attention_fwd", mode, **rest)


def bwd(mode="bf16", **rest):
    return case("attention_bwd", mode, **rest)


CAUSAL = {"mask": "causal"}
BOTTOM = {"mask": "causal_bottom_right"}
PADDED = {"mask": "padding"}
RAGGED = {"mask": "padding", "layout": "thd", "batches": 4}
WINDOW = {"mask": "causal_bottom_right", "window_left": 20}
ALIBI = {"bias": "alibi", "heads": 6}
CAP = {"softcap": 1.5}
DROPPED = {"dropout": 0.1}
DRAWN = {"dropout": 0.2, "dropout_mask": "drawn"}
NO_SHIFT = "the log-sum-exp lacks ALiBi's shift of the diagonal"
EMPTY = "sequences without queries or without keys are left unwritten"
WIDE_VALUES = {"v": {"distribution": "normal", "sigma": 5}}  # whose scale is not that of the keys

MODES = ("fp32", "fp32", "bf16", "bf16", "fp16", "fp16", *FP8)
LIBRARIES = {"te_limits": library_limits, "cudnn_limits": library_limits, "unfused_limits": unfused_limits,
             "takes": libraries_take,
             "accept_too_much": True,
             "may_warn": ("cudnn", "transformer_engine", "unfused"), "modes": MODES}

# Tiles of queries, keys and channels and one more; every mask, bias, sink, layout and packing; groups of heads.
SIZES = {"batches": 2, "heads": 6, "kv_heads": [6, 2], "sq": [1, 33, 65, 129], "sk": [2, 64, 129]}
OPTIONS = {"batches": 2, "heads": 4, "kv_heads": 2, "sq": 70, "sk": 90, "d": 40}

BOTH = [
    {**SIZES, "d": [64, 65, 128, 200]},
    # A single key has all the weight, and the gradients of queries are zero, unless a sink takes a part.
    {**SIZES, "sk": 1, "d": 64, "softmax": "learnable"},
    {**OPTIONS, "dv": [8, 64, 72, 130, 300], "layout": ["bshd", "sbhd", "bhsd"]},
    {**OPTIONS, "mask": ["none", "causal", "causal_bottom_right", "padding", "padding_causal",
                         "padding_causal_bottom_right"],
     "window_left": [-1, 9], "window_right": [-1, 0, 5]},
    {**OPTIONS, "batches": 9, "layout": "thd", "align": [1, 16], "packing": ["none", "kv_2hd", "kv_h2d"],
     "mask": ["padding", "padding_causal_bottom_right"], "softmax": ["vanilla", "learnable"]},
    {**OPTIONS, "kv_heads": 4, "sk": 70, "layout": ["bshd", "sbhd"], "packing": ["qkv_3hd", "qkv_h3d"],
     "mask": ["none", "padding"]},
    {**OPTIONS, "bias": ["none", "pre_scale", "post_scale", "alibi"],
     "softmax": ["vanilla", "off_by_one", "learnable"], "softcap": [0, 2]},
    {**OPTIONS, "dropout": [0.1, 0.5], "mask": ["none", "causal", "padding"], "softcap": [0, 2]},
]


def paths(op):
    return [{"op": op, "params": params} for params in BOTH]
