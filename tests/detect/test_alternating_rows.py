"""Signs that alternate, singly or in runs. In a row, the natural chain's partial sums stay small, and those of a kernel's lanes do
not; in a product, partial sums may be as large as the sum of the magnitudes, and each is rounded by itself all the same."""

import json
import unittest

from faults import PlantsFaults

SIM = "sim:sm_90"
FAULTS = ("projection_missing", "bf16_output_in_fp32", "perturb_all=1e-6")


def rows(op, hidden, **params):
    return {"op": op, "mode": "fp32", "backend": "sim", "params": {"rows": 1, "hidden": hidden, "epsilon": 0, **params},
            "inputs": {"distribution": "structured", "period": 1}, "seed": 3551078854}


class AlternatingRows(PlantsFaults):
    def result(self, planted, fault=None):
        arguments = ["--inject", fault] if fault else []
        plan = self.plan(cases=[planted])
        self.run_cli("run", plan, "--device", SIM, "--json", "report.json", "--no-save", *arguments, code=None)
        (result,) = json.loads((self.folder / "report.json").read_text())["cases"]
        return result

    def test_clean_gradients_pass(self):
        for op in ("rmsnorm_bwd", "layernorm_bwd"):
            for hidden in (2**19, 2**19 - 2):
                with self.subTest(op=op, hidden=hidden):
                    result = self.result(rows(op, hidden))
                    self.assertEqual(result["status"], "pass", result.get("reason"))

    def test_clean_means_of_short_rows_pass(self):
        """All partial sums of a tree have terms of one sign, until its last step."""
        short = rows("layernorm_fwd", 10, rows=1071, epsilon=1e-30, output="fp8_e4m3")
        shorter = rows("layernorm_fwd", 28, rows=37)
        for planted, seed in ((short, 3313535739), (shorter, 3279911249)):
            with self.subTest(hidden=planted["params"]["hidden"]):
                result = self.result({**planted, "seed": seed})
                self.assertNotEqual(result["status"], "fail", result.get("reason"))
                self.assertEqual(self.result({**planted, "seed": seed}, "last_element_missing")["status"], "fail")

    def test_faults_are_still_caught(self):
        for fault in FAULTS:
            with self.subTest(fault=fault):
                self.assertEqual(self.result(rows("rmsnorm_bwd", 2**14), fault)["status"], "fail")

    def test_means_of_rows_with_runs_of_a_sign_pass(self):
        planted = rows("layernorm_fwd", 4799, zero_centered_gamma=True)
        self.assertEqual(self.result({**planted, "inputs": {"distribution": "structured"}})["status"], "pass")

    def test_products_of_runs_are_judged_as_sharply_as_others(self):
        """With the second operand transposed, all products have one sign."""
        for mode, trans_b, seen in (("fp32", False, "perturb_all=1e-5"), ("fp32", True, "perturb_all=1e-5"),
                                    ("tf32", True, "perturb_all=1e-5"), ("bf16", True, "perturb_all=1e-3")):
            planted = {"op": "gemm", "mode": mode, "backend": "sim",
                       "params": {"m": 64, "n": 64, "k": 4096, "trans_b": trans_b}, "inputs": {"distribution": "structured"}}
            with self.subTest(mode=mode, trans_b=trans_b):
                self.assertEqual(self.result(planted)["status"], "pass")
                self.assertEqual(self.result(planted, seen)["status"], "fail")

    def test_single_products_that_are_no_rounding_are_inconclusive(self):
        """C hides the product, but the class of the operands is asked for by probes."""
        planted = {"op": "gemm", "mode": "tf32", "backend": "sim", "params": {"m": 29, "n": 58, "k": 1, "trans_a": True, "beta": 1},
                   "inputs": {"distribution": "uniform", "low": 0.001, "high": 0.00100390625}, "seed": 2234151204}
        self.assertEqual(self.result(planted)["status"], "pass")
        result = self.result(planted, "scale_half")
        self.assertEqual(result["status"], "inconclusive")
        self.assertIn("which precision ran is not known", result["reason"])


if __name__ == "__main__":
    unittest.main()
