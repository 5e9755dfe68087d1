"""Casts to FP8 and FP4 and back, and transposes."""

from drawing import FP8, Clean

BITS = ["exact"]


def case(op, mode="bf16", distribution="normal", **params):
    params = {"rows": 48, "cols": 64, **params}
    return {"op": op, "mode": mode, "backend": "sim", "params": params, "inputs": {"distribution": distribution}}


def quantize(mode="bf16", **rest):
    return case("quantize", mode, **{"layout": "both", **rest})


def dequantize(mode="bf16", **rest):
    return case("dequantize", mode, **rest)


def blocks(recipe, mode="bf16", **rest):
    return quantize(mode, **{"recipe": recipe, "rows": 140, "cols": 300, **rest})


def block_codes(recipe, mode="bf16", **rest):
    return dequantize(mode, **{"recipe": recipe, "rows": 140, "cols": 300, **rest})


def fp4(mode="bf16", **rest):
    return blocks("nvfp4", mode, **{"format": "fp4_e2m1", **rest})


def fp4_codes(mode="bf16", **rest):
    return block_codes("nvfp4", mode, **{"format": "fp4_e2m1", **rest})


RECIPES = ["block_1x128", "block_128x128", "mxfp8"]
SHAPES = ["1x16", "16x16"]


def in_every_recipe(fault, gates, *arguments, **rest):
    return [(fault, blocks(recipe, *arguments, **rest), gates) for recipe in RECIPES]


def with_uneven_scales(fault):
    """Powers of two would be the same in all blocks of 128 x 128."""
    uneven = {"block_128x128": {"power_of_two": "off"}}
    return [(fault, blocks(recipe, distribution="log_uniform", **uneven.get(recipe, {})), BITS) for recipe in RECIPES]


def transpose(mode="bf16", **rest):
    return case("transpose", mode, **rest)


FAULTS = [
    ("scale_half", quantize(), BITS),
    ("scale_after_cast", quantize(scale=3.3), BITS),
    ("subnormal_codes_flushed", quantize(distribution="log_uniform"), BITS),
    ("wrong_amax", quantize(rows=9, cols=7), BITS),
    ("scaled_amax", quantize(), BITS),
    ("scale_inv_is_scale", quantize(), BITS),
    ("codes_not_transposed", quantize(), BITS),
    ("truncated_output", quantize(), BITS),
    ("double_rounded_output", quantize("fp32", format="fp8_e5m2", rows=512, cols=512), BITS),
    ("saturate_missing", quantize(scale=900), ["G0 pattern"]),
    ("stale_amax", quantize(), BITS),
    ("last_row_stale", quantize(), BITS),
    ("nan_dropped", quantize(distribution="specials"), ["G0 pattern"]),
    ("scale_half", dequantize(), BITS),
    ("scale_inverted", dequantize(), BITS),
    ("scale_ignored", dequantize(), BITS),
    ("sign_dropped", dequantize(), BITS),
    ("truncated_output", dequantize("fp16"), BITS),
    ("output_scale_1_01", dequantize(), BITS),
    ("codes_not_transposed", transpose(), BITS),
    ("tile_skipped", transpose(), BITS),
    ("swapped_pair", transpose(), BITS),
    ("last_row_repeated", transpose(), BITS),
    ("last_row_stale", transpose(), BITS),
    ("bf16_output_in_fp32", transpose("fp32"), BITS),
    ("scale_double", quantize(), BITS),
    ("fp16_detour", quantize("fp32"), BITS),
    ("nan_saturated", quantize(distribution="specials"), ["G0 pattern"]),
    *in_every_recipe("scale_half", BITS),
    *in_every_recipe("scale_double", BITS),
    *in_every_recipe("scale_after_cast", BITS),
    *in_every_recipe("scale_inv_is_scale", BITS),
    *in_every_recipe("wrong_amax", BITS),
    *in_every_recipe("subnormal_codes_flushed", BITS, distribution="log_uniform"),
    *in_every_recipe("block_amax_stale", BITS),
    *in_every_recipe("block_scale_off", BITS),
    *with_uneven_scales("neighbour_scale"),
    *with_uneven_scales("scales_transposed"),
    *with_uneven_scales("scale_index_off"),
    *in_every_recipe("padding_written", ["G0 guards"], rows=139),
    *in_every_recipe("truncated_output", BITS),
    *in_every_recipe("double_rounded_output", BITS, "fp32", format="fp8_e5m2", rows=512),
    *in_every_recipe("fp16_detour", BITS, "fp32"),
    *in_every_recipe("saturate_missing", ["G0 pattern"], distribution="specials"),
    *in_every_recipe("nan_saturated", ["G0 pattern"], distribution="specials"),
    *in_every_recipe("nan_dropped", ["G0 pattern"], distribution="specials"),
    *in_every_recipe("last_row_stale", BITS),
    ("codes_not_transposed", blocks("block_1x128"), BITS),
    ("codes_not_transposed", blocks("block_128x128"), BITS),
    ("block_scale_floor", blocks("mxfp8"), BITS),
    ("block_scale_floor", blocks("mxfp8", layout="columnwise"), BITS),
    ("block_scale_up", blocks("mxfp8", rounding="floor"), BITS),
    ("saturate_missing", blocks("mxfp8", rounding="floor"), ["G0 pattern"]),
    ("columnwise_from_rowwise", blocks("block_1x128"), BITS),
    ("columnwise_from_rowwise", blocks("mxfp8"), BITS),
    ("rowwise_scales_columnwise", blocks("block_1x128", power_of_two="off"), BITS),
    ("rowwise_scales_columnwise", blocks("block_1x128", scale_layout="compact", layout="columnwise"), BITS),
    ("rowwise_scales_columnwise", blocks("mxfp8"), BITS),
    ("epsilon_ignored", blocks("block_1x128", epsilon=8), BITS),
    ("epsilon_ignored", blocks("block_128x128", epsilon=8, layout="columnwise"), BITS),
    ("power_of_two_ignored", blocks("block_1x128"), BITS),
    ("power_of_two_ignored", blocks("block_128x128", "fp32", power_of_two="on"), BITS),
    ("scales_transposed", blocks("block_1x128", scale_layout="compact", distribution="log_uniform"), BITS),
    *[(fault, block_codes(recipe, mode), BITS) for recipe in RECIPES for fault, mode in (
        ("scale_half", "bf16"), ("scale_inverted", "bf16"), ("scale_ignored", "bf16"), ("sign_dropped", "fp16"),
        ("neighbour_scale", "bf16"), ("scales_transposed", "fp32"))],
    ("product_rounded_twice", block_codes("block_1x128", "fp16"), BITS),
    *[(fault, fp4(**shape), BITS) for shape in ({}, {"block_shape": "16x16"}) for fault in (
        "scale_half", "scale_double", "scale_after_cast", "scale_inv_is_scale", "wrong_amax", "subnormal_codes_flushed",
        "block_amax_stale", "block_scale_off", "scale_index_off", "scales_transposed", "neighbour_scale",
        "codes_not_transposed", "truncated_output", "halves_swapped", "codes_truncated", "scale_truncated",
        "scale_unrounded", "global_amax_stale", "global_scale_ignored")],
    *[(fault, fp4(layout=layout), BITS) for layout in ("rowwise", "columnwise") for fault in (
        "neighbour_scale", "scale_index_off", "halves_swapped", "codes_truncated", "scale_truncated", "scale_unrounded",
        "global_amax_stale")],
    *[("padding_written", fp4(layout=layout), ["G0 guards"]) for layout in ("rowwise", "columnwise", "both")],
    ("fp16_detour", fp4("fp32"), BITS),
    ("double_rounded_output", fp4("fp32", rows=512), BITS),
    ("nan_saturated", fp4(distribution="specials"), BITS),
    ("last_row_stale", fp4(), BITS),
    ("columnwise_from_rowwise", fp4(), BITS),
    ("columnwise_from_rowwise", fp4(layout="columnwise"), BITS),
    ("rowwise_scales_columnwise", fp4(), BITS),
    ("rowwise_scales_columnwise", fp4("fp32", layout="columnwise"), BITS),
    *[("lines_for_squares", fp4(layout=layout, block_shape="16x16"), BITS)
      for layout in ("rowwise", "columnwise", "both")],
    *[(fault, fp4(mode, stochastic=True, **rest), ["impossible codes"])
      for mode, rest in (("bf16", {}), ("fp32", {"block_shape": "16x16"}), ("fp16", {"layout": "columnwise"}))
      for fault in ("stochastic_beyond", "scale_half", "scale_after_cast", "neighbour_scale", "halves_swapped",
                    "scale_truncated", "scale_unrounded")],
    *[(fault, fp4(mode, stochastic=True, **rest), ["share rounded up"])
      for mode, rest in (("bf16", {}), ("fp32", {"block_shape": "16x16"}), ("fp16", {"layout": "columnwise"}))
      for fault in ("stochastic_nearest", "stochastic_biased", "stochastic_even", "stochastic_upward")],
    *[("stochastic_nearest_line", fp4(mode, stochastic=True, rows=288, cols=304, **rest), ["share rounded up"])
      for mode, rest in (("bf16", {}), ("fp32", {"block_shape": "16x16"}), ("fp16", {"layout": "columnwise"}))],
    *[("draws_shared", fp4(mode, stochastic=True, **rest), ["correlated draws"])
      for mode, rest in (("bf16", {}), ("fp32", {"block_shape": "16x16"}), ("fp16", {"layout": "columnwise"}))],
    *[(fault, fp4(stochastic=True), BITS) for fault in ("block_scale_off", "scales_transposed")],
    *[(fault, fp4(rows=144, hadamard=True, layout=layout), BITS) for layout in ("columnwise", "both") for fault in (
        "hadamard_missing", "hadamard_unsigned", "hadamard_unrounded", "hadamard_amax_of_x", "codes_truncated",
        "neighbour_scale", "scale_truncated")],
    ("hadamard_of_rows", fp4(rows=144, hadamard=True), BITS),
    ("hadamard_missing", fp4(rows=144, hadamard=True, stochastic=True, layout="columnwise"), ["impossible codes"]),
    ("stochastic_biased", fp4(rows=144, hadamard=True, stochastic=True, layout="columnwise"), ["share rounded up"]),
    *[(fault, fp4_codes(), BITS) for fault in (
        "scale_half", "scale_inverted", "scale_ignored", "sign_dropped", "neighbour_scale", "scales_transposed",
        "halves_swapped", "global_amax_ignored")],
    ("product_rounded_twice", fp4_codes("fp16"), BITS),
    ("neighbour_scale", block_codes("mxfp8", layout="columnwise"), BITS),
    ("scales_transposed", block_codes("block_1x128", scale_layout="compact"), BITS),
]

# What the scale of blocks could hide: a fault that changes nothing is refused.
REFUSED = [
    ("scaled_amax", blocks("mxfp8"), "has a scale for every block, and no amax"),
    ("block_scale_off", quantize(), "the tensor has one scale"),
    ("padding_written", blocks("block_1x128", scale_layout="compact"), "the scales have no padding"),
    ("block_scale_floor", blocks("block_1x128"), "no power of two is rounded up"),
    ("epsilon_ignored", blocks("block_1x128"), "no scale of a block has an epsilon"),
    ("power_of_two_ignored", blocks("block_1x128", power_of_two="off"), "no FP32 scale of a block is rounded"),
    ("rowwise_scales_columnwise", blocks("block_128x128"), "both layouts have the same scales"),
    ("fp16_detour", blocks("mxfp8", "fp16"), "x is FP16"),
    ("scale_index_off", blocks("block_128x128", rows=9, cols=9), "the tensor is one block"),
    ("scales_transposed", blocks("block_128x128", rows=9), "the blocks are a row or a column"),
    ("lines_for_squares", fp4(), "no block is 16 x 16"),
    ("rowwise_scales_columnwise", fp4(block_shape="16x16"), "both layouts have the same scales"),
    ("neighbour_scale", fp4(block_shape="16x16", rows=16, cols=10), "the tensor is one block"),
    *[(fault, fp4(), "codes are rounded to nearest even") for fault in ("stochastic_biased", "stochastic_nearest_line")],
    ("hadamard_unsigned", fp4(), "nothing is transformed"),
    ("halves_swapped", blocks("mxfp8"), "the recipe is not nvfp4"),
    ("halves_swapped", block_codes("mxfp8"), "the recipe is not nvfp4"),
    ("block_scale_floor", fp4(), "no power of two is rounded up"),
    ("power_of_two_ignored", fp4(), "no FP32 scale of a block is rounded"),
    ("scaled_amax", fp4(), "has a scale for every block, and no amax"),
]


def recipe(rng):
    return rng.choice(["tensor", "tensor", *RECIPES, "nvfp4"])


def as_fp4(rng, params, has_shapes, mode=""):
    """Two codes share a byte."""
    params.update(format="fp4_e2m1", rows=params["rows"] + params["rows"] % 2, cols=params["cols"] + params["cols"] % 2)
    if has_shapes:
        params["block_shape"] = rng.choice(SHAPES)
        params["stochastic"] = rng.random() < 0.3
        if params["stochastic"]:
            params["rng_seed"] = rng.randint(0, 10**6)
    if mode == "bf16" and params.get("block_shape") == "1x16" and params["layout"] != "rowwise" and rng.random() < 0.4:
        params.update(hadamard=True, rows=-(-params["rows"] // 16) * 16)


def casts(rng, shape, mode):
    rows, cols = shape(rng)
    params = {"rows": rows, "cols": cols, "format": rng.choice(FP8), "recipe": recipe(rng)}
    params["layout"] = rng.choice(["rowwise", "columnwise", "both"])
    if params["recipe"] == "tensor":
        params["scale"] = rng.choice([0, 0, 1, 2.0 ** rng.randint(-8, 8), rng.uniform(0.01, 100)])
    if params["recipe"] == "nvfp4":
        as_fp4(rng, params, True, mode)
    elif params["recipe"] == "mxfp8":
        params["rounding"] = rng.choice(["up", "up", "floor"])
    elif not params.get("scale"):
        params["epsilon"] = rng.choice([0, 0, 0, 2.0 ** rng.randint(-60, 4), rng.uniform(0, 4)])
        params["power_of_two"] = rng.choice(["default", "on", "off"])
    if params["recipe"] == "block_1x128":
        params["scale_layout"] = rng.choice(["gemm_ready", "compact"])
    return params


def codes(rng, shape, mode):
    rows, cols = shape(rng)
    params = {"rows": rows, "cols": cols, "format": rng.choice(FP8), "recipe": recipe(rng)}
    if params["recipe"] == "nvfp4":
        as_fp4(rng, params, False)
    if params["recipe"] == "mxfp8":
        params["layout"] = rng.choice(["rowwise", "columnwise"])
    if params["recipe"] == "block_1x128":
        params["scale_layout"] = rng.choice(["gemm_ready", "compact"])
    return params


def matrices(rng, shape, mode):
    rows, cols = shape(rng)
    return {"rows": rows, "cols": cols, "format": rng.choice(["default", *FP8])}


def te_limits(case, rng):
    """Of 2.20 on devices before compute capability 10.0."""
    params = case["params"]
    params.pop("scale_layout", None)
    if params["recipe"] == "nvfp4":  # at random, and not by the kernel for BF16 tiles of 32 x 32
        params.pop("hadamard", None)
        params.setdefault("rng_seed", rng.randint(0, 10**6))
        params.update(stochastic=True, rows=params["rows"] // 32 * 32 + 16, cols=-(-params["cols"] // 16) * 16)
    if params.pop("rounding", None):
        params["recipe"] = rng.choice(["block_1x128", "block_128x128"])
    if params["layout"] == "columnwise" and params["recipe"] == "tensor":
        params["layout"] = "both"


def te_limits_of_codes(case, rng):
    params = case["params"]
    if params["recipe"] == "nvfp4":
        params["cols"] = -(-params["cols"] // 16) * 16
    else:
        case["params"] = {name: params[name] for name in ("rows", "cols", "format")}


CLEAN = {"quantize": Clean(casts, te_limits), "dequantize": Clean(codes, te_limits_of_codes),
         "transpose": Clean(matrices)}

PATHS = [
    {"op": "quantize", "zip": [["rows", "cols"]],
     "params": {"rows": [33, 64, 257], "cols": [65, 128, 1000], "format": ["fp8_e4m3", "fp8_e5m2"],
                "layout": ["rowwise", "columnwise", "both"]}},
    {"op": "quantize", "zip": [["rows", "cols"]],
     "params": {"rows": [33, 64, 272, 257], "cols": [65, 128, 264, 1000], "recipe": RECIPES,
                "format": ["fp8_e4m3", "fp8_e5m2"], "layout": ["rowwise", "columnwise", "both"]}},
    {"op": "quantize", "zip": [["rows", "cols"]],
     "params": {"rows": [33, 272], "cols": [65, 264], "recipe": "block_1x128", "power_of_two": "off",
                "scale_layout": "compact", "layout": ["rowwise", "columnwise", "both"]}},
    {"op": "quantize", "zip": [["rows", "cols"]],
     "params": {"rows": [33, 272], "cols": [65, 264], "recipe": "mxfp8", "rounding": "floor", "layout": "both"}},
    {"op": "quantize", "zip": [["rows", "cols"]],
     "params": {"rows": [34, 64, 272, 258], "cols": [66, 128, 264, 1000], "recipe": "nvfp4", "format": "fp4_e2m1",
                "block_shape": SHAPES, "layout": ["rowwise", "columnwise", "both"], "stochastic": [False, True]}},
    {"op": "quantize", "zip": [["rows", "cols"]], "mode": "bf16",
     "params": {"rows": [32, 64, 272], "cols": [66, 128, 1000], "recipe": "nvfp4", "format": "fp4_e2m1", "hadamard": True,
                "layout": ["columnwise", "both"], "stochastic": [False, True]}},
    {"op": "dequantize", "zip": [["rows", "cols"]],
     "params": {"rows": [33, 64, 257], "cols": [66, 128, 1000], "recipe": "nvfp4", "format": "fp4_e2m1"}},
    {"op": "dequantize", "zip": [["rows", "cols"]],
     "params": {"rows": [33, 64, 257], "cols": [65, 128, 1000], "recipe": ["tensor", *RECIPES],
                "format": ["fp8_e4m3", "fp8_e5m2"]}},
    {"op": "dequantize", "params": {"rows": 65, "cols": 130, "recipe": "mxfp8", "layout": "columnwise"}},
    {"op": "dequantize", "params": {"rows": 65, "cols": 130, "recipe": "block_1x128", "scale_layout": "compact"}},
    {"op": "transpose", "zip": [["rows", "cols"]],
     "params": {"rows": [33, 64, 257], "cols": [65, 128, 1000]}},
]
