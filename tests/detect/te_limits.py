"""Brings a random case within what TransformerEngine's functions take (their reasons are in the backend's `unsupported`
sentences), so that a sweep of N cases judges about N results. The caller leaves some cases as they were drawn."""


def multiple(value, of):
    return max(of, value // of * of)


def block_rows(columns):
    """Rows of one block of the softmax kernels."""
    lanes = min(1 << (columns - 1).bit_length(), 32)
    return 128 // lanes * (2 if columns <= 128 else 1)


def softmax(params, rng):
    if params["sk"] > 64:
        params["sk"] = multiple(params["sk"], 4)
    rows = block_rows(params["sk"])
    if params["mask"] == "causal":
        side = min(params["sk"], 96 if params["sk"] > 64 else 64)
        params["sk"] = side = multiple(side, 4) if side > 64 else side
        params["sq"] = side
        params["batches"], params["heads"] = rng.choice([1, 2, 4]), 1
        params["heads"] = max(1, block_rows(side) // params["batches"])
    elif params["mask"] != "causal_bottom_right":
        params["sq"] = multiple(params["sq"], rows)
    if params["mask"] in ("arbitrary", "causal_bottom_right"):
        params["masked_value"] = "te"
    if "scale_rounding" in params:
        params["scale_rounding"] = "as_implemented"


def norm(params, rng):
    params.pop("gamma_add", None)
    params.pop("gamma_order", None)


def activation(params, rng):
    if params["kind"] == "gelu_erf":
        params["kind"] = "gelu"
    params.pop("sigmoid", None)
    if params["output"].startswith("mxfp8") and rng.random() < 0.9:  # its kernels need compute capability 10.0
        params["output"] = "default"
        del params["layout"]
    elif params["output"].startswith("mxfp8"):
        params["hidden"] = multiple(params["hidden"], 32)


def bias_grad(params, rng):
    params["rows"], params["hidden"] = multiple(params["rows"], 64), multiple(params["hidden"], 64)


def quantize(params, rng):
    if params["layout"] == "columnwise":
        params["layout"] = "both"


def moe(params, rng):
    params["hidden"] = multiple(params["hidden"], 8)


LIMITS = {
    "layernorm_fwd": norm,
    "layernorm_bwd": norm,
    "rmsnorm_fwd": norm,
    "rmsnorm_bwd": norm,
    "activation_fwd": activation,
    "activation_bwd": activation,
    "bias_grad": bias_grad,
    "softmax_fwd": softmax,
    "softmax_bwd": softmax,
    "quantize": quantize,
    "moe_permute": moe,
    "moe_unpermute": moe,
}
SIXTEEN_BIT = ("softmax_fwd", "softmax_bwd", "dropout_fwd", "dropout_bwd")


def fit(case, rng):
    """Changes the case in place."""
    op = case["op"]
    if op in SIXTEEN_BIT and case["mode"] == "fp32":
        case["mode"] = rng.choice(["bf16", "fp16"])
    if op in LIMITS:
        LIMITS[op](case["params"], rng)
