"""Draws random clean cases of attention, and what keeps them to what libraries take and compute right."""

import random

from drawing import multiple, sixteen_bit

FP8 = ("fp8_e4m3", "fp8_hybrid")


def attention(rng, shape, mode):
    groups = rng.choice([1, 1, 2, 3, 8])
    kv_heads = rng.randint(1, 3)
    border = rng.choice([1, 16, 64, 128]) + rng.randint(-1, 1)
    sq = max(1, rng.choice([1, border, rng.randint(1, 90), rng.randint(1, 20)]))
    sk = max(1, rng.choice([1, 2, border, rng.randint(1, 300), rng.randint(1, 40), sq]))
    d = rng.choice([8, 16, 32, 64, 128, rng.randint(1, 100)])
    return place(rng, sometimes_large({
        "batches": rng.randint(1, 3),
        "heads": kv_heads * groups,
        "kv_heads": kv_heads,
        "sq": sq,
        "sk": sk,
        "d": d,
        "dv": rng.choice([0, 0, rng.randint(1, 80)]),
        "scale": rng.choice([0, 0, 0, 1, 0.3, -0.1]),
        "mask": rng.choice(["none", "none", "causal", "causal_bottom_right", "padding", "padding_causal",
                            "padding_causal_bottom_right"]),
        "window_left": rng.choice([-1, -1, -1, 0, rng.randint(0, 100)]),
        "window_right": rng.choice([-1, -1, -1, 0, rng.randint(0, 100)]),
        "bias": rng.choice(["none", "none", "none", "alibi"] + ([] if mode in FP8 else ["pre_scale", "post_scale"])),
        "softmax": rng.choice(["vanilla", "vanilla", "off_by_one", "learnable"]),
        "softcap": rng.choice([0, 0, 0, 1, 30]),
        "layout": rng.choice(["bshd", "sbhd", "bhsd"]),
        "dropout": 0 if mode in FP8 else rng.choice([0, 0, 0, 0.1, 0.5, 0.9]),
    }))


def sometimes_large(params):
    """One case in twelve has hundreds of queries and keys: what is in all of its rows shows."""
    own = random.Random(f"large {params}")  # other draws stay as they are
    if own.random() < 1 / 12:
        kv_heads = own.choice([1, 1, 2])
        params.update(batches=own.choice([1, 1, 2]), heads=kv_heads * own.choice([1, 1, 2]), kv_heads=kv_heads,
                      sq=own.choice([256, 300, 512]), sk=own.choice([256, 300, 512]), d=own.choice([64, 64, 128]), dv=0,
                      dropout=own.choice([0, 0.1, 0.15, 0.4]) if params["dropout"] else 0)
    return params


def masked(params):
    """Half of the dropout masks are drawn by the backend."""
    own = random.Random(f"mask {params}")  # other draws stay as they are
    if params["dropout"] and own.random() < 0.5:
        params.update(dropout_mask="drawn", rng_seed=own.randint(0, 10**6))
    return params


def place(rng, params):
    """Ragged sequences where there are lengths, and packed tensors where shapes allow them."""
    if params["mask"].startswith("padding") and rng.random() < 0.5:
        params["layout"] = "thd"
        params["align"] = rng.choice([1, 1, 16])
        params["batches"] = rng.randint(1, 9)
    if params["layout"] != "bhsd" and rng.random() < 0.25:
        params["dv"] = 0
        params["packing"] = rng.choice(["kv_2hd", "kv_h2d"])
        if params["heads"] == params["kv_heads"]:
            params["sk"] = params["sq"]
            params["packing"] = rng.choice(["qkv_3hd", "qkv_h3d"])
    return params


def forward(rng, shape, mode):
    params = attention(rng, shape, mode)
    return masked({**params, "max_logit": mode not in FP8 and rng.choice([False, False, True])})


def backward(rng, shape, mode):
    params = attention(rng, shape, mode)
    own = random.Random(f"{mode} {params}")  # other draws stay as they are
    params = masked({**params, "statistics": "reference" if mode in FP8 else own.choice(["reference", "device"])})
    if params.get("dropout_mask") == "drawn":
        params["statistics"] = "device"
    return params


def library_limits(case, rng):
    """What cuDNN takes, and computes right as far as known: configs/plans/scenarios/attention_known_issues.json has what
    it does not. TransformerEngine runs cuDNN."""
    sixteen_bit(case, rng)
    params = case["params"]
    params["d"] = min(128, multiple(params["d"], 8))
    params["dv"] = 0
    params["softcap"] = 0
    params.pop("max_logit", None)
    if params.get("dropout_mask") != "drawn":
        params["dropout"] = 0  # a mask that is given: cuDNN's gradients are wrong, TransformerEngine takes none
    if params["dropout"]:
        params["bias"] = "none" if params["bias"] == "alibi" else params["bias"]
    # With one query, dbias may be left unwritten, repeated runs with hundreds of keys differ, and in thd lse is not written.
    if params["layout"] == "thd" and params["sq"] == 1:
        params["sq"] = 2
        if params.get("packing", "none").startswith("qkv"):
            params["sk"] = 2
    if params["sq"] == 1:
        params["sk"] = min(128, params["sk"])
    if params["bias"] == "pre_scale" or (params["sq"] == 1 and case["op"] == "attention_bwd"):
        params["bias"] = "none"
    if params["bias"] == "alibi" and params["mask"] != "causal":
        params["bias"] = "none"
    if params["bias"] != "none":
        params["window_left"] = params["window_right"] = -1
        params["mask"] = "causal" if params["bias"] == "alibi" else "none"
        params["layout"] = "bshd" if params["layout"] == "thd" else params["layout"]
        params.pop("align", None)
    if params["window_left"] >= 0 or params["window_right"] >= 0 or "bottom_right" in params["mask"]:
        params["sk"] = max(params["sk"], params["sq"])
        if params.get("packing", "none").startswith("qkv"):
            params["sq"] = params["sk"]
    params["window_right"] = 0 if params["window_left"] >= 0 and "causal" in params["mask"] else -1
    params["scale"] = abs(params["scale"])
    # An o that overflows has an infinite D, and 0 times that of queries that do not see a key reaches its gradients.
    if case["op"] == "attention_bwd" and case["mode"] == "fp16" and largest(case["inputs"]) >= 65504 * (1 - params["dropout"]):
        params.update(dropout=0, dropout_mask="given")
        params.pop("rng_seed", None)
    # Repeated runs with a learnable sink differ.
    params["softmax"] = rng.choice(["vanilla", "off_by_one"]) if params["sq"] > 1 else "vanilla"
    # The third sequence has no queries and no keys, and others lack one of them: their rows are left unwritten.
    if params["mask"].startswith("padding"):
        params["batches"] = min(2, params["batches"])
    if case["mode"] in FP8:
        fp8_limits(case["op"], params)


def largest(inputs):
    return abs(inputs.get("mean", 0)) + 6 * inputs.get("sigma", 1)


def unfused_limits(case, rng):
    """What the unfused path takes. It keeps scores and their gradients in 16 bits, which FP16 may not hold."""
    params, inputs = case["params"], case["inputs"]
    params["layout"] = "bshd" if params["layout"] == "thd" else params["layout"]
    params.pop("align", None)
    if params.pop("dropout_mask", "given") == "drawn":
        params.pop("rng_seed")
    if "statistics" in params:
        params["statistics"] = "reference"
    name = inputs["distribution"]
    wide = name in ("rows", "outliers") or inputs.get("high", 0) > 0 or inputs.get("outlier", 0) > 5 or inputs.get("sink", 0) > 16
    # Products of up to 128 numbers of one sign, or of random signs.
    sums = 128 * inputs.get("mean", 0) ** 2 + 64 * inputs.get("sigma", 1) ** 2
    if case["mode"] in FP8:
        case["mode"] = rng.choice(["bf16", "fp16"])
    if case["mode"] == "fp16" and (wide or sums > 2**14):
        case["mode"] = "bf16"


def fp8_limits(op, params):
    """On sm_90. 9.14's forward pass is wrong with more tiles of 128 queries than multiprocessors, and its dq in the last
    rows unless sq is a multiple of 16. dp_amax is too large with fewer than 16 keys."""
    params.update(softmax="vanilla", bias="none", window_left=-1, window_right=-1)
    params["batches"] = min(2, params["batches"])
    params["mask"] = params["mask"].removesuffix("_bottom_right")
    params["layout"] = "bshd" if params["layout"] == "thd" else params["layout"]
    params.pop("align", None)
    params["sq"], params["sk"] = multiple(params["sq"], 16), max(16, params["sk"])
    if params.get("packing", "none").startswith("qkv"):
        params["sk"] = params["sq"]
    # Repeated backward passes differ with more keys.
    if op == "attention_bwd":
        params["sk"] = min(256, params["sk"])
        if params.get("packing", "none").startswith("qkv"):
            params["sq"] = params["sk"]
    params["d"] = 128 if op == "attention_bwd" else multiple(params["d"], 16)


def libraries_take(inputs, backend, mode):
    """NaN and infinities of masked keys reach the results of cuDNN, TransformerEngine and unfused products, and gradients
    that overflow are NaN in the former. Where dp and D are the same throughout, their FP8 kernels report a dp_amax that is none of its error."""
    if backend == "unfused":
        return inputs["distribution"] != "specials"
    infinite = inputs.get("low") == -149 or (mode in ("fp16", "fp32") and inputs.get("high", 0) >= 8)
    wild = inputs["distribution"] in ("specials", "rows") or infinite
    wild = wild or (mode in FP8 and inputs["distribution"] == "constant")
    return not wild or not backend.startswith(("cudnn", "transformer_engine"))
