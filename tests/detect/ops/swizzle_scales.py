"""Scales of MXFP8 and NVFP4 in the order of matrix instructions."""

from drawing import Clean

BITS = ["exact"]


def swizzle(rows, cols, recipe="mxfp8", layout="rowwise", seed=1, distribution="normal"):
    return {"op": "swizzle_scales", "mode": "fp32", "backend": "sim", "seed": seed, "inputs": {"distribution": distribution},
            "params": {"rows": rows, "cols": cols, "recipe": recipe, "layout": layout}}


WIDE = swizzle(200, 320)
TALL = swizzle(320, 200, layout="columnwise")

FAULTS = [
    *[("not_swizzled", case, BITS) for case in (WIDE, TALL, swizzle(2, 32 * 2), swizzle(64, 5, "nvfp4", "columnwise"))],
    ("padding_unwritten", WIDE, BITS),
    ("padding_unwritten", swizzle(127, 64, "nvfp4"), BITS),
    ("padding_repeats", WIDE, BITS),
    ("padding_repeats", swizzle(128, 96), BITS),
    ("tiles_transposed", WIDE, BITS),
    ("tiles_transposed", TALL, BITS),
    ("groups_reversed", swizzle(33, 32), BITS),
    ("groups_reversed", swizzle(16, 129, "nvfp4", "columnwise"), BITS),
    ("wrong_orientation", TALL, BITS),
    ("wrong_orientation", swizzle(2, 96), BITS),
    ("next_block", WIDE, BITS),
    ("next_block", swizzle(64, 3, layout="columnwise"), BITS),
    ("last_tile_missed", WIDE, BITS),
    ("last_tile_missed", swizzle(1, 16, "nvfp4"), BITS),
]

REFUSED = [
    ("padding_unwritten", swizzle(128, 128), "128 x 4 scales fill all tiles"),
    ("tiles_transposed", swizzle(128, 1024), "tiles lie in one row or one column"),
    ("groups_reversed", swizzle(32, 1024), "there are 32 lines or fewer"),
    ("not_swizzled", swizzle(1, 1024), "there is one line, or one block a line"),
    ("last_tile_missed", swizzle(0, 1024), "there are no scales"),
]


def scales(rng, shape, mode):
    recipe = rng.choice(["mxfp8", "nvfp4"])
    block = 32 if recipe == "mxfp8" else 16
    lines, blocks = shape(rng)
    lines, blocks = rng.choice([(lines, min(blocks, 40)), (rng.choice([1, 31, 32, 33, 127, 128, 129, 384, 600]), blocks % 20 + 1)])
    layout = rng.choice(["rowwise", "columnwise"])
    rows, cols = (lines, blocks * block) if layout == "rowwise" else (blocks * block, lines)
    return {"rows": rows, "cols": cols, "recipe": recipe, "layout": layout}


CLEAN = {"swizzle_scales": Clean(scales, modes=("fp32",))}

PATHS = [
    {"op": "swizzle_scales", "mode": "fp32", "zip": [["rows", "cols"]],
     "params": {"rows": [0, 32, 64, 96, 256, 4096], "cols": [32, 0, 160, 64, 1024, 2048], "recipe": ["mxfp8", "nvfp4"],
                "layout": ["rowwise", "columnwise"]}},
]
