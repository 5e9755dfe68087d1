"""Grouped products: every group is judged by itself, however small it is among the others."""

import unittest

from faults import PlantsFaults

SIM = "sim:sm_90"


def grouped(mode, **params):
    return {"op": "grouped_gemm", "mode": mode, "backend": "sim", "params": params, "inputs": {"distribution": "normal"}}


class Grouped(PlantsFaults):
    def result(self, case, *arguments, code=0):
        (result,) = self.run_cases([case], SIM, *arguments, code=code).values()
        return result

    def failing(self, result):
        return {name for run in result["runs"] for name, output in run["outputs"].items()
                if not all(gate["ok"] for gate in output["criteria"])}

    def test_one_wrong_number_beside_large_groups_fails(self):
        sizes = {"group_m": "256+256+1", "group_n": "256+256+1", "group_k": "64+64+65"}
        result = self.result(grouped("fp32", **sizes), "--inject", "last_group_k_tail", code=1)
        self.assertEqual((result["status"], self.failing(result)), ("fail", {"d2"}))
        self.assertTrue(result["reason"].startswith("d2: "), result["reason"])

    def test_unwritten_groups_are_named(self):
        case = grouped("bf16", group_m="16+0+16+16", group_n=16, group_k="16+16+0+16")
        result = self.result(case, "--inject", "groups_after_empty_missing", code=1)
        self.assertEqual(self.failing(result), {"d2", "d3"})
        self.assertEqual(self.failing(self.result(case, "--inject", "k0_group_unwritten", code=1)), {"d2"})

    def test_each_group_has_norms_of_its_own(self):
        result = self.result(grouped("bf16", group_m="64+0+32", group_n=48, group_k="256+16+512"))
        outputs = result["runs"][0]["outputs"]
        self.assertEqual([outputs[name]["metrics"]["elements"] for name in ("d0", "d1", "d2")], [64 * 48, 0, 32 * 48])
        for name in ("d0", "d2"):
            self.assertAlmostEqual(outputs[name]["metrics"]["rel_l2"], 1.66e-3, delta=1e-4)

    def test_a_rounding_before_c_is_excused_in_place_alone(self):
        case = grouped("fp16", group_m="96+128", group_n=96, group_k="256+64", beta=1)
        fault = ["--inject", "group_products_rounded"]
        self.assertEqual(self.failing(self.result(case, *fault, code=1)), {"d0", "d1"})
        in_place = {**case, "params": {**case["params"], "in_place": True}}
        result = self.result(in_place, *fault)
        self.assertEqual(result["status"], "warn", result["reason"])
        self.assertIn("the product is rounded to fp16 before C is added, in place", result["reason"])
        self.assertEqual(self.failing(self.result(in_place, "--inject", "last_group_k_tail", code=1)), {"d1"})

    def test_the_class_is_that_of_the_first_group_with_products(self):
        sizes = {"group_m": "0+33", "group_n": "8+40", "group_k": "8+64"}
        for mode, observed in [("fp32", "fp32"), ("tf32", "tf32_rne"), ("bf16", "")]:
            run = self.result(grouped(mode, **sizes))["runs"][0]
            self.assertEqual(run["observed_class"], observed, mode)
        result = self.result(grouped("fp32", **sizes), "--inject", "last_group_tf32", code=1)
        self.assertEqual(result["runs"][0]["observed_class"], "tf32_rne")


if __name__ == "__main__":
    unittest.main()
