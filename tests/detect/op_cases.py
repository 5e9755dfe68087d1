"""Random clean cases of every op but gemm (gemm_cases draws those), and shapes at the borders of tiles.

Each op has one function that draws its parameters; shapes(rng) gives (rows, columns). Nothing here knows what a
result should be."""

import random

import te_limits

MOST_ELEMENTS = 12000

PLAIN = ["gelu", "gelu_erf", "silu", "relu", "qgelu", "srelu"]
GATED = ["geglu", "swiglu", "reglu", "qgeglu", "sreglu", "clamped_swiglu"]
FP8 = ["fp8_e4m3", "fp8_e5m2"]
OUTPUTS = ["default"] * 3 + FP8
MXFP8 = ["mxfp8_e4m3", "mxfp8_e5m2"]
DISTRIBUTIONS = ["normal"] * 3 + ["positive", "uniform", "constant", "large_mean", "log_uniform", "outliers", "exact"]
DISTRIBUTIONS += ["ties", "specials", "structured", "rows"]


def distribution(rng):
    name = rng.choice(DISTRIBUTIONS)
    inputs = {"distribution": name}
    if name in ("normal", "large_mean"):
        inputs["sigma"] = 2.0 ** rng.randint(-10, 10)
    if name == "large_mean":
        inputs["mean"] = rng.choice([-1, 1]) * 2.0 ** rng.randint(0, 14)
    if name == "log_uniform":
        inputs["low"], inputs["high"] = rng.choice([(-8, 8), (-60, 0), (-149, 127), (-20, 20)])
    if name == "constant":
        inputs["value"] = rng.choice([1, 0.1, -3, round(rng.uniform(-6, 6), 3)])
    if name == "specials":
        inputs["fraction"] = rng.choice([0.01, 0.3])
    return inputs


def random_shape(rng):
    """Rows and columns: small, medium, long rows, powers of two."""
    cols = rng.choice([rng.randint(1, 40), rng.randint(1, 300), rng.randint(300, 5000), 2 ** rng.randint(0, 12)])
    most = max(1, MOST_ELEMENTS // cols)
    return rng.choice([rng.randint(1, min(40, most)), rng.randint(1, most)]), cols


def border_shape(rng):
    """Rows and columns at 2^k - 1, 2^k and 2^k + 1: where tiles, warps and vectors end."""

    def border(most):
        size = 2 ** rng.randint(0, max(0, most.bit_length() - 1)) + rng.randint(-1, 1)
        return min(max(1, size), most)

    cols = border(8193)
    return border(max(1, 8 * MOST_ELEMENTS // cols)), cols


def norm(rng, shape):
    rows, hidden = shape(rng)
    params = {"rows": rows, "hidden": hidden, "epsilon": rng.choice([1e-5, 1e-6, 1e-12, 1e-3])}
    if rng.random() < 0.4:
        params["zero_centered_gamma"] = True
        params["gamma_add"] = rng.choice(["fp32", "fp32", "weight"])
    return params


def layernorm_fwd(rng, shape, mode):
    return {**norm(rng, shape), "output": rng.choice(["default", "default", "fp8_e4m3"])}


def layernorm_bwd(rng, shape, mode):
    return norm(rng, shape)


def rmsnorm_fwd(rng, shape, mode):
    params = {**norm(rng, shape), "output": rng.choice(["default", "default", "fp8_e4m3"])}
    if rng.random() < 0.25:
        params["gamma_order"] = "hf"
    return params


def rmsnorm_bwd(rng, shape, mode):
    return {**norm(rng, shape), "add": rng.random() < 0.4}


def scores(rng, shape):
    rows, sk = shape(rng)
    batches, heads = rng.randint(1, 3), rng.randint(1, 3)
    return {
        "batches": batches,
        "heads": heads,
        "sq": max(1, min(70, rows // (batches * heads))),
        "sk": sk,
        "scale": rng.choice([1, 0.125, rng.choice([-1, 1]) * 2.0 ** rng.uniform(-6, 8)]),
        "mask": rng.choice(["none", "arbitrary", "causal", "causal_bottom_right"]),
        "masked_value": rng.choice(["te", "minus_infinity"]),
    }


def softmax_fwd(rng, shape, mode):
    return {**scores(rng, shape), "scale_rounding": rng.choice(["as_implemented", "ideal"])}


def softmax_bwd(rng, shape, mode):
    return scores(rng, shape)


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
        params["output"] = rng.choice(OUTPUTS)
    return params


def quantize(rng, shape, mode):
    rows, cols = shape(rng)
    layout = rng.choice(["rowwise", "columnwise", "both"])
    scale = rng.choice([0, 0, 1, 2.0 ** rng.randint(-8, 8), rng.uniform(0.01, 100)])
    return {"rows": rows, "cols": cols, "format": rng.choice(FP8), "layout": layout, "scale": scale}


def dequantize(rng, shape, mode):
    rows, cols = shape(rng)
    return {"rows": rows, "cols": cols, "format": rng.choice(FP8)}


def transpose(rng, shape, mode):
    rows, cols = shape(rng)
    return {"rows": rows, "cols": cols, "format": rng.choice(["default", *FP8])}


def rope(rng, shape, mode):
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


def moe(rng, shape, mode):
    tokens, hidden = shape(rng)
    topk = rng.choice([1, 2, 3, 8])
    tokens = max(1, min(tokens, 4 * MOST_ELEMENTS // (hidden * topk)))
    dropped = rng.choice([0, 0, rng.randint(0, tokens * topk - 1)])
    return {"tokens": tokens, "hidden": hidden, "topk": topk, "dropped": dropped}


def moe_unpermute(rng, shape, mode):
    return {**moe(rng, shape, mode), "probs": rng.random() < 0.6}


def router_topk(rng, shape, mode):
    tokens, experts = shape(rng)
    experts = min(experts, 513)
    return {
        "tokens": tokens,
        "experts": experts,
        "topk": rng.randint(1, min(8, experts)),
        "score": rng.choice(["softmax_pre", "softmax_post", "sigmoid"]),
        "scaling": rng.choice([1, 2.5]),
    }


def dropout(rng, shape, mode):
    rows, cols = shape(rng)
    probability = rng.choice([0, 0.1, 0.5, round(rng.uniform(0, 0.99), 3)])
    return {"elements": max(16, rows * cols // 16 * 16), "p": probability, "rng_seed": rng.randint(0, 10**6)}


PARAMS = {
    "layernorm_fwd": layernorm_fwd,
    "layernorm_bwd": layernorm_bwd,
    "rmsnorm_fwd": rmsnorm_fwd,
    "rmsnorm_bwd": rmsnorm_bwd,
    "activation_fwd": activation,
    "activation_bwd": activation_bwd,
    "bias_grad": bias_grad,
    "softmax_fwd": softmax_fwd,
    "softmax_bwd": softmax_bwd,
    "quantize": quantize,
    "dequantize": dequantize,
    "transpose": transpose,
    "rope_fwd": rope,
    "rope_bwd": rope,
    "moe_permute": moe,
    "moe_unpermute": moe_unpermute,
    "router_topk": router_topk,
    "dropout_fwd": dropout,
    "dropout_bwd": dropout,
}


def inputs_for(rng, op, backend):
    """TransformerEngine's router (2.20.2) breaks on infinite logits: (0, -inf) gets a probability of -inf. Its clean cases
    have finite ones."""
    inputs = distribution(rng)
    if op == "router_topk" and backend.startswith("transformer_engine"):
        while inputs["distribution"] in ("specials", "log_uniform", "rows") or inputs.get("sigma", 1) > 64:
            inputs = distribution(rng)
    return inputs


def draw_case(rng, op, backend, borders=False):
    mode = rng.choice(["fp32", "bf16", "fp16"])
    case = {
        "op": op,
        "mode": mode,
        "backend": backend,
        "params": PARAMS[op](rng, border_shape if borders else random_shape, mode),
        "inputs": inputs_for(rng, op, backend),
        "seed": rng.randint(0, 2**32),
    }
    if backend.startswith("transformer_engine") and rng.random() < 0.95:
        te_limits.fit(case, rng)
    return case


def draw_cases(op, backend, count, seed, borders=False):
    """`count` cases of the op; the same for the same arguments, whatever other ops are drawn."""
    rng = random.Random(f"{op} {seed} {borders}")
    return [draw_case(rng, op, backend, borders) for _ in range(count)]
