"""Mismatches of attention, activations, rotary embeddings and gradients, and those that JAX makes: see real_mismatches.py."""

import math

import torch
from torch.nn import functional


TF32 = "operands_in_tf32(_away)?"


def draw(*shape, scale=1.0):
    return torch.randn(*shape, device="cuda") * scale


def params(**values):
    return [word for name, value in values.items() for word in ("--param", f"{name}={value}")]


def attend(q, k, v, scale=None, mask=None, cap=0.0, heads=torch.repeat_interleave, sink=False):
    """In FP32, rounded once. `mask`: True where a query sees a key."""
    group = q.shape[1] // k.shape[1]
    k, v = heads(k.float(), group, 1), heads(v.float(), group, 1)
    scores = q.float() @ k.transpose(-1, -2) * (scale if scale is not None else q.shape[-1] ** -0.5)
    scores = cap * torch.tanh(scores / cap) if cap else scores
    scores = scores if mask is None else scores.masked_fill(~mask, -math.inf)
    if sink:
        scores = torch.cat([scores, torch.zeros_like(scores[..., :1])], -1)
    weights = torch.softmax(scores, -1)
    return ((weights[..., :-1] if sink else weights) @ v).to(q.dtype)


def tiled(tensor, times, dim):
    return tensor.repeat(*[times if i == dim else 1 for i in range(tensor.dim())])


def attentions(batches, heads, kv_heads, sq, sk, d):
    torch.backends.cuda.matmul.allow_tf32 = False
    q, k, v = draw(batches, heads, sq, d), draw(batches, kv_heads, sk, d), draw(batches, kv_heads, sk, d)
    plain = {"layout": "bhsd", "batches": batches, "heads": heads, "kv_heads": kv_heads, "sq": sq, "sk": sk, "d": d}
    ones = torch.ones(sq, sk, dtype=torch.bool, device="cuda")
    causal, bottom = ones.tril(), ones.tril(sk - sq)
    for dtype in (torch.bfloat16, torch.float32):
        x, y, z = q.to(dtype), k.to(dtype), v.to(dtype)
        inputs = {"q": x, "k": y, "v": z}
        name = "FP32" if dtype == torch.float32 else "BF16"

        def case(what, o, wanted, **changes):
            return f"{name}, {what}", {**inputs, "o": o}, params(**{**plain, **changes}), wanted

        yield case("right", attend(x, y, z), "correct")
        yield case("right with a causal mask", attend(x, y, z, mask=bottom), "correct", mask="causal_bottom_right")
        yield case("causal", attend(x, y, z, mask=causal), "mask=causal")
        yield case("no mask", attend(x, y, z), "mask=none", mask="causal")
        yield case("top left", attend(x, y, z, mask=causal), "mask=causal|top_left_mask", mask="causal_bottom_right")
        yield case("mask off by one", attend(x, y, z, mask=ones.tril(1)), "mask_off_by_one|window_right=1", mask="causal")
        yield case("scale 1", attend(x, y, z, scale=1.0), "scale=1|softmax_scale_missing")
        yield case("scale 1/d", attend(x, y, z, scale=1 / d), "scale=.*|scale_by_d")
        yield case("softcap left out", attend(x, y, z), "softcap=0|softcap_missing", softcap=2)
        yield case("softcap 30 for 2", attend(x, y, z, cap=30), "softcap=30", softcap=2)
        yield case("off by one for vanilla", attend(x, y, z, sink=True), "softmax=off_by_one")
        if kv_heads != heads:
            yield case("heads tiled", attend(x, y, z, heads=tiled), "kv_heads_tiled|head_map_rotated")
        yield case("weights doubled", attend(x, y, z) * 2, "output_scaled=2")
    fused = functional.scaled_dot_product_attention(q.bfloat16(), k.bfloat16(), v.bfloat16(), enable_gqa=kv_heads != heads)
    inputs = {"q": q.bfloat16(), "k": k.bfloat16(), "v": v.bfloat16()}
    yield "BF16, fused", {**inputs, "o": fused}, params(**plain), "correct"


def activations(rows, hidden):
    x = draw(rows, hidden)
    kinds = {"gelu": functional.gelu(x, approximate="tanh"), "silu": functional.silu(x), "relu": functional.relu(x)}
    for kind, y in kinds.items():
        for asked in kinds:
            wanted = "correct" if kind == asked else f"kind={kind}"
            yield f"{kind} for {asked}", {"x": x, "y": y}, params(kind=asked), wanted
    yield "erf", {"x": x, "y": functional.gelu(x)}, params(kind="gelu"), "gelu_erf|kind=gelu_erf"
    yield "x", {"x": x, "y": x.clone()}, params(kind="silu"), "x_unchanged"
    both = draw(rows, 2 * hidden)
    gate, linear = both.chunk(2, 1)
    yield "swiglu", {"x": both, "y": functional.silu(gate) * linear}, params(kind="swiglu"), "correct"
    yield "swiglu, halves exchanged", {"x": both, "y": functional.silu(linear) * gate}, params(kind="swiglu"), "halves_exchanged|swapped_halves|gate_.*|.*swapped.*"


def ropes(seq, heads, dim):
    x = draw(seq, 1, heads, dim)
    inverse = 10000.0 ** (-torch.arange(0, dim, 2, device="cuda").float() / dim)
    angles = torch.arange(seq, device="cuda").float()[:, None] * inverse
    freqs = torch.cat([angles, angles], 1)

    def rotate(theta, sign=1.0):
        turned = torch.cat([-x[..., dim // 2 :], x[..., : dim // 2]], -1)
        return x * theta[:, None, None].cos() + sign * turned * theta[:, None, None].sin()

    options = params(seq=seq, heads=heads, dim=dim)
    inputs = {"x": x.reshape(-1, dim), "freqs": freqs}
    yield "right", {**inputs, "y": rotate(freqs).reshape(-1, dim)}, options, "correct"
    yield "other direction", {**inputs, "y": rotate(freqs, -1).reshape(-1, dim)}, options, "freqs_negated"
    step = torch.cat([freqs[1:], freqs[-1:]])
    yield "next position", {**inputs, "y": rotate(step).reshape(-1, dim)}, options, "freqs_of_next_row"
    yield "BF16 angles", {**inputs, "y": rotate(freqs.bfloat16().float()).reshape(-1, dim)}, options, "freqs_in_bf16"


def more_softmaxes(rows, columns):
    x = draw(4 * rows, columns)
    options = params(heads=4, scale=0.125)
    yield "log_softmax", {"x": x, "y": torch.log_softmax(x * 0.125, -1)}, options, "log_softmax"
    stacked = x.reshape(4, rows, columns)
    yield "other axis", {"x": x, "y": torch.softmax(stacked * 0.125, 1).reshape(4 * rows, columns)}, options, "softmax_over_queries"
    dropped = functional.dropout(torch.softmax(x * 0.125, -1), 0.1, training=True)
    yield "dropout on", {"x": x, "y": dropped}, options, "dropped_out"


def more_products(m, n, k):
    a, b = draw(m, k), draw(n, k)
    x, w = a.half(), b.half()
    torch.backends.cuda.matmul.allow_tf32 = False
    if hasattr(torch.backends.cuda.matmul, "allow_fp16_accumulation"):
        torch.backends.cuda.matmul.allow_fp16_accumulation = True
        yield "FP16 accumulation", {"a": x, "b": w, "d": functional.linear(x, w)}, (), "accumulated_in_fp16|fp16_accumulation"
        torch.backends.cuda.matmul.allow_fp16_accumulation = False
    scale = b.abs().amax() / 127
    quantised = torch.round(b / scale) * scale
    yield "INT8 weight", {"a": a, "b": b, "d": functional.linear(a, quantised)}, (), "b_scaled_to_int8"
    rows = b.abs().amax(1, keepdim=True) / 448
    quantised = (b / rows).to(torch.float8_e4m3fn).float() * rows
    yield "FP8 weight", {"a": a, "b": b, "d": functional.linear(a, quantised)}, (), "b_rows_scaled_to_fp8_e4m3"
    bias = draw(n)
    torch.backends.cuda.matmul.allow_tf32 = True
    yield "TF32, no bias", {"a": a, "b": b, "bias": bias, "d": functional.linear(a, b)}, (), "(?=.*operands_in_tf32)(?=.*bias(=false|_missing)).*"
    torch.backends.cuda.matmul.allow_tf32 = False
    doubled = functional.linear(a.bfloat16().float(), b.bfloat16().float()) * 2
    yield "BF16 operands, doubled", {"a": a, "b": b, "d": doubled}, (), "(?=.*_in_bf16)(?=.*=2).*"


def products_of_jax(m, n, k):
    import jax
    import jax.numpy as jnp
    import numpy

    rng = numpy.random.default_rng(1)
    a, b = rng.standard_normal((m, k), numpy.float32), rng.standard_normal((k, n), numpy.float32)
    # On an H200, XLA runs all but the highest precision in TF32.
    wanted = {"default": TF32, "high": TF32, "highest": "correct", "bfloat16": TF32}
    for precision, cause in wanted.items():
        with jax.default_matmul_precision(precision):
            d = numpy.array(jnp.matmul(jnp.asarray(a), jnp.asarray(b)))
        yield f"JAX {precision}", {name: torch.from_numpy(x) for name, x in (("a", a), ("b", b), ("d", d))}, (), cause


def gradients_of_layernorm(rows, hidden):
    x, gamma, dy = draw(rows, hidden), 1 + draw(hidden, scale=0.1), draw(rows, hidden)
    mean = x.mean(1, keepdim=True)
    scale = torch.rsqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)
    z = (x - mean) * scale
    g = dy * gamma
    right = scale * (g - g.mean(1, keepdim=True) - z * (g * z).mean(1, keepdim=True))
    inputs = {"dz": dy, "x": x, "mu": mean, "rsigma": scale, "gamma": gamma}
    yield "right", {**inputs, "dx": right}, (), "correct"
    yield "without gamma", {**inputs, "dx": scale * (dy - dy.mean(1, keepdim=True) - z * (dy * z).mean(1, keepdim=True))}, (), "gamma_as_ones"
    yield "mean left out", {**inputs, "dx": scale * (g - z * (g * z).mean(1, keepdim=True))}, (), ".*mean.*|.*sum.*"
    yield "dx doubled", {**inputs, "dx": 2 * right}, (), "output_scaled=2"
