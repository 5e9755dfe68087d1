"""Shipped plans: found by name, listed, and each scenario shows something without a GPU."""

import json
import re
import unittest

from support import SOURCE, CliTest

PLANS = SOURCE / "configs/plans"
SIM = ["--device", "sim:sm_90"]


class ShippedPlans(CliTest):
    def listed(self, **options):
        return {plan["name"]: plan for plan in json.loads(self.run_cli("list", "plans", "--json", code=0, **options).stdout)}

    def test_list_plans_names_all(self):
        listed = self.listed()
        files = {path.stem: path for path in PLANS.rglob("*.json")}
        self.assertEqual(set(listed), set(files))
        for name in ("quick", "tf32_override"):
            self.assertEqual(listed[name]["description"], json.loads(files[name].read_text())["description"])
            cases = json.loads(self.run_cli("list", "cases", name, "--json", code=0).stdout)
            self.assertEqual(listed[name]["cases"], len(cases))
        text = self.run_cli("list", "plans", code=0).stdout
        self.assertRegex(text, rf"(?m)^  quick +{listed['quick']['cases']}  Is the arithmetic sane here")
        self.assertLessEqual(max(map(len, text.splitlines())), 100)

    def test_a_broken_plan_costs_no_other_its_place(self):
        folder = self.folder / "configs/plans"
        folder.mkdir(parents=True)
        (folder / "mine.json").write_text('{"version": 1}')
        done = self.run_cli("list", "plans", code=2)
        self.assertIn('configs/plans/mine.json:1:1: error: the plan has no "cases"', done.stderr)
        self.assertIn("quick", done.stdout)

    def test_names_work_wherever_a_plan_is_named(self):
        self.assertIn("quick: ", self.run_cli("validate", "quick", code=0).stdout)
        case = json.loads(self.run_cli("list", "cases", "quick", "--json", code=0).stdout)[0]
        self.assertIn(case["id"], self.run_cli("explain", case["digest"], "quick", code=0).stdout)
        self.run_cli("run", "quick", *SIM, "--no-save", "--case", case["digest"], code=0)
        for command in (["run"], ["validate"], ["list", "cases"]):
            done = self.run_cli(*command, "tf32_overide", code=2)
            self.assertIn('no plan is named "tf32_overide" (did you mean tf32_override?); plans are: ', done.stderr)

    def test_scenarios_show_something_without_a_gpu(self):
        for path in sorted((PLANS / "scenarios").glob("*.json")):
            sampled = self.run_cli("run", path.stem, *SIM, "--no-save", "--backend", "sim,auto", "--sample", "2", "--json", "-",
                                   code=0)
            report = json.loads(sampled.stdout)
            passed = sum(report["summary"][status] for status in ("pass", "inconclusive", "xfail"))
            self.assertEqual(passed, len(report["cases"]), path.stem)

    def test_the_override_table_is_predicted(self):
        done = self.run_cli("run", "tf32_override", *SIM, "--backend", "sim", "--op", "gemm", "-k", "m=128,n=512",
                            "--json", "report.json", "--markdown", "summary.md", "--no-save", code=0)
        self.assertIn("NVIDIA_TF32_OVERRIDE, as predicted by modelled arithmetic: no hardware evidence", done.stdout)
        self.assertIn("gemm fp32 (sim, predicted): override 1 turns FP32 into TF32: ", done.stdout)
        self.assertIn("gemm fp32\\_fast16f (sim, predicted): no effect", (self.folder / "summary.md").read_text())
        rows = self.report("report.json")["override_effect"]["rows"]
        self.assertEqual({row["predicted"] for row in rows}, {True})


class Inputs(CliTest):
    """Which inputs a plan may describe."""

    ATTENTION = {"sq": 16, "sk": 16, "d": 16}
    NORM = {"rows": 8, "hidden": 32}

    def described(self, op, params, port, code, mode="bf16"):
        plan = self.plan(case={"op": op, "mode": mode, "params": params, "inputs": {port: {"distribution": "constant", "value": 3}}})
        return self.run_cli("validate", plan, code=code).stderr

    def test_those_that_an_op_computes_have_no_distribution(self):
        padded = {**self.ATTENTION, "mask": "padding"}
        for op, params, port, mode in [
            ("attention_fwd", padded, "q_lengths", "bf16"), ("attention_bwd", padded, "kv_lengths", "bf16"),
            ("attention_fwd", self.ATTENTION, "s_scale", "fp8_e4m3"), ("attention_bwd", self.ATTENTION, "dp_scale_inv", "fp8_hybrid"),
            ("attention_bwd", self.ATTENTION, "lse", "bf16"), ("attention_bwd", self.ATTENTION, "o", "fp16"),
            ("layernorm_bwd", self.NORM, "mu", "bf16"), ("rmsnorm_bwd", self.NORM, "rsigma", "bf16"),
        ]:
            said = self.described(op, params, port, 2, mode)
            self.assertIn(f'error: {op} computes its input "{port}" itself, so it has no distribution: leave it out', said)
            self.assertRegex(self.run_cli("explain", op, code=0).stdout, rf"(?m)^{port} +computed ")

    def test_those_that_are_drawn_have_one(self):
        self.described("attention_bwd", self.ATTENTION, "do", 0)
        self.described("attention_fwd", {**self.ATTENTION, "dropout": 0.5}, "dropout_mask", 0)

    def test_exec_refuses_them_as_well(self):
        self.run_cli("run", self.plan(case={"op": "attention_fwd", "params": {**self.ATTENTION, "mask": "padding"}, "mode": "bf16"}),
                     *SIM, "--out", "out", code=0)
        told = self.run_cli("explain", self.report()["cases"][0]["digest"], "plan.json", *SIM, code=0).stdout
        case = json.loads(told.split("as exec reads it:\n")[1].splitlines()[0])
        case["inputs"]["q_lengths"] = {"distribution": "uniform", "low": 0, "high": 9}
        done = self.run_cli("exec", *SIM, stdin=json.dumps(case).encode() + b"\n")
        self.assertIn("attention_fwd computes its input", done.stdout + done.stderr)


class Groups(CliTest):
    """Sizes of grouped products, which are lists in a text, or one number."""

    def case(self, **params):
        return {"op": "grouped_gemm", "mode": "bf16", "backend": "sim", "params": params}

    def test_sizes_are_text_or_a_number(self):
        plan = self.plan(case=self.case(group_m=["16+0+8", 24], group_n=16, group_k="8"))
        cases = json.loads(self.run_cli("list", "cases", plan, "--json", code=0).stdout)
        self.assertEqual([case["id"] for case in cases],
                         ["grouped_gemm/m=16+0+8,n=16,k=8/bf16/sim", "grouped_gemm/m=24,n=16,k=8/bf16/sim"])
        told = self.run_cli("explain", cases[0]["id"], code=0).stdout
        self.assertRegex(told, r"(?m)^d1 +bf16 +0 x 16")
        self.assertRegex(self.run_cli("explain", "grouped_gemm", code=0).stdout, r"(?m)^group_m +m +64 +text ")

    def test_they_may_be_defaults_beside_those_of_other_ops(self):
        case = self.case()
        self.run_cli("validate", self.plan(case=case, defaults={"params": {"group_m": "16+8", "m": 16}}), code=0)

    def test_memory_for_gelu_is_that_of_a_single_product(self):
        def memory(op, sizes, epilogue):
            case = {"op": op, "mode": "bf16", "backend": "sim", "params": {**sizes, "epilogue": epilogue}}
            told = self.run_cli("validate", self.plan(case=case), code=0).stdout
            return re.search(r"largest case needs (.+) of host memory", told)[1]

        single, group = {"m": 512, "n": 512, "k": 32}, {"group_m": 512, "group_n": 512, "group_k": 32}
        self.assertEqual(memory("grouped_gemm", group, "gelu"), memory("gemm", single, "gelu"))
        self.assertNotEqual(memory("grouped_gemm", group, "gelu"), memory("grouped_gemm", group, "none"))

    def test_mistakes_say_what_would_be_right(self):
        for params, words in [({"scaling": "mxfp8"}, 'grouped_gemm: scaling "mxfp8" applies to FP8 modes only, not to bf16'),
                              ({"power_of_two": True}, "grouped_gemm: power_of_two is about scales of rows and blocks"),
                              ({"group_m": "16,8"}, 'group_m is "16,8"; it must be whole numbers from 0 to 2^30 joined by +'),
                              ({"group_m": "064"}, 'group_m is "064"; it must be whole numbers from 0 to 2^30 joined by +'),
                              ({"group_m": "1+2", "group_k": "1+2+3"}, "group_m has 2 sizes for 3 groups"),
                              ({"group_k": 1.5}, '"group_k" must be a string or an integer, not a number'),
                              ({"group_n": 8, "groups": 65}, '"groups" is 65; it must be between 0 and 64')]:
            self.assertIn(words, self.run_cli("validate", self.plan(case=self.case(**params)), code=2).stderr)

    def test_an_empty_first_group_leaves_the_others_to_prove_something(self):
        plan = self.plan(cases=[self.case(group_m="0+16", group_k="8+8"), self.case(group_m="16+16", group_k="0+8"),
                                self.case(group_m="0+0")])
        self.run_cli("run", plan, *SIM, "--no-save", "--json", "report.json", code=None)
        self.assertEqual([case["status"] for case in self.report("report.json")["cases"]], ["pass", "pass", "inconclusive"])


class ScaledProducts(CliTest):
    """Scales of rows and blocks of FP8 products."""

    def validated(self, code, mode="fp8_e4m3", **params):
        case = {"op": "gemm", "mode": mode, "backend": "sim", "params": {"m": 16, "n": 16, "k": 48, "trans_b": True, **params}}
        return self.run_cli("validate", self.plan(case=case), code=code).stderr

    def test_what_a_scaling_has_not_is_refused(self):
        for params, words in [({"mode": "bf16", "scaling": "mxfp8"}, "applies to FP8 modes only, not to bf16"),
                              ({"scaling": "1x128_1x128", "trans_b": False}, "set trans_a to false and trans_b to true"),
                              ({"scaling": "outer_vector", "batch": 2}, "is for one product: set batch to 1"),
                              ({"scaling": "1x128_1x128", "accumulate": "fast"}, "so that accumulate cannot be fast"),
                              ({"scaling": "mxfp8", "accumulate": "fast"}, "products of mxfp8 have one way to accumulate"),
                              ({"scaling": "mxfp8", "output": "fp8_e4m3"}, "has no FP8 output; it has fp32, bf16 and fp16"),
                              ({"scaling": "mxfp8", "power_of_two": True}, "powers of two whatever power_of_two says: leave it out"),
                              ({"power_of_two": True}, "power_of_two is about scales of rows and blocks: set scaling, too"),
                              ({"scaling": "mxfp4"}, 'did you mean "mxfp8"?'),
                              ({"scaling": "nvfp4"}, "is for E2M1 operands: set mode to fp4_e2m1, not to fp8_e4m3"),
                              ({"mode": "fp4_e2m1"}, "mode fp4_e2m1 has one way to scale its operands: set scaling to nvfp4"),
                              ({"mode": "fp4_e2m1", "scaling": "mxfp8"}, "set scaling to nvfp4"),
                              ({"mode": "fp4_e2m1", "scaling": "nvfp4", "power_of_two": True}, "leave power_of_two out"),
                              ({"mode": "fp4_e2m1", "scaling": "nvfp4", "accumulate": "fast"}, "products of nvfp4 have one way to accumulate"),
                              ({"mode": "fp4_e2m1", "scaling": "nvfp4", "output": "fp8_e4m3"}, "has no FP8 output; it has fp32, bf16 and fp16")]:
            with self.subTest(**params):
                self.assertIn(words, self.validated(2, **params))

    def test_what_it_has_is_not(self):
        for params in ({"scaling": "outer_vector", "accumulate": "fast"}, {"scaling": "mxfp8", "accumulate": "split"},
                       {"scaling": "mxfp8", "k": 0}, {"mode": "fp4_e2m1", "scaling": "nvfp4", "k": 37}, {"scaling": "1x128_128x128", "power_of_two": True, "output": "fp32"}):
            with self.subTest(**params):
                self.validated(0, **params)

    def test_devices_without_the_instructions_say_so(self):
        case = {"op": "gemm", "mode": "fp8_e4m3", "backend": "sim",
                "params": {"m": 16, "n": 16, "k": 48, "trans_b": True, "scaling": "mxfp8"}}
        done = self.run_cli("run", self.plan(case=case), *SIM, "--no-save", code=None)
        self.assertIn("MXFP8 products need instructions that multiply with scales, which begin with sm_100", done.stdout)


if __name__ == "__main__":
    unittest.main()
