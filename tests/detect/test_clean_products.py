"""Right products of operands that hardly vary, or that a few numbers dominate, and of numbers next to zero: each of these failed
a gate that took what their sums share for a fault."""

import unittest

from faults import PlantsFaults

SIM = "sim:sm_90"


def case(mode, sizes, a, b, seed, op="gemm", **params):
    m, n, k = sizes
    return {"op": op, "mode": mode, "backend": "sim", "params": {"m": m, "n": n, "k": k, **params},
            "inputs": {"distribution": "normal", "a": a, "b": b}, "seed": seed}


def fp8(sizes, a, b, seed, mode="fp8_e4m3", output="fp32", **params):
    return case(mode, sizes, a, b, seed, trans_b=True, output=output, **params)


def near(mean, sigma):
    return {"distribution": "large_mean", "mean": mean, "sigma": sigma}


def drifting(drift, sink=0, rank=4, noise=0.1, outlier=1, every=17):
    return {"distribution": "activations", "rank": rank, "noise": noise, "drift": drift, "sink": sink, "outlier": outlier,
            "outlier_every": every}


# A row or column of few different codes loses about the same of all its sums.
FEW_CODES = [
    fp8((320, 64, 256), near(1.99, 0.0199), drifting(100, noise=0, every=200), 749529, output="fp16"),
    fp8((256, 32, 384), near(1.5, 0.015), drifting(-100, 30, rank=1, every=3), 481613),
    fp8((320, 32, 128), near(3.3, 0.033), drifting(30, 30, noise=0), 320107),
    fp8((320, 64, 384), drifting(-100, rank=2), near(1.3, 0.013), 94117),
    fp8((256, 128, 512), drifting(-100, noise=0, outlier=20), near(3.3, 0.033), 319274, "fp8_hybrid", scaling="128x128_1x128"),
    fp8((256, 128, 128), drifting(10, -3, every=3), near(1.3, 0.039), 178736, "fp8_hybrid", scaling="128x128_1x128"),
]
# Their sums, times scales of all bits, end in zeros more often than by chance.
ZEROS_AT_THE_END = [
    fp8((128, 256, 128), near(1.5, 0.0015), drifting(10, -3, rank=1, noise=0, outlier=20, every=3), 618769, scaling="128x128_1x128"),
    fp8((512, 256, 512), near(3.3, 0.0033), drifting(10, -3, rank=2), 524506, scaling="128x128_1x128"),
    fp8((48, 48, 16), {"distribution": "rows", "low": -40, "high": 0}, {"distribution": "outliers", "fraction": 0.1, "scale": 1e8}, 30162,
        "fp8_hybrid", scaling="outer_vector", accumulate="fast", bias=True, epilogue="relu"),
]
# A row with the sink, or two or three outliers, decides what all other products lose.
DOMINATED = [
    case("tf32", (128, 256, 64), {"distribution": "uniform", "low": 9, "high": 11}, drifting(100, 1e6, noise=1, every=3), 856179),
    case("tf32", (64, 128, 64), drifting(100, 1e6, noise=1, every=200), {"distribution": "uniform", "low": 9.9, "high": 10.1}, 891089,
         trans_a=True, trans_b=True),
    fp8((41, 96, 336), *[drifting(-8, 40, rank=64, noise=0.5, outlier=100, every=7)] * 2, 5, accumulate="fast"),
    {"op": "grouped_gemm", "mode": "fp16", "backend": "sim",
     "params": {"group_m": "16+88", "group_n": "8+80", "group_k": "18", "groups": 2, "output": "fp32"},
     "inputs": drifting(-8, 40, rank=64, noise=0.5, outlier=100, every=7), "seed": 3350422030},
]
# gelu of it is 0 or next to it, and so are all sums of y^2 / V.
NEXT_TO_ZERO = [
    case("fp32_pedantic", (54, 3, 5), *[{"distribution": "constant", "value": 1e-40}] * 2, 2328252704, trans_a=True, alpha=-1e20,
         epilogue="gelu"),
    case("fp32", (15, 31, 2), {"distribution": "uniform", "low": 100, "high": 125}, {"distribution": "log_uniform", "low": -149, "high": -126},
         3923726556, trans_a=True, trans_b=True, alpha=1e-30, epilogue="gelu"),
]
# All results beside C are a few numbers.
NEARLY_CONSTANT = {"op": "grouped_gemm", "mode": "fp32", "backend": "sim",
                   "params": {"group_m": "32+80+0", "group_n": "94+29+69", "group_k": "108+96+44", "groups": 3, "trans_b": True, "beta": 1},
                   "inputs": near(-0.01, 1e-9), "seed": 3952131013}
# Sums of zeros of either sign.
HADAMARD = {"op": "quantize", "mode": "bf16", "backend": "sim",
            "params": {"rows": 16, "cols": 65536, "recipe": "nvfp4", "format": "fp4_e2m1", "layout": "both", "hadamard": True,
                       "block_shape": "1x16"},
            "inputs": {"distribution": "log_uniform", "low": -149, "high": -126}, "seed": 616282994}

# Results beyond FP32: their amax is infinite.
OVERFLOWING = [
    fp8((4, 16, 64), *[{"distribution": "log_uniform", "low": -126, "high": 126}] * 2, 0, output="fp8_e4m3"),
    fp8((4, 16, 64), *[{"distribution": "log_uniform", "low": -126, "high": 126}] * 2, 3, output="fp8_e4m3"),
    {"op": "grouped_gemm", "mode": "fp8_e4m3", "backend": "sim",
     "params": {"group_m": "4+64", "group_n": "16", "group_k": "64", "groups": 2, "trans_b": True, "output": "fp8_e4m3"},
     "inputs": {"distribution": "log_uniform", "low": -126, "high": 126}, "seed": 4114492780},
]


class CleanProducts(PlantsFaults):
    def check(self, cases):
        for result in self.run_cases(cases, SIM, code=None).values():
            self.assertIn(result["status"], ("pass", "inconclusive"), f"{result['id']}: {result['reason']}")

    def test_lines_of_few_different_codes(self):
        self.check(FEW_CODES)

    def test_zeros_at_the_end_of_scaled_sums(self):
        self.check(ZEROS_AT_THE_END)

    def test_sums_that_a_few_products_dominate(self):
        self.check(DOMINATED)

    def test_gelu_of_next_to_nothing(self):
        self.check(NEXT_TO_ZERO)

    def test_sums_that_are_nearly_constant_beside_c(self):
        self.check([NEARLY_CONSTANT])

    def test_amaxes_of_products_that_overflow(self):
        self.check(OVERFLOWING)

    def test_hadamard_sums_of_zeros(self):
        self.check([HADAMARD])


if __name__ == "__main__":
    unittest.main()
