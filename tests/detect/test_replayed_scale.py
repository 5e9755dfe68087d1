"""A wrong scale far below the rounding errors of the arithmetic is caught where the hardware's model explains every bit."""

import unittest

from faults import PlantsFaults, key

SIM = "sim:sm_90"


def gemm(mode, k=1024, algorithms="heuristic", **params):
    return {"op": "gemm", "mode": mode, "backend": "sim", "params": {"m": 128, "n": 96, "k": k, "trans_b": True, **params},
            "inputs": {"distribution": "normal"}, "algorithms": algorithms}


# The factor, less 1, and the case.
CAUGHT = [
    (3e-7, gemm("fp32")),
    (3e-7, gemm("tf32", 4096)),
    (3e-7, gemm("bf16", output="fp32")),
    (5e-4, gemm("fp16_acc16")),
    (5e-4, gemm("fp16_acc16", 4096)),
    (1e-4, gemm("fp8_e4m3")),
    (1e-4, gemm("fp8_e4m3", 4096)),
    (1e-6, gemm("fp8_e4m3", 4096, accumulate="fast", output="fp32")),
    (1e-6, gemm("fp8_e4m3", output="fp32", alpha=0.3, batch=3)),
    (1e-6, gemm("bf16", output="fp32", alpha=-1.7, trans_a=True, trans_b=False, pad_a=8)),
]

# Sums to which something is added; of relu's outputs only those above zero count.
BESIDE = [
    gemm("fp8_e4m3", 4096, bias=True),
    gemm("fp8_e4m3", accumulate="fast", beta=-0.5, bias=True, output="fp16"),
    gemm("fp8_e4m3", 4096, beta=1, output="fp32", accumulate="fast"),
    gemm("fp8_e4m3", bias=True, epilogue="relu", alpha=-2, output="fp16"),
]


def scale_gate(run):
    """None if the arithmetic was not identified."""
    return next((gate for gate in run["outputs"]["d"]["criteria"] if gate["name"] == "G5 scale"), None)


class ReplayedScale(PlantsFaults):
    def test_a_wrong_scale_is_caught(self):
        for size, planted in CAUGHT:
            with self.subTest(size=size, mode=planted["mode"], params=planted["params"]):
                (run,) = self.run_cases([planted], SIM, "--inject", f"perturb_all={size}", code=1)[key(planted)]["runs"]
                gate = scale_gate(run)
                self.assertFalse(gate["ok"])
                self.assertAlmostEqual(gate["measured"] / size, 1, delta=0.1)
                self.assertRegex(gate["source"], r"^[0-9]+ of 1024 outputs have the bits of sm_90 .*, "
                                                 r"1024 with all sums multiplied by 1 \+ ")

    def test_the_same_cases_pass_without_a_fault(self):
        for result in self.run_cases([planted for _, planted in CAUGHT], SIM, code=0).values():
            self.assertEqual(result["status"], "pass", result["reason"])
            gate = scale_gate(result["runs"][0])
            self.assertEqual(gate["measured"], 0)
            self.assertIn("1024 of 1024 outputs have the bits of sm_90", gate["source"])

    def test_the_scale_of_sums_is_seen_beside_what_is_added(self):
        for case in BESIDE:
            with self.subTest(params=case["params"]):
                (clean,) = self.run_cases([case], SIM, code=0)[key(case)]["runs"]
                self.assertEqual(scale_gate(clean)["measured"], 0)
                (wrong,) = self.run_cases([case], SIM, "--inject", "scale_1_01", code=1)[key(case)]["runs"]
                self.assertFalse(scale_gate(wrong)["ok"])
                self.assertAlmostEqual(scale_gate(wrong)["measured"], 0.01, delta=1e-3)

    def test_slices_are_found(self):
        planted = gemm("fp16_acc16", algorithms="all")
        runs = self.run_cases([planted], SIM, code=0)[key(planted)]["runs"]
        for run, words in zip(runs, ("unsplit", "split-K 2", "split-K 4"), strict=True):
            self.assertTrue(scale_gate(run)["source"].endswith(words), scale_gate(run))

    def test_nothing_is_claimed_where_the_output_hides_the_arithmetic_or_more_follows(self):
        cases = [gemm("bf16"), gemm("fp16_acc16", beta=0.5), gemm("fp16_acc16", epilogue="relu"), gemm("fp16_acc16", bias=True)]
        for result in self.run_cases(cases, SIM, code=0).values():
            self.assertIsNone(scale_gate(result["runs"][0]))

    def test_other_arithmetic_is_not_identified(self):
        planted = gemm("fp8_e4m3", 4096, output="fp32")
        for fault in ("perturb_noise=1e-3", "promotion_512"):
            with self.subTest(fault):
                (run,) = self.run_cases([planted], SIM, "--inject", fault, code=None)[key(planted)]["runs"]
                self.assertIsNone(scale_gate(run))


if __name__ == "__main__":
    unittest.main()
