"""Bit for bit means bits: signs of zeros, and what distinguishes NaN, where the op moves or defines bits."""

import json
import unittest

from faults import PlantsFaults

SIM = "sim:sm_90"


def case(op, mode, distribution="specials", **params):
    inputs = {"distribution": distribution, **({"fraction": 0.3} if distribution == "specials" else {})}
    return {"op": op, "mode": mode, "backend": "sim", "params": params, "inputs": inputs}


MOVES = [case("transpose", mode, rows=33, cols=65) for mode in ("fp32", "bf16", "fp16")]
MOVES += [case("moe_permute", mode, tokens=17, hidden=40, topk=2, dropped=3) for mode in ("fp32", "bf16")]
CASTS = [case("quantize", "fp32", rows=33, cols=65, layout="both"), case("dequantize", "bf16", rows=33, cols=65),
         case("transpose", "bf16", rows=33, cols=65, format="fp8_e5m2")]
COMPUTED = [case("layernorm_fwd", "fp32", rows=96, hidden=4), case("dropout_bwd", "fp32", elements=4096, p=0.5)]


class Bits(PlantsFaults):
    def result(self, planted, fault=None):
        arguments = ["--inject", fault] if fault else []
        plan = self.plan(cases=[{**planted, "tolerance": {"min_judged": 0}}])
        self.run_cli("run", plan, "--device", SIM, "--json", "report.json", "--no-save", *arguments, code=None)
        (result,) = json.loads((self.folder / "report.json").read_text())["cases"]
        return result

    def exact(self, result):
        gates = [gate for output in result["runs"][0]["outputs"].values() for gate in output["criteria"]]
        return [gate for gate in gates if gate["name"] == "exact" and not gate["ok"]]

    def test_products_of_integers_have_bounds_only_where_they_are_wrong(self):
        product = case("gemm", "bf16", "exact", m=64, n=64, k=64)
        for fault, status in ((None, "pass"), ("bit_flip", "fail")):
            with self.subTest(fault=fault):
                result = self.result(product, fault)
                metrics = result["runs"][0]["outputs"]["d"]["metrics"]
                self.assertEqual(result["status"], status)
                self.assertEqual(result["time_s"]["yardsticks"], 0)
                self.assertEqual(metrics["backward_error"] is not None, fault is not None)

    def test_clean_results_pass(self):
        for planted in (*MOVES, *CASTS, *COMPUTED):
            with self.subTest(op=planted["op"], mode=planted["mode"]):
                result = self.result(planted)
                self.assertEqual(result["status"], "pass", result["reason"])

    def test_another_sign_of_zero_fails(self):
        for planted in (*MOVES, *CASTS):
            with self.subTest(op=planted["op"], mode=planted["mode"]):
                result = self.result(planted, "negative_zero")
                self.assertEqual(result["status"], "fail", result["reason"])
                (gate,) = self.exact(result)
                self.assertRegex(gate["source"], r"with (the wrong sign|other bits than what was moved there), the first in row")

    def test_another_payload_of_a_moved_nan_fails(self):
        for planted in MOVES:
            with self.subTest(op=planted["op"], mode=planted["mode"]):
                result = self.result(planted, "nan_payload")
                self.assertEqual(result["status"], "fail", result["reason"])
                self.assertIn("with other bits than what was moved there", self.exact(result)[0]["source"])

    def test_computed_zeros_and_nan_may_have_any(self):
        for planted in COMPUTED:
            for fault in ("negative_zero", "nan_payload"):
                with self.subTest(op=planted["op"], fault=fault):
                    self.assertEqual(self.result(planted, fault)["status"], "pass")


if __name__ == "__main__":
    unittest.main()
