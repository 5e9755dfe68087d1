"""The matrix product. Its clean cases are drawn in C++ (gemm_cases.cpp), like those of clean_sweep."""

from drawing import DrawnBy, unusual_values
from families import Row


def gemm(mode, m=96, n=80, k=256, distribution="normal", inputs=None, **params):
    """96 x 80 outputs: not square, and no multiple of a 64 x 64 tile."""
    return {
        "op": "gemm",
        "mode": mode,
        "backend": "sim",
        "params": {"m": m, "n": n, "k": k, "trans_b": True, **params},
        "inputs": {"distribution": distribution, **(inputs or {})},
        "algorithms": "heuristic",
    }


def plain(mode, k=64, **rest):
    """Untransposed operands; short sums."""
    return gemm(mode, k=k, trans_b=False, **rest)


def long(mode, **rest):
    """Few outputs with long sums: no bound is exceeded, so only statistics can tell."""
    return plain(mode, m=40, n=32, k=4096, **rest)


FP8_WIDE = gemm("fp8_e4m3", k=4096, output="fp32", accumulate="split")
FP8_PROMOTION = gemm("fp8_e4m3", k=1024, output="fp32", accumulate="split", distribution="exact")
FP8_POSITIVE = gemm("fp8_e4m3", k=1024, distribution="uniform", inputs={"low": 0.5, "high": 1})
FP8_UNASKED = {"m": 48, "n": 48, "output": "fp32"}
SUBNORMAL = gemm("fp32", m=32, n=32, k=64, distribution="log_uniform", inputs={"low": -75, "high": -60})
TO_FP8 = plain("fp8_e4m3", output="fp8_e4m3")
HIDDEN_BY_GELU = {"epilogue": "gelu", "alpha": 1e-8, "inputs": {"sigma": 1e4}}  # no probe reaches where gelu is straight
SCALED_GELU = {"alpha": 0.125, "epilogue": "gelu"}
IN_PLACE = gemm("bf16", m=256, n=160, beta=1, in_place=True)

MEMORY = {
    "bit_flip": "G1 bound",
    "stale_tile": "G1 bound",
    "unwritten_tile": "G0 pattern",
    "write_past_end": "G0 guards",
    "nan_written": "G0 pattern",
    "inf_written": "G0 pattern",
    "element_zero": "G1 bound",
    "element_negated": "G1 bound",
    "neighbour_copied": "G1 bound",
    "race": "G0 determinism",
    "swapped_rows": "G1 bound",
    "all_nan": "G0 pattern",
    "all_seven": "G1 bound",
    "all_zero": "G1 bound",
    "signs_flipped": "G1 bound",
    "input_overwritten": "G0 guards",
    "workspace_overrun": "G0 guards",
}


def of_memory():
    for mode in ("fp32", "bf16", "fp16"):
        yield from (Row(fault, plain(mode), [gate]) for fault, gate in MEMORY.items())
    yield Row("bit_flip", gemm("bf16", distribution="exact"), ["exact"])
    yield Row("write_past_end", plain("fp8_e4m3", pad_d=3, misalign=1), ["G0 guards"])


def without_class(fault, case, gate, also=""):
    """Without the probe of the class: statistics alone must catch the fault."""
    return Row(fault, case, [gate], also, blind_to="class")


# Random data do not show fast accumulation in so few products.
FP8_SPLIT = [
    (96, 272, "fp8_e4m3", {}),
    (96, 1024, "fp8_e4m3", {"accumulate": "split"}),
    (1, 1024, "fp8_e4m3", {}),
    (96, 384, "fp8_hybrid", {"output": "fp32"}),
    (96, 1024, "fp8_e4m3", {"output": "fp8_e4m3"}),
    (96, 1024, "fp8_e4m3", {"alpha": -0.5, "bias": True, "epilogue": "relu"}),
    (96, 1024, "fp8_e4m3", {"epilogue": "gelu", "beta": 1}),
    (96, 1024, "fp8_e4m3", {"epilogue": "gelu", "alpha": 2e-5, "output": "fp8_e4m3"}),
    *[(48, k, "fp8_e4m3", {"output": output}) for k in (144, 256) for output in ("bf16", "fp16", "fp32", "fp8_e4m3")],
    (96, 144, "fp8_hybrid", {"output": "fp8_e5m2"}),
    (96, 160, "fp8_e4m3", {"epilogue": "gelu", "alpha": -0.3}),
    (96, 256, "fp8_e4m3", {"scaling": "outer_vector", "alpha": 3, "output": "fp16"}),
]


def of_operands():
    for mode in ("fp32", "fp32_pedantic"):
        yield Row("tf32_silently", plain(mode, k=256), ["class"], also="G2 rms")
        yield without_class("tf32_silently", plain(mode, k=256), "G1 bound", "G2 rms")
        yield without_class("tf32_silently", long(mode), "G2 rms", "G2 max")
        yield without_class("bf16_inputs", long(mode), "G2 rms", "G2 q999")
    yield from [
        Row("tf32_silently", gemm("fp32"), ["class"]),
        Row("tf32_silently", gemm("fp32", epilogue="gelu"), ["class"]),
        Row("tf32_silently", gemm("fp32", **HIDDEN_BY_GELU), ["G1 bound", "G2 rms"]),
        Row("tf32_truncated_inputs", plain("tf32", k=256), ["class"]),
        Row("tf32_truncated_inputs", gemm("tf32", epilogue="gelu"), ["class"]),
        Row("tf32_truncated_inputs", gemm("tf32", **HIDDEN_BY_GELU), ["G1 bound", "G2 rms", "G3 slope"]),
        without_class("tf32_truncated_inputs", plain("tf32", k=256), "G3 slope"),
        without_class("tf32_truncated_inputs", long("tf32"), "G3 slope"),
        without_class("tf32_truncated_inputs", long("fp32"), "G2 rms", "G3 slope"),
        Row("bf16_inputs", plain("fp32"), ["class"]),
        Row("bf16_inputs", gemm("tf32", epilogue="gelu"), ["class"]),
        Row("bf16_inputs", gemm("tf32", **HIDDEN_BY_GELU), ["G1 bound", "G2 rms"]),
        without_class("bf16_inputs", plain("tf32", k=256), "G2 rms", "G2 q999"),
        Row("bf16_inputs", plain("fp16", k=256, output="fp32"), ["G1 bound"], also="G2 rms"),
        Row("bf16_inputs", long("fp16", output="fp32"), ["G2 rms"], also="G2 q999"),
        Row("bf16_inputs", plain("fp16", k=256), ["G1 bound"], also="G4 flips"),
        Row("transposed_a", gemm("fp8_e4m3", k=96, distribution="exact"), ["exact"]),
    ]


def of_sums():
    for mode in ("fp32", "tf32", "bf16", "fp16_acc16", "fp8_e4m3"):
        coarse = mode in ("fp16_acc16", "fp8_e4m3")
        yield from [
            Row("missing_k_tail", plain(mode), ["G1 bound"]),
            Row("missing_k_tail", plain(mode, distribution="exact"), ["exact"]),
            Row("duplicated_k_block", plain(mode, k=100), ["G1 bound"]),
            Row("unreduced_split_k", plain(mode, k=128), ["G1 bound"]),
            Row("transposed_a", plain(mode, k=96), ["G1 bound"]),
            Row("scale_half", plain(mode), ["G1 bound"]),
            Row("scale_1_01", plain(mode), ["G2 rms" if coarse else "G1 bound"]),
        ]
    yield from [
        Row("unreduced_split_k", gemm("fp16"), ["G1 bound"]),
        Row("duplicated_k_block", gemm("fp8_e4m3", k=256, scaling="outer_vector"), ["G1 bound"]),
        Row("doubled_split_head", gemm("fp8_e4m3", k=256, scaling="outer_vector"), ["G1 bound"]),
        Row("tf32x3_in_core", plain("fp32", k=1024), ["G2 rms"], also="G3 slope"),
        Row("tf32x3_in_core", gemm("fp32", k=4096), ["G2 rms", "G3 slope"]),
        Row("scale_1_01", gemm("fp16_acc16", m=128, n=128, k=4096), ["G3 slope"]),
        Row("scale_1_01", gemm("fp16_acc16", m=128, n=128, k=4096, inputs={"sigma": 0.03}), ["G3 slope"]),
        Row("fp16_accumulation", long("bf16", output="fp32"), ["G1 bound"], also="G2 rms"),
        Row("fp16_accumulation", plain("fp16", k=512), ["G1 bound"], also="G4 flips"),
        Row("fp16_accumulation", gemm("fp16", output="fp32"), ["G1 bound", "G2 rms"]),
        *(Row("fast_accumulation", gemm(mode, m=m, k=k, **rest), ["class"]) for m, k, mode, rest in FP8_SPLIT),
        without_class("fast_accumulation", plain("fp8_e4m3", k=4096, **FP8_UNASKED), "G2 rms"),
        without_class("fast_accumulation", plain("fp8_e4m3", k=1024, distribution="exact", **FP8_UNASKED), "exact"),
        Row("fast_accumulation", FP8_WIDE, ["G1 bound", "G2 rms"], blind_to="class"),
        without_class("fast_accumulation", FP8_PROMOTION, "exact"),
        without_class("fast_accumulation", FP8_POSITIVE, "G2 rms"),
        Row("promotion_512", gemm("fp8_e4m3", k=1024), ["class"]),
        Row("promotion_512", gemm("fp8_hybrid", k=2000, output="fp32"), ["class"]),
        without_class("promotion_512", plain("fp8_e4m3", k=1024, distribution="exact", **FP8_UNASKED), "exact"),
        without_class("promotion_512", plain("fp8_e4m3", k=512, distribution="exact", **FP8_UNASKED), "exact"),
        without_class("promotion_512", FP8_PROMOTION, "exact"),
    ]


def of_ranges():
    """Ranges of k that are missing, doubled or read from elsewhere: in every mode, each named."""
    exact = {"distribution": "exact"}
    for mode in ("fp32", "fp32_pedantic", "tf32", "fp32_fast16f", "fp32_fast16bf", "bf16x9", "bf16", "fp16", "fp16_acc16",
                 "fp8_e4m3", "fp8_hybrid"):
        named = [
            ("missing_k_tail", "the last 1 of k is missing", ["G1 bound", "G2 rms"]),
            ("missing_k_tail_8", "the last 8 of k are missing", ["G1 bound", "G2 rms"]),
            ("missing_k_stage", "k = 64 to 127 are missing", ["G1 bound"]),
            ("unreduced_split_k", "the last 128 of k are missing", ["G1 bound"]),
            ("doubled_split_head", "k = 128 is counted twice", ["G1 bound", "G2 rms"]),
            ("stale_k_tail", "the last 8 of k are read from 64 earlier in k", ["G1 bound", "G2 rms"]),
            ("k_tail_of_next_row", "the last 8 of k are read from the next row of A", ["G1 bound", "G2 rms"]),
        ]
        for fault, words, gates in named:
            # The class of FP8 sums changes, too, where the second half of k is missing.
            yield Row(fault, gemm(mode, k=256, output="fp32" if mode != "fp16_acc16" else "default"), gates, named=words,
                      blind_to="class")
        yield Row("missing_k_tail", gemm(mode, k=257 if "8" not in mode else 272, trans_a=True), gates,
                  named="the last 1 of k is missing")
    # Data for tails: each product counts alike, or a sum has a single one.
    one_hot = {"a": {"distribution": "one_hot"}}
    for mode in ("tf32", "bf16", "fp16"):
        for data in ({"distribution": "signs"}, {"inputs": one_hot}):
            yield Row("missing_k_tail", gemm(mode, m=8, n=8, k=8193, trans_a=True, trans_b=False, **data), ["G1 bound", "G2 rms"],
                      named="the last 1 of k is missing")
    yield Row("missing_k_stage", gemm("bf16", k=256, **exact), ["exact"], named="k = 64 to 127 are missing")
    yield Row("missing_k_tail", gemm("bf16", k=2945, trans_a=True, trans_b=False, beta=0.1, output="fp32"),
              ["G1 bound", "G2 rms"], named="the last 1 of k is missing")


def scaled(scaling, mode="fp8_e4m3", **rest):
    """Two blocks each way, the last along k of 16 products."""
    return gemm(mode, m=136, n=144, k=400, scaling=scaling, **rest)


BLOCKS = ("1x128_1x128", "1x128_128x128", "128x128_1x128")


def of_mxfp8():
    """Scales that instructions multiply with. The last block of k has 16 products."""
    rows = [
        Row("block_scale_misindexed", scaled("mxfp8"), ["G1 bound", "G2 rms"]),
        Row("block_scale_misindexed", scaled("mxfp8", distribution="exact"), ["exact"]),
        Row("column_scale_misindexed", scaled("mxfp8", mode="fp8_hybrid"), ["G1 bound", "G2 rms"]),
        Row("block_scales_transposed", scaled("mxfp8", output="fp32"), ["G1 bound", "G2 rms"]),
        Row("block_scales_missing", scaled("mxfp8", mode="fp8_hybrid", distribution="exact"), ["exact"]),
        Row("missing_k_tail", scaled("mxfp8"), ["G1 bound", "G2 rms"], named="the last 1 of k is missing"),
        Row("scale_1_01", scaled("mxfp8"), ["G1 bound"]),
    ]
    # Rows with small scales are judged by theirs, not by the largest.
    wide = {"inputs": {name: {"distribution": "outliers", "scale": 1e6, "fraction": 0.01} for name in ("a_scale_inv", "b_scale_inv")}}
    rows.append(Row("swapped_rows", scaled("mxfp8", **wide), ["G1 bound", "G2 rms"]))
    return [row._replace(device="sim:sm_100") for row in rows]


def of_nvfp4():
    """The same of E2M1 numbers, with a number for each operand besides."""
    def fp4(**rest):
        return scaled("nvfp4", mode="fp4_e2m1", **rest)

    rows = [
        Row("block_scale_misindexed", fp4(), ["G1 bound", "G2 rms"]),
        Row("block_scale_misindexed", fp4(distribution="exact"), ["exact"]),
        Row("column_scale_misindexed", fp4(output="fp16"), ["G1 bound", "G2 rms"]),
        Row("block_scales_transposed", fp4(output="fp32"), ["G1 bound", "G2 rms"]),
        Row("block_scales_missing", fp4(distribution="exact"), ["exact"]),
        Row("missing_k_tail", fp4(), ["G1 bound", "G2 rms"], named="the last 1 of k is missing"),
        Row("scale_1_01", fp4(), ["G1 bound"]),
        Row("scale_1_01", fp4(output="fp32"), ["G1 bound", "G2 rms"]),
        Row("swapped_rows", fp4(), ["G1 bound", "G2 rms"]),
    ]
    return [row._replace(device="sim:sm_100") for row in rows]


def of_scales():
    """Scales of rows and blocks."""
    for scaling in BLOCKS:
        yield from [
            Row("block_scale_misindexed", scaled(scaling), ["G1 bound", "G2 rms"]),
            Row("block_scale_misindexed", scaled(scaling, distribution="exact"), ["exact"]),
            Row("missing_k_tail", scaled(scaling), ["G1 bound", "G2 rms"], named="the last 1 of k is missing"),
        ]
    for scaling in (*BLOCKS, "outer_vector"):
        yield from [
            Row("column_scale_misindexed", scaled(scaling), ["G1 bound", "G2 rms"]),
            Row("column_scale_misindexed", scaled(scaling, mode="fp8_hybrid", distribution="exact"), ["exact"]),
            Row("block_scales_missing", scaled(scaling, power_of_two=True), ["G1 bound", "G2 rms"]),
            Row("scale_1_01", scaled(scaling), ["G2 rms", "G3 slope"]),
        ]
    # Rows and blocks with small scales are judged by theirs, not by the largest.
    for scaling in (*BLOCKS, "outer_vector"):
        wide = {"inputs": {name: {"distribution": "outliers", "scale": 1e6, "fraction": 0.01} for name in ("a_scale_inv", "b_scale_inv")}}
        yield Row("swapped_rows", scaled(scaling, **wide), ["G1 bound", "G2 rms"])
        yield Row("leaky_relu", scaled(scaling, bias=True, epilogue="relu", inputs={
            **wide["inputs"], "bias": {"distribution": "large_mean", "mean": -200, "sigma": 20}}), ["G1 bound"])
    # Where nothing is multiplied, C remains.
    yield Row("all_nan", scaled("1x128_1x128", beta=1) | {"params": {"m": 48, "n": 32, "k": 0, "trans_b": True, "beta": 1,
                                                                       "scaling": "1x128_1x128"}}, ["G0 pattern"])
    yield Row("bias_missing", scaled("1x128_1x128", bias=True, inputs={
        "a_scale_inv": {"distribution": "constant", "value": 1e-20}, "b_scale_inv": {"distribution": "constant", "value": 1e-30}}),
              ["G1 bound"])
    yield from [
        Row("block_scales_transposed", scaled("1x128_1x128"), ["G1 bound", "G2 rms"]),
        Row("block_scales_transposed", scaled("1x128_128x128", mode="fp8_hybrid", output="fp32"), ["G1 bound", "G2 rms"]),
        Row("block_scales_transposed", scaled("1x128_1x128", distribution="exact"), ["exact"]),
        # Not with 128x128_1x128: A has eight scales then, and errors of 1e-3 of each block hide in those of 14-bit sums.
        *(Row("block_scales_in_bf16", scaled(scaling, output="fp32"), ["G2 rms", "G2 q999", "homogeneity"])
          for scaling in ("outer_vector", "1x128_1x128", "1x128_128x128")),
        Row("fast_accumulation", scaled("outer_vector"), ["class"]),
    ]


# Scale, addends, bias and activation.
EPILOGUE = [
    ("scale_1_01", gemm("fp8_hybrid", k=1024, distribution="uniform", inputs={"low": 0.1, "high": 1}), ["G3 slope"]),
    ("scale_1_01", gemm("fp8_hybrid", output="fp8_e4m3"), ["G1 bound", "G2 rms", "G3 slope", "G4 flips"]),
    ("beta_ignored", gemm("fp32", beta=0.5), ["G1 bound"]),
    ("beta_ignored", plain("bf16", beta=0.5, bias=True), ["G1 bound"]),
    ("beta_ignored", plain("fp32", beta=0.5, bias=True, distribution="exact"), ["exact"]),
    ("bias_missing", gemm("bf16", bias=True), ["G1 bound", "G2 rms"]),
    ("bias_missing", plain("bf16", beta=0.5, bias=True), ["G1 bound"]),
    ("bias_missing", plain("fp8_e4m3", beta=0.5, bias=True), ["G1 bound"]),
    Row("product_rounded", plain("bf16", beta=1), ["G1 bound"], also="G4 flips"),
    Row("product_rounded", plain("fp16", beta=1), ["G1 bound"], also="G4 flips"),
    ("product_rounded", gemm("fp16", beta=-1, k=1024), ["G1 bound", "G4 flips"]),
    Row("sum_rounded", plain("bf16", bias=True), ["G1 bound"], also="G4 flips"),
    Row("sum_rounded", plain("fp16", bias=True, epilogue="gelu"), ["G1 bound"], also="G4 flips"),
    ("sum_rounded", gemm("fp16", epilogue="gelu", k=16), ["G1 bound", "G4 flips"]),
    Row("sum_rounded", plain("fp16", epilogue="gelu", inputs={"sigma": 100}), ["G0 pattern"],
        named="sums below the smallest fp16 number become NaN in gelu"),
    # What is certainly negative is 0, whatever the error of the sum.
    *(Row("leaky_relu", gemm(mode, k=k, bias=True, epilogue="relu",
                             inputs={"sigma": k**-0.25, "bias": {"distribution": "large_mean", "mean": -2, "sigma": 2}}), ["G1 bound"])
      for mode in ("fp32", "tf32", "bf16", "fp16", "fp8_e4m3", "fp8_hybrid") for k in (64, 1024)),
    Row("leaky_relu", gemm("fp16_acc16", k=64, bias=True, epilogue="relu",
                           inputs={"bias": {"distribution": "large_mean", "mean": -2, "sigma": 2}}), ["G1 bound"]),
    Row("approximate_tanh", plain("fp32", k=8, epilogue="gelu"), ["G1 bound"], also="G2 rms"),
    # Where gelu is flat, large sums leave no error.
    *(Row("approximate_tanh", gemm(mode, k=1024, output="fp32", epilogue="gelu"), ["G1 bound"])
      for mode in ("fp32", "tf32", "bf16", "fp16")),
    Row("approximate_tanh", gemm("bf16", k=1024, epilogue="gelu", bias=True), ["G1 bound"]),
    ("gelu_erf", gemm("fp32", epilogue="gelu"), ["G1 bound", "G2 rms", "G2 q999"]),
    ("gelu_erf", plain("fp32", **SCALED_GELU), ["G1 bound"]),
    ("gelu_erf", plain("bf16", output="fp32", **SCALED_GELU), ["G1 bound"]),
    ("gelu_erf", plain("fp16", **SCALED_GELU), ["G1 bound"]),
]

# Sums of one sign lose up to some percent in 14 bits: that others are lost shows when they are replayed, less what is added to them.
ONE_SIGN = [Row("scale_1_01", gemm("fp8_e4m3", m=256, n=128, k=512, accumulate="fast", distribution="uniform", inputs={"low": 0, "high": 1},
                                   **addends), ["G5 scale", "G1 bound", "G3 slope"])
            for addends in ({"bias": True}, {"bias": True, "epilogue": "relu", "output": "fp32"}, {"beta": -0.5, "output": "fp16"},
                            {"beta": 1, "bias": True})]

# An FP8 product is judged by its own terms, however large what is added to it.
BESIDE = [Row(fault, gemm("fp8_e4m3", m=128, n=128, output=output, **addends), gates, blind_to="class")
          for fault, gates in (("transposed_a", ["G1 bound"]), ("scale_half", ["G1 bound"]), ("missing_k_stage", ["G1 bound"]),
                               ("missing_k_tail", ["G1 bound", "G2 rms"]))
          for output, addends in (("fp32", {"beta": 1, "inputs": {"c": {"distribution": "uniform", "low": 5e5, "high": 1e6}}}),
                                  ("fp32", {"bias": True, "inputs": {"bias": {"distribution": "normal", "sigma": 1e5}}}),
                                  ("fp32", {"bias": True, "epilogue": "gelu", "inputs": {"bias": {"distribution": "normal", "sigma": 1e5}}}),
                                  ("bf16", {"beta": 30, "epilogue": "relu"}))]

# If C is added in place, a product that was rounded first is excused (shortcuts_test.cpp); nothing else is.
NOT_EXCUSED = [
    ("truncated_output", IN_PLACE, ["G1 bound"]),
    ("scale_1_01", IN_PLACE, ["G1 bound"]),
    ("beta_ignored", IN_PLACE, ["G1 bound"]),
    ("missing_k_tail", IN_PLACE, ["G1 bound"]),
    ("unreduced_split_k", IN_PLACE, ["G1 bound"]),
]

STORES = [
    ("transposed_output", plain("fp32", n=96), ["G1 bound"]),
    ("transposed_output", plain("bf16", n=96), ["G1 bound"]),
    ("bf16_output_in_fp32", plain("fp32"), ["class"]),
    ("bf16_output_in_fp32", plain("bf16", output="fp32"), ["G1 bound"]),
    ("bf16_output_in_fp32", gemm("fp32", epilogue="relu"), ["class", "G1 bound", "G2 rms"]),
    Row("bf16_output_in_fp32", gemm("fp32_fast16bf", k=1), ["G1 bound"], also="lattice"),
    Row("bf16_output_in_fp32", gemm("fp32_fast16bf"), ["G1 bound"], also="lattice"),
    # As large as errors that the mode allows: only the bits tell.
    ("bf16_output_in_fp32", gemm("fp8_e4m3", k=1024, output="fp32", accumulate="fast"), ["lattice"]),
    ("bf16_output_in_fp32", gemm("fp8_hybrid", output="fp32", accumulate="split"), ["lattice"]),
    Row("tf32_output_in_fp32", gemm("tf32"), ["G1 bound"], also="lattice"),
    Row("tf32_output_in_fp32", gemm("fp32_fast16bf", k=1024, bias=True), ["G2 rms"], also="lattice"),
    ("tf32_output_in_fp32", FP8_WIDE, ["lattice"]),
    ("tf32_output_in_fp32", plain("bf16", output="fp32"), ["G1 bound"]),
    ("double_rounded_output", plain("bf16"), ["G1 bound"]),
    Row("truncated_output", plain("bf16"), ["G1 bound"], also="G4 flips"),
    Row("truncated_output", plain("fp16"), ["G1 bound"], also="G4 flips"),
    Row("truncated_output", plain("fp8_e4m3"), ["G3 slope"], also="G4 flips"),
    Row("truncated_output", TO_FP8, ["G1 bound"], also="G4 flips"),
    # The error of an accumulator with few bits hides that of a double rounding.
    Row("fp16_detour_fp8_output", TO_FP8, ["G1 bound"], device="sim:sm_100"),
    ("stale_amax", TO_FP8, ["G1 bound"]),
    ("stale_amax", plain("fp8_hybrid", output="fp8_e5m2"), ["G1 bound"]),
    ("saturate_missing", plain("fp8_e4m3", output="fp8_e4m3", distribution="outliers"), ["G0 pattern"]),
    ("denormals_flushed", SUBNORMAL, ["G1 bound"]),
    ("denormals_flushed", plain("fp16", inputs={"sigma": 1e-3}), ["G1 bound"]),
    ("nan_dropped", plain("fp32", k=16, distribution="specials"), ["G0 pattern"]),
    ("nan_dropped", plain("fp8_e4m3", k=16, distribution="specials", inputs={"fraction": 0.003}), ["G0 pattern"]),
]

FAULTS = [*of_memory(), *of_operands(), *of_sums(), *of_ranges(), *of_scales(), *of_mxfp8(), *of_nvfp4(), *EPILOGUE, *ONE_SIGN, *BESIDE, *NOT_EXCUSED, *STORES]

MODES = ["fp32", "fp32_pedantic", "tf32", "fp32_fast16f", "fp32_fast16bf", "bf16", "fp16", "fp16_acc16", "fp8_e4m3",
         "fp8_hybrid"]


def unusual(rng):
    """Long sums, factors of any size, operands of very different scales."""
    mode = rng.choice(MODES)
    k = rng.choice([1, 2, rng.randint(1, 100), 4096, 2 ** rng.randint(12, 20), rng.randint(2**12, 2**20)])
    most = max(9, min(64, 2**21 // k))
    params = {"m": rng.randint(1, most), "n": rng.randint(1, most), "k": k, "trans_a": rng.random() < 0.5,
              "trans_b": rng.random() < 0.5, "bias": rng.random() < 0.2,
              "epilogue": rng.choice(["none", "none", "none", "relu", "gelu"])}
    factors = [1, 1, 1, 1, 0, -1, 0.1, 1e-3, 1e3] if mode == "fp16_acc16" else [1, 1, 1, 0, 0.1, 1e10, -1e20, 1e30, 1e-30]
    params["alpha"] = rng.choice(factors)
    params["beta"] = rng.choice([0, 0, 0, *factors])
    inputs = unusual_values(rng)
    if rng.random() < 0.5:
        inputs["b"] = unusual_values(rng)
    if mode.startswith("fp8") and rng.random() < 0.5:
        params |= {"scaling": rng.choice(["outer_vector", *BLOCKS]), "power_of_two": rng.random() < 0.5, "trans_a": False,
                   "trans_b": True}
    return {"mode": mode, "params": params, "inputs": inputs}


CLEAN = {"gemm": DrawnBy("gemm_cases", may_warn=("cublaslt", "sim", "transformer_engine"), unusual=unusual)}

PATHS = [
    # Whole and ragged tiles, every layout, one batch and several.
    {"op": "gemm", "mode": ["fp32", "bf16", "fp16"], "zip": [["m", "n", "k"]],
     "params": {"m": [64, 130], "n": [128, 67], "k": [48, 77], "trans_a": [False, True], "trans_b": [False, True],
                "batch": [1, 3]}},
    # Every step after the sum, and outputs wider than the inputs.
    {"op": "gemm", "mode": ["bf16", "fp16"],
     "params": {"m": 65, "n": 70, "k": 33, "beta": [0, 0.5], "bias": [False, True],
                "epilogue": ["none", "relu", "gelu"], "output": ["default", "fp32"]}},
    {"op": "gemm", "mode": ["fp32", "fp32_pedantic"],
     "params": {"m": 65, "n": 70, "k": 33, "beta": [0, 0.5], "bias": [False, True],
                "epilogue": ["none", "relu", "gelu"]}},
    # Codes: one scale each, in every layout, and scales of rows and blocks.
    {"op": "gemm", "mode": ["fp8_e4m3", "fp8_hybrid"],
     "params": {"m": 65, "n": 70, "k": 133, "trans_a": [False, True], "trans_b": [False, True], "bias": [False, True],
                "output": ["default", "fp16", "fp32"]}},
    {"op": "gemm", "mode": ["fp8_e4m3", "fp8_hybrid"],
     "params": {"m": 130, "n": 140, "k": 277, "trans_b": True, "scaling": ["outer_vector", *BLOCKS, "mxfp8"], "alpha": [1, -0.5],
                "output": ["default", "fp32"]}},
    {"op": "gemm", "mode": "fp4_e2m1",
     "params": {"m": 130, "n": 140, "k": 277, "trans_b": True, "scaling": "nvfp4", "alpha": [1, -0.5], "beta": [0, 0.5],
                "output": ["default", "fp16", "fp32"]}},
    # Sums added to D.
    {"op": "gemm", "mode": ["fp32", "bf16", "fp16"],
     "params": {"m": 65, "n": 70, "k": 33, "beta": 1, "in_place": True}},
]
