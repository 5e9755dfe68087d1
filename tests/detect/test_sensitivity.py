"""Faults of a chosen size: they change what they name, of every op, and sensitivity.py finds the smallest that is caught."""

import contextlib
import io
import json
import pathlib
import sys
import unittest

import families
import sensitivity

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "cli"))
from support import PROGRAM, CliTest  # noqa: E402

FAULTS = ("perturb_all", "perturb_noise", "perturb_row", "perturb_tile", "perturb_element")
NAMED = ("perturb_mu", "perturb_rsigma", "perturb_amax")


def gemm(mode):
    return {"op": "gemm", "mode": mode, "backend": "sim", "params": {"m": 96, "n": 80, "k": 64}}


class Sensitivity(CliTest):
    def reported(self, fault, code, *cases):
        self.run_cli("run", self.plan(cases=list(cases)), "--device", "sim:sm_90", "--json", "report.json", "--no-save",
                     "--inject", fault, code=code)
        return json.loads((self.folder / "report.json").read_text())["cases"]

    def test_large_faults_are_caught_and_those_below_the_rounding_change_nothing(self):
        for fault in FAULTS:
            with self.subTest(fault):
                self.reported(fault + "=0.5", 1, gemm("fp32"), gemm("bf16"))
                cases = self.reported(fault + "=1e-12", 0, gemm("fp32"), gemm("bf16"))
                self.assertEqual([case["status"] for case in cases], ["pass", "pass"])

    def test_every_op_with_floating_point_outputs_takes_them(self):
        cases = {}
        for row in families.every_row():
            cases.setdefault(row.case["op"], row.case)
        for case in self.reported("perturb_all=0.5", 1, *cases.values()):
            with self.subTest(case["op"]):
                if case["status"] == "unsupported":
                    self.assertIn("has no floating-point outputs", case["reason"])
                else:
                    self.assertEqual(case["status"], "fail", case["reason"])

    def test_the_outputs_that_a_fault_names_are_changed_and_no_other(self):
        norm = {"op": "layernorm_fwd", "mode": "bf16", "backend": "sim",
                "params": {"rows": 32, "hidden": 64, "output": "fp8_e4m3"}}
        for fault in NAMED:
            with self.subTest(fault):
                (case,) = self.reported(fault + "=0.5", 1, norm)
                outputs = case["runs"][0]["outputs"]
                wrong = {name for name, output in outputs.items() if not all(gate["ok"] for gate in output["criteria"])}
                self.assertEqual(wrong, {{"perturb_amax": "y_amax"}.get(fault, fault.removeprefix("perturb_"))})
                (case,) = self.reported(fault + "=0.5", 4, gemm("bf16"))
                self.assertIn(f"the fault {fault}=0.5 does not apply: the case has no output ", case["reason"])

    def test_the_table_has_the_smallest_fault_that_is_caught(self):
        cases = [gemm("fp32"), gemm("bf16")]
        found = sensitivity.smallest_caught(PROGRAM, cases, "sim:sm_90", "all")
        for case, at in zip(cases, found):
            self.assertLess(sensitivity.SIZES[at], 1e-3)
            for index, status in ((at, "fail"), (at - 1, "pass")):
                ((seen, _),) = sensitivity.run(PROGRAM, [case], "sim:sm_90", f"perturb_all={sensitivity.SIZES[index]:.6g}")
                self.assertEqual(seen, status)

    def test_what_is_listed_is_caught_with_every_seed(self):
        cases = [gemm("fp32"), gemm("bf16")]
        together = sensitivity.largest_of_seeds(PROGRAM, cases, "sim:sm_90", "row", 3)
        alone = [sensitivity.smallest_caught(PROGRAM, [{**case, "seed": seed} for case in cases], "sim:sm_90", "row")
                 for seed in (1, 2, 3)]
        self.assertEqual(together, [max(found) for found in zip(*alone)])

    def test_it_prints_a_table(self):
        out = io.StringIO()
        sys.argv = ["sensitivity.py", "--program", str(PROGRAM), "--quick", "--parts", "all", "row", "--seeds", "2"]
        with contextlib.redirect_stdout(out):
            sensitivity.main()
        lines = out.getvalue().splitlines()
        self.assertEqual(lines[0], "| case | all | row |")
        self.assertEqual(len(lines), 4)


if __name__ == "__main__":
    unittest.main()
