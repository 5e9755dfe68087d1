"""Products of several sizes in one call: whether each group gets its own operands, sizes and output."""

from drawing import Clean
from families import SEEN, Row

UNWRITTEN = ["G0 pattern"]
SIZES = {"group_m": "48+48+0+64+33", "group_n": "40+40+40+64+20", "group_k": "64+64+64+96+50"}


def grouped(mode="bf16", distribution="normal", inputs=(), **params):
    """Two groups of equal shape, an empty one, a square one, and a last one of no even size."""
    return {
        "op": "grouped_gemm",
        "mode": mode,
        "backend": "sim",
        "params": {**SIZES, **params},
        "inputs": {"distribution": distribution, **dict(inputs)},
    }


# FP8 products are judged by their own terms, however large what is added to them.
def beside(**inputs):
    return grouped("fp8_e4m3", inputs=inputs, trans_b=True, beta=1, output="fp32")


# The second of three has nothing to add up.
NO_PRODUCTS = {"group_m": "32+24+16", "group_n": "16+40+32", "group_k": "64+0+64"}

LINE_SCALES = ("outer_vector", "1x128_1x128", "1x128_128x128", "128x128_1x128", "mxfp8")

FAULTS = [
    ("group_off_by_one", grouped(), ["G1 bound"]),
    ("group_off_by_one", grouped("fp32", trans_a=True), ["G1 bound"]),
    ("group_off_by_one", grouped(distribution="exact"), ["exact"]),
    # One wrong element among 64 groups, each of them a single number.
    ("group_off_by_one", grouped("fp16", group_m="4+" * 62 + "1+1", group_n="4+" * 62 + "1+1", group_k=64), ["G1 bound"]),
    ("first_group_b", grouped("fp16"), ["G1 bound"]),
    ("first_group_b", grouped("fp8_e4m3", trans_b=True), ["G1 bound"]),
    ("first_group_k", grouped("fp16"), ["G1 bound"]),
    ("first_group_k", grouped("bf16", group_m=24, group_n=32, group_k="64+0+65", trans_a=True), ["G1 bound"]),
    ("groups_after_empty_missing", grouped(), UNWRITTEN),
    ("groups_after_empty_missing", grouped("tf32"), UNWRITTEN),
    ("k0_group_unwritten", grouped(**NO_PRODUCTS), UNWRITTEN),
    ("k0_group_unwritten", grouped("fp32", **NO_PRODUCTS, beta=1), UNWRITTEN),
    ("k0_group_stale", grouped(**NO_PRODUCTS), ["G1 bound"]),
    ("k0_group_stale", grouped("fp16", "exact", **NO_PRODUCTS), ["exact"]),
    ("last_group_missing", grouped(), UNWRITTEN),
    ("last_group_missing", grouped("fp32", groups=64, group_m=8, group_n=8, group_k=16), UNWRITTEN),
    ("last_group_k_tail", grouped(), ["G1 bound"]),
    ("last_group_k_tail", grouped("fp32", trans_b=True), ["G1 bound"]),
    Row("last_group_k_tail", grouped(trans_a=True, output="fp32"), ["G1 bound"], named="the last 1 of k is missing"),
    ("last_group_k_tail", grouped("fp8_hybrid", trans_b=True, accumulate="split"), ["G1 bound", "G2 rms"]),
    ("square_group_transposed", grouped(), ["G1 bound"]),
    ("square_group_transposed", grouped("fp16", beta=0.5), ["G1 bound"]),
    ("group_products_rounded", grouped(beta=1), ["G1 bound", "G4 flips"]),
    ("group_products_rounded", grouped("fp16", beta=-1), ["G1 bound", "G4 flips"]),
    ("last_group_k_tail", grouped(beta=1, in_place=True), ["G1 bound"]),
    ("last_group_k_tail", beside(c4={"distribution": "uniform", "low": 5e5, "high": 1e6}), ["G1 bound", "G2 rms"]),
    *[(fault, grouped("fp8_e4m3", trans_b=True, accumulate="split", group_k=k, output=output), ["class"])
      for fault in ("fast_accumulation", "last_group_fast") for k in ("272", "64+129+64+128+144") for output in ("bf16", "fp32")],
    ("group_off_by_one", beside(c0={"distribution": "normal", "sigma": 1e5}, c1={"distribution": "normal", "sigma": 1e5}), ["G1 bound"]),
    # What comes after the sums, and scales that groups have of their own.
    *[("group_off_by_one", grouped(mode, bias=True, epilogue=epilogue), ["G1 bound"])
      for mode, epilogue in (("bf16", "none"), ("fp16", "gelu"), ("fp32", "relu"))],
    ("last_group_k_tail", grouped("bf16", bias=True, epilogue="gelu"), ["G1 bound"]),
    ("k0_group_unwritten", grouped(**NO_PRODUCTS, bias=True), UNWRITTEN),
    ("k0_group_stale", grouped(**NO_PRODUCTS, bias=True, epilogue="gelu"), ["G1 bound"]),
    *[("group_off_by_one", grouped("fp8_e4m3", trans_b=True, scaling=scaling), ["G1 bound"]) for scaling in LINE_SCALES[:-1]],
    *[("last_group_k_tail", grouped("fp8_hybrid", trans_b=True, scaling=scaling, group_k="64+64+64+96+257"), ["G1 bound", "G2 rms", "G4 element"])
      for scaling in LINE_SCALES[1:-1]],
    Row("group_off_by_one", grouped("fp8_e4m3", trans_b=True, scaling="mxfp8"), ["G1 bound"], device="sim:sm_100"),
    Row("first_group_b", grouped("fp4_e2m1", trans_b=True, scaling="nvfp4"), ["G1 bound"], device="sim:sm_100"),
    *[("first_group_bias", grouped(mode, bias=True, epilogue=epilogue), ["G1 bound"])
      for mode, epilogue in (("bf16", "none"), ("fp16", "gelu"), ("tf32", "relu"))],
    ("first_group_bias", grouped(**NO_PRODUCTS | {"group_n": 16}, bias=True), ["G1 bound"]),
    ("first_group_bias", grouped("bf16", "exact", bias=True), ["exact"]),
    ("first_group_scales", grouped("fp8_e4m3", trans_b=True), ["G1 bound"]),
    *[("first_group_scales", grouped("fp8_hybrid", trans_b=True, scaling=scaling), ["G1 bound"]) for scaling in LINE_SCALES[:-1]],
    Row("first_group_scales", grouped("fp8_e4m3", trans_b=True, scaling="mxfp8"), ["G1 bound"], device="sim:sm_100"),
    Row("first_group_scales", grouped("fp4_e2m1", trans_b=True, scaling="nvfp4"), ["G1 bound"], device="sim:sm_100"),
    ("last_group_tf32", grouped("fp32"), SEEN),
    ("last_group_tf32", grouped("fp32_pedantic", group_m="64+32", group_n=32, group_k="64+1024"), SEEN),
]

REFUSED = [
    ("group_off_by_one", grouped(group_m="32+33"), "no group has the shape of the one before"),
    ("first_group_k", grouped(group_k=64), "no group has a longer sum than the first one"),
    ("groups_after_empty_missing", grouped(**NO_PRODUCTS), "no group follows an empty one"),
    ("k0_group_stale", grouped(), "all groups have products"),
    ("first_group_bias", grouped(), "no other group has a bias of the length of the first one's"),
    ("first_group_bias", grouped(bias=True, group_n="40+8+8+8+8"), "no other group has a bias of the length of the first one's"),
    ("first_group_scales", grouped(), "no other group has as many scales of its operands as the first one"),
    ("first_group_scales", grouped("fp8_e4m3", trans_b=True, scaling="1x128_1x128", group_m="48+0+0+64+33"),
     "no other group has as many scales of its operands as the first one"),
    ("last_group_tf32", grouped("bf16"), "there are no FP32 products"),
    *[(fault, grouped("fp8_e4m3", trans_b=True, accumulate="fast", group_k=272), "no FP8 sums are promoted")
      for fault in ("fast_accumulation", "last_group_fast")],
    ("fast_accumulation", grouped("fp8_e4m3", trans_b=True, group_k=128), "no FP8 sums are promoted"),
]
REFUSED[0][1]["params"].update(group_n=16, group_k=16)

MODES = ("fp32", "tf32", "bf16", "fp16", "fp8_e4m3", "fp8_hybrid", "fp4_e2m1")


def sizes(rng, groups, most, empty):
    """A list of sizes, or one for all."""
    if rng.random() < 0.3:
        return str(rng.randint(1, most))
    return "+".join(str(0 if rng.random() < empty else rng.choice([rng.randint(1, most), 8 * rng.randint(1, most // 8)]))
                    for _ in range(groups))


def groups(rng, _shape, mode):
    count = rng.choice([1, 2, 3, rng.randint(2, 8), rng.randint(8, 64)])
    most = 96 if count <= 8 else 24
    empty = rng.choice([0, 0.2])
    beta = rng.choice([0, 0, 1, 0.5])
    params = {"group_m": sizes(rng, count, most, empty), "group_n": sizes(rng, count, most, 0), "group_k": sizes(rng, count, 4 * most, empty),
              "groups": count, "trans_a": rng.random() < 0.5, "trans_b": rng.random() < 0.5, "beta": beta,
              "alpha": rng.choice([1, 1, 1, -0.5, 3]), "in_place": beta != 0 and rng.random() < 0.5}
    params["bias"] = rng.random() < 0.3
    params["epilogue"] = rng.choice(["none", "none", "relu", "gelu"])
    if mode in ("bf16", "fp16") and rng.random() < 0.2:
        params["output"] = "fp32"
    if mode.startswith("fp8"):
        params["accumulate"] = rng.choice(["split", "fast"])
        params["output"] = rng.choice(["default", "fp32", "fp16"])
        if rng.random() < 0.4:
            params |= block_scales(rng, params)
    if mode == "fp4_e2m1":
        params |= {"trans_a": False, "trans_b": True, "scaling": "nvfp4", "output": rng.choice(["default", "fp32", "fp16"])}
    return params


def block_scales(rng, params):
    """Scales of rows or blocks, for operands that are stored with k within rows."""
    scaling = rng.choice(LINE_SCALES)
    return {"scaling": scaling, "trans_a": False, "trans_b": True, "power_of_two": scaling != "mxfp8" and rng.random() < 0.3,
            "accumulate": params["accumulate"] if scaling == "outer_vector" else "split"}


def avoid_overflow(case):
    """Accumulating in place, and before an epilogue, cuBLAS rounds a product to FP16: infinities where the sum itself is finite."""
    params = case["params"]
    if (params["in_place"] or params["bias"] or params["epilogue"] == "gelu") and "fp16" in (case["mode"], params.get("output")):
        case["inputs"] = {"distribution": "normal"}


def whole_fp8_rows(case):
    """cuBLASLt multiplies FP8 as A B^T, with rows of whole 16 bytes, and FP4 from sm_100 on only."""
    params = case["params"]
    if case["mode"] == "fp4_e2m1":
        case["mode"] = "fp8_e4m3"
        params.pop("scaling", None)
    if case["mode"].startswith("fp8"):
        params.update(trans_a=False, trans_b=True)
        if params.get("scaling") == "mxfp8":  # from sm_100 on
            params["scaling"] = "1x128_128x128"
        for name in ("group_m", "group_n", "group_k"):
            params[name] = "+".join(str(16 * (int(size) // 16 + 1)) for size in params[name].split("+"))


def te_limits(case, rng):
    """No factors, no groups without products."""
    params = case["params"]
    if case["mode"] == "fp32":
        case["mode"] = "tf32"
    params["alpha"] = 1
    params["beta"] = 1 if params["beta"] != 0 else 0
    params["in_place"] = params["beta"] != 0
    params["group_k"] = "+".join("16" if size == "0" else size for size in params["group_k"].split("+"))
    if params["epilogue"] == "relu":
        params["epilogue"] = "gelu"
    whole_fp8_rows(case)
    if "scaling" in params:
        params["epilogue"] = "none"
        params["accumulate"] = "split"
        if params["scaling"] == "outer_vector":
            params["scaling"] = "1x128_1x128"


def cublaslt_limits(case, rng):
    whole_fp8_rows(case)


def cublas_limits(case, rng):
    """FP8 is refused; outputs have the operands' format, D is C's place, and nothing is done to it."""
    params = case["params"]
    if case["mode"].startswith(("fp8", "fp4")):
        case["mode"] = rng.choice(["fp32", "tf32", "bf16", "fp16"])
    for name in ("accumulate", "scaling", "power_of_two", "output"):
        params.pop(name, None)
    params["bias"], params["epilogue"] = False, "none"
    params["in_place"] = params["beta"] != 0


CLEAN = {"grouped_gemm": Clean(groups, te_limits, cublas_limits=cublas_limits, cublaslt_limits=cublaslt_limits, modes=MODES,
                               avoid=avoid_overflow,
                               may_warn=("cublas", "cublaslt", "transformer_engine"))}

PATHS = [
    # Whole and ragged tiles, empty groups, groups without products.
    {"op": "grouped_gemm", "mode": ["fp32", "bf16", "fp16"],
     "params": {"group_m": "64+0+130", "group_n": "128+64+67", "group_k": ["48+48+77", "0+16+31"], "trans_a": [False, True],
                "trans_b": [False, True]}},
    # Addends, beside D and in it; outputs wider than the inputs; as many groups as there may be.
    {"op": "grouped_gemm", "mode": ["bf16", "fp16"],
     "params": {"group_m": "65+3", "group_n": 70, "group_k": "33+0", "beta": [0, 0.5], "output": ["default", "fp32"]}},
    # Biases and epilogues of groups; codes, in all layouts and with every kind of scales.
    {"op": "grouped_gemm", "mode": ["fp32", "bf16"],
     "params": {"group_m": "65+0+3", "group_n": "70+8+5", "group_k": "33+9+0", "bias": True, "epilogue": ["none", "relu", "gelu"]}},
    {"op": "grouped_gemm", "mode": ["fp8_e4m3", "fp8_hybrid"],
     "params": {"group_m": "65+3", "group_n": 70, "group_k": "133+0", "trans_a": [False, True], "trans_b": [False, True],
                "output": ["default", "fp32"]}},
    {"op": "grouped_gemm", "mode": "fp8_e4m3",
     "params": {"group_m": "65+130", "group_n": "70+200", "group_k": "300+128", "trans_b": True, "bias": True,
                "scaling": list(LINE_SCALES), "output": ["default", "fp16"]}},
    {"op": "grouped_gemm", "mode": "fp4_e2m1",
     "params": {"group_m": "65+3", "group_n": 70, "group_k": "133+48", "trans_b": True, "scaling": "nvfp4"}},
    {"op": "grouped_gemm", "mode": ["fp32", "fp32_pedantic"],
     "params": {"group_m": 5, "group_n": 70, "group_k": 33, "groups": [1, 64], "beta": 0.5, "in_place": [False, True]}},
]
