"""Rows whose signs alternate: the natural chain's partial sums stay small, those of a kernel's lanes do not."""

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


if __name__ == "__main__":
    unittest.main()
