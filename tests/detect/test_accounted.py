"""No element goes unjudged in silence: outputs that are garbage must not pass because nothing was asked of them."""

import json
import unittest

from faults import PlantsFaults

SIM = "sim:sm_90"


def case(op, mode, distribution, params, tolerance=None, **inputs):
    made = {"op": op, "mode": mode, "backend": "sim", "params": params,
            "inputs": {"distribution": distribution, **inputs}}
    return {**made, "tolerance": tolerance} if tolerance else made


def gemm(mode, distribution="normal", m=64, n=64, k=64, tolerance=None, params=None, **inputs):
    return case("gemm", mode, distribution, {"m": m, "n": n, "k": k, **(params or {})}, tolerance, **inputs)


SPECIALS = gemm("tf32", "specials", fraction=0.001)
FP16_SUMS = gemm("fp16_acc16", k=4096, sigma=6)
FP32_SPECIALS = gemm("fp32", "specials", fraction=0.1)
NORM = case("layernorm_bwd", "fp32", "log_uniform", {"rows": 64, "hidden": 64}, low=-10, high=66)
OUTLIERS = case("rmsnorm_fwd", "fp32", "outliers", {"rows": 64, "hidden": 64}, fraction=0.5, scale=1e19)
# The squares of most rows overflow.
SQUARES = case("rmsnorm_fwd", "fp32", "normal", {"rows": 64, "hidden": 256}, x={"distribution": "outliers", "scale": 1e19})
CENTRED = {**SQUARES, "op": "layernorm_fwd", "mode": "bf16"}
SOFTMAX = case("softmax_fwd", "fp32", "normal", {"batches": 2, "heads": 2, "sq": 64, "sk": 64, "scale": 1}, sigma=1e8)
OVERFLOWING = gemm("fp16", sigma=1e5)
# With alpha = 0, BLAS does not read A and B, but some kernels of cuBLASLt multiply: then rows that are not finite are NaN.
ALPHA_ZERO = gemm("bf16", params={"alpha": 0, "beta": 1}, a={"distribution": "specials", "fraction": 0.002})
GELU = case("activation_bwd", "fp32", "normal", {"kind": "gelu", "rows": 64, "hidden": 64}, sigma=1e20)

# All scores are nearly the same and large: gradients are differences of next to equal numbers.
CANCELLED = {**case("attention_bwd", "fp16", "large_mean", {"heads": 4, "sq": 128, "sk": 128, "d": 64}), "seed": 185587}

# The largest outputs are 5e37, and sums of products of one sign are not much larger.
LARGE_GELU = {**gemm("fp32", k=256, params={"epilogue": "gelu"}, sigma=1e18), "seed": 11}
# TF32 changes no integer, and alpha only makes products inexact that were exact.
NO_LONGER_EXACT = gemm("tf32", "exact", n=32, k=32, params={"alpha": 0.1, "bias": True})

# The largest finite numbers are FP32's largest, which nothing rounds to infinity.
LARGEST = case("dequantize", "fp32", "specials", {"rows": 2, "cols": 256}, fraction=0.5)
# The largest outputs are 0.9 of FP16's largest number, and errors are far smaller than what is left.
NEAR_THE_LARGEST = {**gemm("fp8_e4m3", n=16, k=272, params={"epilogue": "relu", "output": "fp16"},
                           a={"distribution": "normal", "sigma": 28.25}, b={"distribution": "normal", "sigma": 268.85525}),
                    "seed": 1443152822}
# FP16 holds next to nothing of numbers around 1e-8.
UNDERFLOWING = {**case("gemm", "fp8_e4m3", "normal", {"m": 96, "n": 48, "k": 16, "alpha": 2.4588e-16, "beta": -174.2, "output": "fp16",
                                                      "epilogue": "gelu"},
                       a={"distribution": "normal", "sigma": 5033}, b={"distribution": "normal", "sigma": 3054.5277},
                       c={"distribution": "normal", "sigma": 1.4946406429391504e-10}), "seed": 936881658}
# Keys with outliers: errors of the scores' gradients times them are far above the largest gradient.
BLUNT = {**case("attention_bwd", "fp8_hybrid", "ties", {"batches": 3, "heads": 9, "kv_heads": 3, "sq": 1, "sk": 90, "d": 32,
                                                       "window_left": 31, "layout": "sbhd", "packing": "kv_2hd"},
               k={"distribution": "outliers"}, do={"distribution": "normal"}), "seed": 3919149774}
# Errors of scores may exchange keys, but no mean of values is far from another.
EXCHANGED = {**case("attention_fwd", "fp32", "large_mean",
                    {"batches": 3, "heads": 6, "kv_heads": 2, "sq": 64, "sk": 64, "d": 68, "scale": -0.1, "layout": "bhsd",
                     "mask": "causal_bottom_right", "window_right": 89, "bias": "post_scale", "max_logit": True},
                    mean=512, sigma=0.125), "seed": 3426097296}
# The sum has no products, but C.
ADDEND = gemm("fp32", k=10313, params={"alpha": 0, "beta": 1, "bias": True}, sigma=1e10)

# A small alpha divides no addend, so that none comes near overflow.
LARGE_ADDEND = gemm("fp32", m=32, n=32, params={"trans_b": True, "alpha": 1e-10, "beta": 1e30})
LARGE_BIAS = gemm("bf16", params={"bias": True, "alpha": 1e-10}, bias={"distribution": "normal", "sigma": 1e29})
ZERO_PRODUCTS = gemm("tf32", "constant", m=32, n=32, k=16, params={"alpha": -1e-10, "beta": 1e30, "bias": True}, value=0,
                     c={"distribution": "structured", "period": 64})
# Codes are 448 at most, whatever they were before they were rounded.
SATURATED = [gemm("fp8_e4m3", k=256, params={"trans_b": True, "scaling": scaling}, sigma=10000) for scaling in ("outer_vector", "1x128_1x128")]
# Scales leave no zeros at the end.
SCALED = gemm("fp8_e4m3", k=256, params={"trans_b": True, "scaling": "1x128_1x128", "output": "fp32"})
SCALED_RELU = gemm("fp8_e4m3", k=256, params={"trans_b": True, "scaling": "outer_vector", "output": "fp32", "epilogue": "relu"})
# The largest output is nearly the largest addend.
AMAX = gemm("fp8_e4m3", k=256, params={"output": "fp8_e4m3", "beta": 1}, sigma=0.001, c={"distribution": "normal"})

# Beside one extreme number all other codes of A are 0, which aligns no products.
LONE_CODE = {**gemm("fp8_e4m3", "specials", m=242, n=148, k=256, fraction=1e-4,
                    params={"trans_a": True, "trans_b": True, "bias": True, "output": "fp16"},
                    b={"distribution": "uniform", "low": 5e-31, "high": 1.05e-29}), "seed": 1313348474}

# What used to pass: the fault, and the case that excused it.
GARBAGE = [
    ("all_zero", SOFTMAX),
    ("signs_flipped", SOFTMAX),
    ("all_seven", SOFTMAX),
    ("all_nan", SPECIALS),
    ("all_nan", FP16_SUMS),
    ("all_nan", FP32_SPECIALS),
    ("all_nan", ALPHA_ZERO),
    ("all_seven", NORM),
    ("nan_written", NORM),
    ("all_seven", GELU),
    ("nan_written", LARGE_GELU),
    ("inf_written", LARGE_GELU),
    ("perturb_all=1e-5", NO_LONGER_EXACT),
    ("perturb_row=2e-4", NO_LONGER_EXACT),
    ("all_zero", GELU),
    ("unwritten_tile", OVERFLOWING),
    ("inf_written", LARGEST),
    ("inf_written", NEAR_THE_LARGEST),
    ("element_zero", EXCHANGED),
    ("perturb_all=1e-5", ADDEND),
    ("inf_written", LARGE_ADDEND),
    ("inf_written", LARGE_BIAS),
    ("nan_written", ZERO_PRODUCTS),
    *((fault, saturated) for saturated in SATURATED for fault in ("element_zero", "bit_flip", "perturb_all=0.02")),
    ("tf32_output_in_fp32", SCALED),
    ("bf16_output_in_fp32", SCALED_RELU),
    ("perturb_amax=0.018", AMAX),
    ("perturb_all=0.1", LONE_CODE),
    ("bit_flip", LONE_CODE),
]
# Right results that prove nothing, and why.
EMPTY = [
    (gemm("fp32", m=0), "there are no elements"),
    # rsigma of an infinity is 0: zeros and NaN, whatever they are multiplied by
    ({"op": "rmsnorm_fwd", "mode": "fp32", "backend": "sim", "params": {"rows": 1, "hidden": 256},
      "inputs": {"distribution": "normal", "x": {"distribution": "specials", "fraction": 0.02}}, "seed": 0}, "so passing proves little"),
    (gemm("fp32", sigma=1e-30), "so passing proves little"),  # all results are 0, and so are all fakes
    (OVERFLOWING, "only 0 of 4096 elements are finite"),
    (gemm("fp32", "specials", fraction=0.1), "elements are finite"),
    (OUTLIERS, "every output is expected to be the same number"),
    (gemm("fp32", "large_mean", mean=1000, sigma=1e-3), "every output is expected to be the same number within its error"),
    (UNDERFLOWING, "a relative L2 error of 1 is within the bounds"),
    (CANCELLED, "dq: 1.1 y is within the predicted error"),
    (BLUNT, "dk_amax, a single number, cannot be judged: numbers as large as any of the output are within the bound of its error"),
]


class Accounted(PlantsFaults):
    def status(self, planted, fault=None):
        arguments = ["--inject", fault] if fault else []
        plan = self.plan(cases=[planted])
        self.run_cli("run", plan, "--device", SIM, "--json", "report.json", "--no-save", "--allow-empty", *arguments,
                     code=None)
        (result,) = json.loads((self.folder / "report.json").read_text())["cases"]
        return result

    def test_garbage_does_not_pass(self):
        for fault, planted in GARBAGE:
            with self.subTest(fault=fault, op=planted["op"], mode=planted["mode"]):
                self.assertEqual(self.status(planted, fault)["status"], "fail")

    def test_what_proves_nothing_is_inconclusive(self):
        for planted, words in EMPTY:
            with self.subTest(words):
                result = self.status(planted)
                self.assertEqual(result["status"], "inconclusive")
                self.assertIn(words, result["reason"])

    def test_groups_do_not_vouch_for_each_other(self):
        """As a product by itself, the first one hides errors of a tenth."""
        sizes = {"group_m": "32+48", "group_n": "32+16", "group_k": "96+256"}
        for planted in (gemm("fp8_e4m3", "activations", m=32, n=32, k=96, params={"trans_b": True}, outlier=10000, drift=100),
                        case("grouped_gemm", "fp8_e4m3", "activations", {**sizes, "trans_b": True}, outlier=10000, drift=100)):
            result = self.status(planted)
            self.assertEqual(result["status"], "inconclusive", result["id"])
            self.assertIn("is within the predicted error", result["reason"])

    def test_padding_does_not_hide_that_the_rest_is_one_number(self):
        shape = {"batches": 3, "heads": 2, "sq": 24, "sk": 40, "d": 32}
        large = {"distribution": "large_mean", "mean": 1000, "sigma": 0.01}
        for mask in ("none", "padding"):
            planted = case("attention_fwd", "bf16", "normal", {**shape, "mask": mask}, q=large, k=large, v=large)
            result = self.status(planted)
            self.assertEqual(result["status"], "inconclusive", mask)
            self.assertIn("the same number", result["reason"])

    def test_sums_of_large_terms_are_judged(self):
        result = self.status(FP16_SUMS)
        self.assertEqual(result["status"], "pass", result["reason"])
        self.assertEqual(result["runs"][0]["outputs"]["d"]["metrics"]["judged"], 1)

    def test_operands_that_alpha_0_leaves_unread_excuse_nothing(self):
        result = self.status(ALPHA_ZERO)
        self.assertEqual(result["status"], "pass", result["reason"])
        self.assertEqual(result["runs"][0]["outputs"]["d"]["metrics"]["judged"], 1)

    def test_outputs_that_are_rounded_alike_but_for_zeros_have_no_slope(self):
        """All values are one BF16 number, and what dropout leaves of them is rounded alike."""
        alike = case("attention_fwd", "bf16", "large_mean", {"heads": 4, "kv_heads": 2, "sq": 128, "sk": 1, "d": 64, "dv": 71,
                                                             "scale": 1, "dropout": 0.1}, mean=0.1, sigma=1e-7)
        result = self.status(alike)
        self.assertNotEqual(result["status"], "fail", result["reason"])
        self.assertEqual(self.status(alike, "all_seven")["status"], "fail")

    def test_softmax_of_huge_scores_is_judged(self):
        for fault in (None, "all_zero", "all_seven", "signs_flipped", "last_row_stale", "swapped_rows"):
            with self.subTest(fault=fault):
                result = self.status(SOFTMAX, fault)
                self.assertEqual(result["status"], "fail" if fault else "pass", result["reason"])
                self.assertEqual(result["runs"][0]["outputs"]["y"]["metrics"]["judged"], 1)

    def test_rows_whose_squares_overflow_are_judged(self):
        for planted in (SQUARES, CENTRED):
            for fault in (None, "all_seven", "all_nan", "previous_row_statistics", "perturb_all=1e-2",
                          "swapped_rows", "signs_flipped"):
                with self.subTest(fault=fault, op=planted["op"]):
                    result = self.status(planted, fault)
                    self.assertEqual(result["status"], "fail" if fault else "pass", result["reason"])
                    for port, output in result["runs"][0]["outputs"].items():
                        self.assertEqual(output["metrics"]["judged"], 1, port)

    def test_flushes_explain_only_what_they_may_take(self):
        """Where rsigma^3 may be flushed, and products of it infinite, a result may be far off, but not in any way."""
        flushed = "subnormal numbers are taken for zero"
        for op in ("layernorm_bwd", "rmsnorm_bwd"):
            for mode in ("fp32", "bf16"):
                planted = case(op, mode, "normal", {"rows": 128, "hidden": 256}, x={"distribution": "normal", "sigma": 1e20})
                for fault in ("all_seven", "signs_flipped", "swapped_rows", "perturb_all=1e-3"):
                    with self.subTest(fault=fault, op=op, mode=mode):
                        result = self.status(planted, fault)
                        self.assertEqual(result["status"], "fail", result["reason"])
                        causes = [finding["cause"] for output in result["runs"][0]["outputs"].values()
                                  for finding in output["findings"]]
                        self.assertNotIn(flushed, causes)

    def test_every_element_is_in_the_record(self):
        result = self.status(NORM)
        self.assertEqual(result["status"], "inconclusive")
        metrics = result["runs"][0]["outputs"]["dx"]["metrics"]
        unjudged = metrics["unknown"] + metrics["undetermined"] + metrics["order_dependent"]
        self.assertGreater(unjudged, 0)
        self.assertAlmostEqual(metrics["judged"], 1 - unjudged / metrics["elements"])
        self.assertRegex(result["reason"], r"dx: only [0-9.]+ % of the elements are judged, less than 99 %")

    def test_a_plan_may_ask_for_less_or_more(self):
        self.assertEqual(self.status({**NORM, "tolerance": {"min_judged": 0.01}})["status"], "pass")
        few = gemm("fp32", "specials", m=256, n=256, fraction=0.00002)
        share = self.status(few)["runs"][0]["outputs"]["d"]["metrics"]["judged"]
        self.assertTrue(0.99 <= share < 1, share)
        self.assertEqual(self.status({**few, "tolerance": {"min_judged": 1}})["status"], "inconclusive")

    def test_the_console_says_how_much_was_judged(self):
        plan = self.plan(cases=[NORM])
        for words in ([], ["-vv"]):
            done = self.run_cli("run", plan, "--device", SIM, "--no-save", *words, code=None)
            self.assertRegex(done.stdout, r"judged [0-9]+\.[0-9] %")
        done = self.run_cli("run", self.plan(cases=[gemm("fp32")]), "--device", SIM, "--no-save", "-vv", code=0)
        self.assertNotIn("judged", done.stdout)


if __name__ == "__main__":
    unittest.main()
