"""Every planted fault is caught, by the gate that is meant for it; and the same cases without a fault pass.

Each row: fault, the case that makes it visible, and the gates of which one must fail first (of any output)."""

import importlib.util
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "cli"))
from support import CliTest  # noqa: E402

SIM = ["--device", "sim:sm_90"]


def gemm(mode, m=96, n=80, k=256, distribution="normal", algorithms="heuristic", inputs=None, **params):
    return {
        "op": "gemm",
        "mode": mode,
        "backend": "sim",
        "params": {"m": m, "n": n, "k": k, "trans_b": True, **params},
        "inputs": {"distribution": distribution, **(inputs or {})},
        "algorithms": algorithms,
    }


FP8_WIDE = gemm("fp8_e4m3", k=4096, output="fp32", accumulate="split")
FP8_PROMOTION = gemm("fp8_e4m3", k=1024, output="fp32", accumulate="split", distribution="exact")
SUBNORMAL = gemm("fp32", m=32, n=32, k=64, distribution="log_uniform", inputs={"low": -75, "high": -60})

FAULTS = [
    # memory
    ("bit_flip", gemm("fp32"), ["G1 bound"]),
    ("bit_flip", gemm("bf16", distribution="exact"), ["exact"]),
    ("stale_tile", gemm("bf16"), ["G1 bound"]),
    ("unwritten_tile", gemm("fp16"), ["G0 pattern"]),
    ("write_past_end", gemm("fp32"), ["G0 guards"]),
    ("nan_written", gemm("bf16"), ["G0 pattern"]),
    ("race", gemm("fp32"), ["G0 determinism"]),
    ("swapped_rows", gemm("fp32"), ["G1 bound"]),
    ("input_overwritten", gemm("fp16"), ["G0 guards"]),
    ("workspace_overrun", gemm("fp32"), ["G0 guards"]),
    # operands
    ("tf32_silently", gemm("fp32"), ["class"]),
    ("tf32_silently", gemm("fp32", epilogue="gelu"), ["G1 bound", "G2 rms"]),  # gelu is not classified: by statistics
    ("tf32_truncated_inputs", gemm("tf32"), ["class"]),
    ("tf32_truncated_inputs", gemm("tf32", epilogue="gelu"), ["G1 bound", "G2 rms", "G3 slope"]),
    ("bf16_inputs", gemm("fp32"), ["class"]),
    ("bf16_inputs", gemm("tf32", epilogue="gelu"), ["G1 bound", "G2 rms"]),
    ("transposed_a", gemm("bf16", n=96), ["G1 bound"]),
    ("transposed_a", gemm("fp8_e4m3", k=96, distribution="exact"), ["exact"]),
    # accumulation
    ("tf32x3_in_core", gemm("fp32", k=4096), ["G2 rms", "G3 slope"]),
    ("fp16_accumulation", gemm("fp16", output="fp32"), ["G1 bound", "G2 rms"]),
    ("fast_accumulation", FP8_WIDE, ["G1 bound", "G2 rms"]),
    ("fast_accumulation", FP8_PROMOTION, ["exact"]),
    ("promotion_512", FP8_PROMOTION, ["exact"]),
    ("missing_k_tail", gemm("fp32"), ["G1 bound"]),
    ("missing_k_tail", gemm("fp8_e4m3", distribution="exact"), ["exact"]),
    ("duplicated_k_block", gemm("bf16"), ["G1 bound"]),
    ("unreduced_split_k", gemm("fp16"), ["G1 bound"]),
    # scale, addends, epilogue
    ("scale_half", gemm("bf16"), ["G1 bound"]),
    ("scale_1_01", gemm("fp32"), ["G1 bound"]),
    ("scale_1_01", gemm("bf16"), ["G1 bound", "G2 rms", "G4 ratio"]),
    ("scale_1_01", gemm("fp8_hybrid", k=1024, distribution="uniform", inputs={"low": 0.1, "high": 1}), ["G3 slope"]),
    ("fast_accumulation", gemm("fp8_e4m3", k=1024, distribution="uniform", inputs={"low": 0.5, "high": 1}), ["G2 rms"]),
    ("scale_1_01", gemm("fp8_hybrid", output="fp8_e4m3"), ["G1 bound", "G2 rms", "G3 slope", "G4 ratio"]),
    ("beta_ignored", gemm("fp32", beta=0.5), ["G1 bound"]),
    ("product_rounded", gemm("bf16", beta=1), ["G1 bound", "G4 ratio"]),
    ("product_rounded", gemm("fp16", beta=-1, k=1024), ["G1 bound", "G4 ratio"]),
    ("sum_rounded", gemm("bf16", bias=True), ["G1 bound", "G4 ratio"]),
    ("sum_rounded", gemm("fp16", epilogue="gelu", k=16), ["G1 bound", "G4 ratio"]),
    ("approximate_tanh", gemm("fp32", epilogue="gelu", k=8), ["G1 bound", "G2 rms"]),
    ("bias_missing", gemm("bf16", bias=True), ["G1 bound", "G2 rms"]),
    ("gelu_erf", gemm("fp32", epilogue="gelu"), ["G1 bound", "G2 rms", "G2 q999"]),
    # output
    ("transposed_output", gemm("fp32", m=80), ["G1 bound"]),
    ("bf16_output_in_fp32", gemm("fp32", epilogue="relu"), ["class", "G1 bound", "G2 rms"]),
    ("double_rounded_output", gemm("bf16", m=512, n=512), ["G1 bound", "G4 element"]),
    ("truncated_output", gemm("bf16"), ["G1 bound", "G3 slope"]),
    ("saturate_missing", gemm("fp8_e4m3", m=256, n=256, output="fp8_e4m3", distribution="outliers"), ["G0 pattern"]),
    ("stale_amax", gemm("fp8_e4m3", output="fp8_e4m3"), ["G1 bound"]),
    # special values
    ("denormals_flushed", SUBNORMAL, ["G1 bound"]),
    ("nan_dropped", gemm("fp32", distribution="specials"), ["G0 pattern"]),
]

# Planted faults that no GEMM case can show, with the reason.
INVISIBLE = {
    "fp16_detour_fp8_output": "FP8 accumulation errs by more than the 2^-11 by which the detour moves a rounding",
}


class Faults(CliTest):
    def run_case(self, case, *arguments, code):
        plan = self.plan(cases=[case])
        self.run_cli("run", plan, *SIM, "--json", "report.json", "--no-save", *arguments, code=code)
        return json.loads((self.folder / "report.json").read_text())["cases"][0]

    def test_each_fault_is_caught_by_its_gate(self):
        for fault, case, gates in FAULTS:
            with self.subTest(fault=fault, mode=case["mode"], inputs=case["inputs"]["distribution"]):
                result = self.run_case(case, "--inject", fault, code=1)
                self.assertEqual(result["status"], "fail")
                first = [
                    next(gate["name"] for gate in output["criteria"] if not gate["ok"])
                    for run in result["runs"]
                    for output in run["outputs"].values()
                    if not all(gate["ok"] for gate in output["criteria"])
                ]
                self.assertTrue(set(first) & set(gates), f"{fault}: {first} failed, not {gates}")

    def test_the_same_cases_pass_without_a_fault(self):
        for fault, case, _ in FAULTS:
            with self.subTest(case=f"of {fault}: {case['mode']} {case['params']}"):
                self.assertEqual(self.run_case(case, code=0)["status"], "pass")

    def test_a_rounded_product_is_named_and_only_in_place_excused(self):
        for mode in ("bf16", "fp16"):
            shares = {}
            for in_place, status in ((False, "fail"), (True, "warn")):
                case = gemm(mode, m=256, n=160, beta=1, in_place=in_place)
                result = self.run_case(case, "--inject", "product_rounded", code=int(status == "fail"))
                self.assertEqual(result["status"], status)
                self.assertIn("C is added, in place" if in_place else "G1 bound", result["reason"])
                (finding,) = result["runs"][0]["outputs"]["d"]["findings"]
                self.assertEqual(finding["name"], "product rounded before C is added")
                shares[in_place] = finding["measured"]
                self.assertEqual(self.run_case(case, code=0)["status"], "pass")
            self.assertGreater(shares[True], 0.99)
            self.assertEqual(shares[True], shares[False])

    def test_in_place_excuses_nothing_else(self):
        for fault in ("truncated_output", "scale_1_01", "beta_ignored", "missing_k_tail", "unreduced_split_k"):
            with self.subTest(fault=fault):
                case = gemm("bf16", m=256, n=160, beta=1, in_place=True)
                self.assertEqual(self.run_case(case, "--inject", fault, code=1)["status"], "fail")

    def test_no_fault_is_forgotten(self):
        listed = json.loads(self.run_cli("list", "faults", "--json", code=0).stdout)
        names = {fault["name"] for fault in (listed if isinstance(listed, list) else listed["faults"])}
        # The fault of a real device has tests of its own (gpu/test_containment.py).
        tested = {*INVISIBLE, "illegal_address"}
        for path in pathlib.Path(__file__).parent.glob("test_*faults.py"):
            spec = importlib.util.spec_from_file_location(path.stem, path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            tested |= {row[0] for row in module.FAULTS}
        self.assertEqual(names, tested)


if __name__ == "__main__":
    assert "TE_NUMCHECK" in os.environ
    unittest.main()
