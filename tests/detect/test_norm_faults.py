"""Planted faults in normalisations are caught by the gates meant for them; without a fault the same cases pass.

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
ROUNDING = SEEN + ["G3 slope", "G4 ratio", "G4 element", "row scale error"]


def norm(op, mode="fp32", distribution="normal", **params):
    case = {"op": op, "mode": mode, "backend": "sim", "params": {"rows": 65, "hidden": 193, **params}}
    case["inputs"] = {"distribution": "normal", "x": {"distribution": distribution}}
    return case


def ln(mode="fp32", **rest):
    return norm("layernorm_fwd", mode, **rest)


def rms(mode="fp32", **rest):
    return norm("rmsnorm_fwd", mode, **rest)


def ln_bwd(mode="fp32", **rest):
    return norm("layernorm_bwd", mode, **rest)


def rms_bwd(mode="fp32", **rest):
    return norm("rmsnorm_bwd", mode, **rest)


FAULTS = [
    ("epsilon_x10", ln(), SEEN),
    ("epsilon_x10", rms("bf16", output="fp8_e4m3", distribution="rows"), SEEN),
    ("bessel", ln("bf16"), SEEN),
    ("bessel", rms(), SEEN),
    ("one_pass_variance", ln(distribution="rows"), SEEN),
    ("bf16_statistics", ln(), SEEN),
    ("bf16_statistics", rms("fp16"), SEEN),
    ("last_element_missing", ln(), SEEN),
    ("last_element_missing", rms(), SEEN),
    ("previous_row_statistics", ln(), SEEN),
    ("previous_row_statistics", rms("bf16", distribution="rows"), SEEN),
    ("gamma_not_centred", ln(zero_centered_gamma=True), SEEN),
    ("gamma_not_centred", rms("bf16", zero_centered_gamma=True), SEEN),
    ("beta_missing", ln("bf16"), SEEN),
    ("epsilon_outside_root", rms(), SEEN),
    ("gamma_order_swapped", rms("bf16"), ROUNDING),
    ("gamma_order_swapped", rms("bf16", gamma_order="hf"), ROUNDING),
    ("truncated_output", ln("bf16"), ROUNDING),
    ("stale_amax", rms("bf16", output="fp8_e4m3"), SEEN),
    ("bf16_output_in_fp32", ln(), SEEN),
    ("output_scale_1_01", rms("fp16"), SEEN),
    ("last_row_stale", ln(), SEEN),
    ("mean_term_missing", ln_bwd(), SEEN),
    ("projection_missing", ln_bwd("bf16"), SEEN),
    ("projection_missing", rms_bwd(), SEEN),
    ("mean_over_n_minus_1", ln_bwd(), SEEN),
    ("mean_over_n_minus_1", rms_bwd(), SEEN),
    ("last_element_missing", ln_bwd(), SEEN),
    ("last_element_missing", rms_bwd(), SEEN),
    ("previous_row_statistics", ln_bwd(distribution="rows"), SEEN),
    ("previous_row_statistics", rms_bwd("bf16", distribution="rows"), SEEN),
    ("last_row_missing", ln_bwd(), SEEN),
    ("last_row_missing", rms_bwd(), SEEN),
    ("bf16_partial_sums", ln_bwd(rows=300), SEEN),
    ("bf16_partial_sums", rms_bwd(rows=300), SEEN),
    ("gamma_not_centred", rms_bwd(zero_centered_gamma=True), SEEN),
    ("add_missing", rms_bwd(add=True), SEEN),
]


class Faults(CliTest):
    def run_case(self, case, *arguments, code):
        plan = self.plan(cases=[case])
        self.run_cli("run", plan, *SIM, "--json", "report.json", "--no-save", *arguments, code=code)
        return json.loads((self.folder / "report.json").read_text())["cases"][0]

    def test_each_fault_is_caught_by_its_gate(self):
        for fault, one, gates in FAULTS:
            with self.subTest(fault=fault, op=one["op"], mode=one["mode"]):
                result = self.run_case(one, "--inject", fault, code=1)
                self.assertEqual(result["status"], "fail")
                first = [
                    next(gate["name"] for gate in output["criteria"] if not gate["ok"])
                    for run in result["runs"]
                    for output in run["outputs"].values()
                    if not all(gate["ok"] for gate in output["criteria"])
                ]
                self.assertTrue(set(first) & set(gates), f"{fault}: {first} failed, not {gates}")

    def test_the_same_cases_pass_without_a_fault(self):
        for fault, one, _ in FAULTS:
            with self.subTest(case=f"of {fault}: {one['op']} {one['mode']} {one['params']}"):
                self.assertEqual(self.run_case(one, code=0)["status"], "pass")

    def test_at_least_five_faults_for_every_op(self):
        for op in {one["op"] for _, one, _ in FAULTS}:
            with self.subTest(op):
                self.assertGreaterEqual(len({fault for fault, one, _ in FAULTS if one["op"] == op}), 5)


if __name__ == "__main__":
    assert "TE_NUMCHECK" in os.environ
    unittest.main()
