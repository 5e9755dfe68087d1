"""Errors that arise before the output is rounded to 16 or 8 bits are caught far below that rounding, by the results that are
not the nearest number, and by the side to which they are off."""

import unittest

from faults import PlantsFaults, first_failing, key

SIM = "sim:sm_90"


def case(op, mode, **params):
    return {"op": op, "mode": mode, "backend": "sim", "params": params, "inputs": {"distribution": "normal"},
            "algorithms": "heuristic"}


def gemm(mode, k, n=256, **params):
    return case("gemm", mode, m=128, n=n, k=k, trans_b=True, **params)


def attention(op, mode, **params):
    return case(op, mode, batches=4, d=64, **params)


# Relative size, too small for every other gate, and the case.
NOISE = [
    (1.6e-5, gemm("fp16", 4096)),
    (2e-3, gemm("fp8_e4m3", 1024, output="fp8_e4m3")),
    (3e-3, gemm("fp8_e4m3", 1024, accumulate="fast", output="bf16")),
    (5e-3, gemm("fp8_e4m3", 4096, accumulate="fast", output="fp8_e4m3")),
]
# The first gate that sees it; too little for any of them before flips were looked at.
SCALES = [
    ("G3 slope", 2e-5, gemm("fp16", 4096)),
    ("G3 slope", 8e-6, gemm("bf16", 1024, n=1024)),
    ("G3 slope", 2e-3, gemm("fp8_e4m3", 1024, output="fp8_e4m3")),
    # No sum is so negative that 1 + tanh loses it.
    ("G3 slope", 5e-5, {**gemm("bf16", 1024, n=1024, epilogue="gelu"), "inputs": {"distribution": "normal", "sigma": 0.18}}),
    ("G3 slope", 6e-3, attention("attention_fwd", "fp8_e4m3", heads=16, sq=7, sk=200)),
    ("G3 slope", 4e-3, attention("attention_fwd", "fp8_hybrid", heads=4, sq=256, sk=256)),
    ("G3 slope", 8e-3, attention("attention_bwd", "fp8_e4m3", heads=4, sq=256, sk=256)),
    ("G4 flips", 5e-6, case("softmax_fwd", "bf16", batches=1, heads=2, sq=128, sk=256)),
]


def failing(run):
    return {gate["name"] for gate in run["outputs"]["d"]["criteria"] if not gate["ok"]}


class Flips(PlantsFaults):
    def run_of(self, planted, code, *arguments):
        (run,) = self.run_cases([planted], SIM, *arguments, code=code)[key(planted)]["runs"]
        return run

    def test_noise_that_no_other_gate_sees_is_caught(self):
        for size, planted in NOISE:
            with self.subTest(size=size, mode=planted["mode"], params=planted["params"]):
                self.assertEqual(failing(self.run_of(planted, 1, "--inject", f"perturb_noise={size}")), {"G4 flips"})

    def test_a_wrong_scale_shows_in_the_number_of_flips_or_in_their_slope(self):
        for gate, size, planted in SCALES:
            with self.subTest(size=size, op=planted["op"], mode=planted["mode"], params=planted["params"]):
                self.assertEqual(first_failing(self.run_of(planted, 1, "--inject", f"perturb_all={size}")), gate)

    def test_the_rate_that_is_predicted_is_about_the_one_that_is_measured(self):
        for mode, params in (("fp16", {}), ("fp8_e4m3", {"output": "bf16"}), ("fp8_e4m3", {"output": "fp8_e4m3"})):
            with self.subTest(mode=mode, params=params):
                metrics = self.run_of(gemm(mode, 1024, n=512, **params), 0)["outputs"]["d"]["metrics"]
                self.assertGreater(metrics["flip_rate"], 0.2 * metrics["flip_rate_predicted"])
                self.assertLess(metrics["flip_rate"], 1.2 * metrics["flip_rate_predicted"])
        wide = self.run_of(gemm("bf16", 64, output="fp32"), 0)["outputs"]["d"]["metrics"]
        self.assertIsNone(wide["flip_rate_predicted"])

    def test_the_same_cases_pass_without_a_fault(self):
        for result in self.run_cases([planted for *_, planted in NOISE + SCALES], SIM, code=0).values():
            self.assertEqual(result["status"], "pass", result["reason"])


if __name__ == "__main__":
    unittest.main()
