"""Planted faults in softmax and its gradient are caught by the gates meant for them; without a fault the same cases pass.

Each row: fault, the case that makes it visible, and the gates of which one must fail first (of any output)."""

import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "cli"))
from support import CliTest  # noqa: E402

SIM = ["--device", "sim:sm_90"]
SEEN = ["G1 bound", "G2 rms", "G2 q999", "G2 max"]
ROUNDING = SEEN + ["G3 slope", "G4 ratio", "G4 element"]


def case(op, mode, distribution="normal", inputs=None, **params):
    return {
        "op": op,
        "mode": mode,
        "backend": "sim",
        "params": {"batches": 2, "heads": 2, "sq": 24, "sk": 96, "scale": 0.13, **params},
        "inputs": {"distribution": distribution, **(inputs or {})},
    }


def fwd(mode="fp32", **rest):
    return case("softmax_fwd", mode, **rest)


def bwd(mode="fp32", **rest):
    return case("softmax_bwd", mode, **rest)


MASKED = {"mask": "arbitrary"}
INFINITE = {"masked_value": "minus_infinity"}
CAUSAL = {"mask": "causal"}
BOTTOM = {"mask": "causal_bottom_right"}
TALL = {"mask": "causal_bottom_right", "sq": 24, "sk": 17}  # its first seven rows are masked altogether

FAULTS = [
    # scores
    ("softmax_scale_missing", fwd(), SEEN),
    ("softmax_scale_missing", fwd("bf16"), SEEN),
    ("softmax_scale_missing", bwd("fp16"), SEEN),
    ("softmax_scale_1_01", fwd(), SEEN),
    ("softmax_scale_1_01", fwd("bf16", scale=1.3), SEEN),
    ("softmax_scale_1_01", fwd("fp16", **MASKED), SEEN),
    ("softmax_scale_fp32", fwd("bf16"), SEEN),
    ("softmax_scale_fp32", fwd("fp16", scale=1.3), SEEN),
    ("softmax_scale_rounded", bwd("bf16"), ROUNDING),
    ("softmax_scale_rounded", bwd("fp16"), ROUNDING),
    ("bf16_exponent_argument", fwd(), SEEN),
    ("bf16_exponent_argument", fwd("bf16", scale=1.3), SEEN),
    ("no_max_subtraction", fwd(distribution="large_mean", scale=1), ["G0 pattern"]),
    ("no_max_subtraction", fwd("bf16", distribution="large_mean", scale=1), ["G0 pattern"]),
    # masks
    ("mask_off_by_one", fwd(**MASKED), SEEN),
    ("mask_off_by_one", fwd("bf16", **CAUSAL), SEEN),
    ("mask_off_by_one", fwd("fp16", **BOTTOM), SEEN),
    ("mask_off_by_one", fwd(**BOTTOM, **INFINITE), SEEN),
    ("mask_off_by_one", bwd("bf16", **CAUSAL), SEEN),
    ("mask_off_by_one", bwd(**BOTTOM), SEEN),
    ("top_left_mask", fwd("bf16", **BOTTOM), SEEN),
    ("top_left_mask", fwd(**TALL), SEEN),
    ("masked_row_kept", fwd("bf16", **MASKED), SEEN),
    ("masked_row_kept", fwd(**MASKED, **INFINITE), ["G0 pattern"]),
    ("masked_row_kept", fwd(**TALL), SEEN),
    # sums
    ("last_column_missing", fwd(), SEEN),
    ("last_column_missing", fwd("bf16"), SEEN),
    ("last_column_missing", fwd("fp16", sk=4096), SEEN + ["G3 slope"]),
    ("last_column_missing", bwd(), SEEN),
    ("last_column_missing", bwd("bf16"), SEEN),
    ("bf16_row_sum", fwd(), SEEN),
    ("bf16_row_sum", fwd("bf16"), SEEN + ["G3 slope"]),
    ("bf16_row_sum", bwd(), SEEN),
    ("bf16_row_sum", bwd("fp16"), SEEN),
    ("row_sum_missing", bwd(), SEEN),
    ("row_sum_missing", bwd("bf16"), SEEN),
    ("sum_of_dy", bwd(), SEEN),
    ("sum_of_dy", bwd("fp16", **CAUSAL), SEEN),
    # stores
    ("truncated_output", fwd("bf16"), ROUNDING),
    ("truncated_output", bwd("fp16"), ROUNDING),
    ("double_rounded_output", fwd("bf16", sq=256, sk=256), ROUNDING),
    ("double_rounded_output", bwd("bf16", sq=256, sk=256), ROUNDING),
    ("bf16_output_in_fp32", fwd(), SEEN),
    ("bf16_output_in_fp32", bwd(), SEEN),
    ("output_scale_1_01", fwd("bf16"), ROUNDING),
    ("output_scale_1_01", bwd(), ROUNDING),
    ("nan_dropped", fwd(distribution="specials"), ["G0 pattern"]),
    ("nan_dropped", bwd("bf16", distribution="specials"), ["G0 pattern"]),
    ("last_row_stale", fwd("bf16"), SEEN),
    ("last_row_stale", bwd(), SEEN),
]

# Faults that the row sums must see, too: what is wrong with the denominator.
ROW_SUMS = [
    ("last_column_missing", fwd()),
    ("last_column_missing", fwd("bf16")),
    ("bf16_row_sum", fwd()),
    ("output_scale_1_01", fwd()),
]


class Faults(CliTest):
    def run_case(self, case, *arguments, code):
        plan = self.plan(cases=[case])
        self.run_cli("run", plan, *SIM, "--json", "report.json", "--no-save", *arguments, code=code)
        return json.loads((self.folder / "report.json").read_text())["cases"][0]

    def test_each_fault_is_caught_by_its_gate(self):
        for fault, case, gates in FAULTS:
            with self.subTest(fault=fault, op=case["op"], mode=case["mode"], params=case["params"]):
                result = self.run_case(case, "--inject", fault, code=1)
                self.assertEqual(result["status"], "fail")
                first = [
                    next(gate["name"] for gate in output["criteria"] if not gate["ok"])
                    for run in result["runs"]
                    for output in run["outputs"].values()
                    if not all(gate["ok"] for gate in output["criteria"])
                ]
                self.assertTrue(set(first) & set(gates), f"{fault}: {first} failed, not {gates}")

    def test_row_sums_see_a_wrong_denominator(self):
        for fault, case in ROW_SUMS:
            with self.subTest(fault=fault, mode=case["mode"]):
                result = self.run_case(case, "--inject", fault, code=1)
                gates = result["runs"][0]["outputs"]["y"]["criteria"]
                self.assertFalse(next(gate["ok"] for gate in gates if gate["name"] == "row sum"))

    def test_the_same_cases_pass_without_a_fault(self):
        plan = self.plan(cases=[case for _, case, _ in FAULTS])
        self.run_cli("run", plan, *SIM, "--json", "report.json", "--no-save", code=0)
        for result in json.loads((self.folder / "report.json").read_text())["cases"]:
            self.assertEqual(result["status"], "pass", result["id"])

    def test_a_fault_that_changes_nothing_is_refused_with_the_reason(self):
        for fault, case, reason in [
            ("softmax_scale_missing", fwd(scale=1), "the scale is 1"),
            ("softmax_scale_fp32", fwd("bf16", scale=0.125), "the scale is not rounded"),
            ("softmax_scale_fp32", fwd(), "the scale is not rounded"),
            ("softmax_scale_rounded", bwd(), "the scale is exact in the format"),
            ("mask_off_by_one", fwd(), "nothing is masked"),
            ("top_left_mask", fwd(**CAUSAL), "does not end in the bottom right corner"),
            ("top_left_mask", fwd(mask="causal_bottom_right", sq=9, sk=9), "a square matrix has only one diagonal"),
            ("masked_row_kept", fwd(**BOTTOM), "no row is entirely masked"),
            ("last_column_missing", bwd(sk=1), "a row has only one element"),
        ]:
            with self.subTest(fault=fault):
                result = self.run_case(case, "--inject", fault, code=None)
                self.assertEqual(result["status"], "unsupported")
                self.assertIn(reason, result["reason"])


if __name__ == "__main__":
    assert "TE_NUMCHECK" in os.environ
    unittest.main()
