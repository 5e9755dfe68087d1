"""Products whose FP32 operands are rounded to TF32 are judged by what the rounded operands yield: the rounding, which is large,
must not hide errors. The error against the operands as given is still what is reported."""

import json
import unittest

from faults import PlantsFaults

SIM = "sim:sm_90"
SMALL = 1e-5


def gemm(mode, environment=None, **params):
    case = {"op": "gemm", "mode": mode, "backend": "sim", "params": {"m": 128, "n": 128, "k": 1024, **params},
            "inputs": {"distribution": "normal"}, "algorithms": "heuristic"}
    return {**case, "environment": environment} if environment else case


CONVERTED = [gemm("tf32"), gemm("fp32_fast16bf"), gemm("fp32", {"NVIDIA_TF32_OVERRIDE": "1"}), gemm("tf32", alpha=0.3),
             gemm("tf32", epilogue="relu", bias=True), gemm("tf32", beta=1), gemm("tf32", epilogue="gelu", alpha=-0.3, bias=True)]
HIDDEN = {"epilogue": "gelu", "alpha": 1e-8}  # no probe reaches where gelu is straight
# FP32 operands; operands whose rounding no probe shows; integers, which TF32 holds.
AS_GIVEN = [gemm("fp32"), gemm("tf32", {"NVIDIA_TF32_OVERRIDE": "0"}), gemm("tf32", **HIDDEN),
            {**gemm("tf32"), "inputs": {"distribution": "exact"}},
            {**gemm("tf32"), "inputs": {"distribution": "specials"}, "tolerance": {"min_judged": 0}}]


class Converted(PlantsFaults):
    def results(self, cases, *arguments, code):
        plan = self.plan(cases=cases)
        self.run_cli("run", plan, "--device", SIM, "--json", "report.json", "--no-save", *arguments, code=code)
        return json.loads((self.folder / "report.json").read_text())["cases"]

    def test_an_error_far_below_that_of_the_rounding_is_caught(self):
        for part in ("all", "row"):
            with self.subTest(part):
                for result in self.results(CONVERTED, "--inject", f"perturb_{part}={5 * SMALL if part == 'row' else SMALL}", code=1):
                    self.assertEqual(result["status"], "fail", result["id"])

    def test_both_errors_are_in_the_record(self):
        for result in self.results(CONVERTED, code=0):
            with self.subTest(result["id"]):
                self.assertEqual(result["status"], "pass", result["reason"])
                output = result["runs"][0]["outputs"]["d"]
                self.assertTrue(1e-4 < output["metrics"]["rel_l2"] < 5e-4, output["metrics"]["rel_l2"])
                self.assertEqual(output["metrics"]["rel_l2"], output["total_error"]["rel_l2"])
                self.assertLess(output["judged_error"]["error"]["rel_l2"], 1e-5)
                self.assertIn("as the run converted them (TF32, to nearest even)", output["judged_error"]["note"])
                self.assertIn("operands tf32_rne as converted", output["model"])
                self.assertGreater(output["metrics"]["z_rms"], 0.3)

    def test_others_are_judged_by_the_operands_as_given(self):
        for result in self.results(AS_GIVEN, code=0):
            with self.subTest(result["id"]):
                for output in result["runs"][0]["outputs"].values():
                    self.assertIsNone(output["judged_error"])
                    self.assertNotIn("as converted", output["model"])

    def test_operands_that_gelu_hides_may_be_of_every_class_that_the_mode_permits(self):
        hidden = [gemm("fp32_fast16bf", **HIDDEN), gemm("tf32", **HIDDEN)]
        fast, tf32 = self.results(hidden, "--inject", "bf16_inputs", code=1)
        self.assertEqual(fast["status"], "pass", fast["reason"])
        self.assertEqual(tf32["status"], "fail")

    def test_limits_of_the_plan_are_for_the_operands_as_given(self):
        tight = {**gemm("tf32"), "tolerance": {"rel_l2": 1e-4}}
        (result,) = self.results([tight], code=1)
        self.assertIn("rel_l2", result["reason"])


if __name__ == "__main__":
    unittest.main()
