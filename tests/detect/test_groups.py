"""A fault in one row or one tile is caught not far above the size at which it would be caught in the whole output."""

import json
import unittest

from faults import PlantsFaults, first_failing, key

SIM = "sim:sm_90"


def case(op, mode, **params):
    return {"op": op, "mode": mode, "backend": "sim", "params": params, "inputs": {"distribution": "normal"},
            "algorithms": "heuristic"}


def gemm(mode, k, n=128, **params):
    return case("gemm", mode, m=128, n=n, k=k, trans_b=True, **params)


# The part, its relative error, and the case.
CAUGHT = [
    ("row", 3e-5, gemm("bf16", 1024, n=2048)),
    ("row", 8e-5, gemm("bf16", 4096, n=2048)),
    ("row", 4e-6, gemm("fp32", 1024)),
    ("row", 8e-6, gemm("bf16", 1024, output="fp32")),
    ("row", 2e-3, gemm("fp8_e4m3", 1024, output="fp32")),
    ("row", 3e-5, gemm("bf16", 1024, n=2048, batch=2)),
    ("tile", 2e-5, gemm("bf16", 1024, n=2048)),
    ("tile", 8e-6, gemm("bf16", 1024, output="fp32")),
]


def attention(op, mode, **params):
    return case(op, mode, **{"batches": 2, "heads": 4, "sq": 256, "sk": 256, "d": 64, **params})


def of_one_sign(k, output, **params):
    sizes = {"m": 256, "n": 512, "k": k, "trans_b": True, "accumulate": "split", **params}
    return {**case("gemm", "fp8_e4m3", output=output, **sizes), "inputs": {"distribution": "uniform", "low": 0, "high": 1}}


# Promoted sums of one sign lose some 6e-4 of all elements, and may lose far more.
FACTORS = [(part, of_one_sign(k, output)) for part in ("row", "tile") for k in (256, 1024) for output in ("fp32", "bf16")]
FACTORS.append(("row", of_one_sign(512, "bf16", batch=3)))


# In the whole output 1.3e-3 is seen of BF16.
BLOCKS = [
    ("tile", 6e-4, attention("attention_fwd", "bf16")),
    ("tile", 8e-4, attention("attention_fwd", "bf16", layout="bhsd", mask="causal", kv_heads=2)),
    ("tile", 2e-3, attention("attention_bwd", "bf16", mask="causal")),
    ("tile", 1.5e-4, attention("attention_fwd", "fp16", layout="sbhd")),
    ("tile", 4e-4, attention("attention_bwd", "fp16")),
    ("tile", 0.05, attention("attention_fwd", "fp8_hybrid")),
]


class Groups(PlantsFaults):
    def test_a_wrong_scale_of_one_block_of_a_head_is_caught(self):
        for part, size, planted in BLOCKS:
            with self.subTest(op=planted["op"], params=planted["params"], mode=planted["mode"]):
                results = self.run_cases([planted], SIM, "--inject", f"perturb_{part}={size}", code=1)
                (run,) = results[key(planted)]["runs"]
                self.assertEqual(first_failing(run), "block slope")
        for result in self.run_cases([planted for *_, planted in BLOCKS], SIM, code=0).values():
            self.assertEqual(result["status"], "pass", result["reason"])

    def test_a_wrong_factor_of_a_part_of_sums_of_one_sign_is_caught(self):
        for part, planted in FACTORS:
            with self.subTest(part=part, params=planted["params"]):
                results = self.run_cases([planted], SIM, "--inject", f"perturb_{part}=5e-3", code=1)
                (run,) = results[key(planted)]["runs"]
                self.assertEqual(first_failing(run), "line factor")
        for result in self.run_cases([planted for _, planted in FACTORS], SIM, code=0).values():
            (gate,) = [gate for gate in result["runs"][0]["outputs"]["d"]["criteria"] if gate["name"] == "line factor"]
            self.assertLess(3 * gate["measured"], gate["limit"])

    def test_rows_that_hardly_differ_are_one(self):
        """Scores of 1e-3 and a power of two of keys: all rows of dv are nearly the same, and rounded alike."""
        inputs = {"distribution": "normal", "sigma": 0.02, "do": {"distribution": "normal"}}
        cases = [{**attention("attention_bwd", "bf16", batches=1, heads=2, sk=512), "inputs": inputs},
                 {**attention("attention_bwd", "bf16", batches=1, heads=4, kv_heads=1, sk=1024), "inputs": inputs},
                 {**attention("attention_bwd", "fp16", batches=1, heads=2, sk=512), "inputs": inputs},
                 {**attention("attention_fwd", "fp16", batches=1, heads=2, sq=2048, sk=128, d=8),
                  "inputs": {"distribution": "normal", "sigma": 0.02}},
                 {**attention("attention_bwd", "bf16", sq=127, sk=127, d=16, kv_heads=2, window_left=86),
                  "inputs": {"distribution": "large_mean", "mean": -1, "sigma": 0.00390625}}]
        plan = self.plan(cases=[{**one, "seed": [1, 2, 3]} for one in cases])
        self.run_cli("run", plan, "--device", SIM, "--no-save", "--json", "report.json", code=0)
        for result in json.loads((self.folder / "report.json").read_text())["cases"]:
            self.assertIn(result["status"], ("pass", "inconclusive"), result["reason"])

    def test_the_largest_weights_of_dropout_are_rounded_alike(self):
        """1 / (1 - dropout) is no BF16 number: what rounds it is in the largest weight of every row."""
        cases = [attention("attention_fwd", mode, heads=2, mask=mask, dropout=dropout) for mode in ("bf16", "fp16")
                 for mask in ("none", "padding") for dropout in (0.1, 0.15)]
        plan = self.plan(cases=[{**one, "seed": [1, 2, 3]} for one in cases])
        self.run_cli("run", plan, "--device", SIM, "--no-save", "--json", "report.json", code=0)
        results = self.run_cases(cases, SIM, "--inject", "perturb_all=2e-3", code=1)
        self.assertEqual({result["status"] for result in results.values()}, {"fail"})

    def test_rows_that_the_sink_leaves_nothing_of_excuse_no_others(self):
        """Far beyond the last key, ALiBi's weights are lost beside a sink: nothing is known of these rows."""
        cases = [attention("attention_fwd", mode, batches=1, sq=sq, sk=256, bias="alibi", softmax=softmax)
                 for mode in ("bf16", "fp16") for sq, softmax in ((512, "off_by_one"), (300, "learnable"))]
        for fault in ("truncated_output", "perturb_all=3e-3"):
            with self.subTest(fault=fault):
                results = self.run_cases(cases, SIM, "--inject", fault, code=1)
                self.assertEqual({result["status"] for result in results.values()}, {"fail"})
        for result in self.run_cases(cases, SIM, code=0).values():
            self.assertEqual(result["status"], "pass", result["reason"])

    def test_errors_of_one_row_or_tile_are_caught(self):
        for part, size, planted in CAUGHT:
            with self.subTest(part=part, params=planted["params"], mode=planted["mode"]):
                results = self.run_cases([planted], SIM, "--inject", f"perturb_{part}={size}", code=1)
                (run,) = results[key(planted)]["runs"]
                self.assertEqual(first_failing(run), "homogeneity")

    def test_the_one_that_is_wrong_is_named(self):
        planted = gemm("fp32", 1024)
        results = self.run_cases([planted], SIM, "--inject", "perturb_row=6e-6", code=1)
        (run,) = results[key(planted)]["runs"]
        (gate,) = [gate for gate in run["outputs"]["d"]["criteria"] if gate["name"] == "homogeneity"]
        self.assertEqual(gate["source"], "row 64 of 128")

    def test_rows_whose_sums_stray_far_on_the_way_pass(self):
        """All elements of a row follow the same running sum where B has a mean."""
        straying = {**gemm("tf32", 4096), "inputs": {"a": {"distribution": "normal"}, "b": {"distribution": "large_mean"}}}
        straying["params"] = {**straying["params"], "m": 1024}
        plan = self.plan(cases=[{**straying, "seed": [1, 2, 3]}])
        self.run_cli("run", plan, "--device", SIM, "--no-save", code=0)
        across = {**straying, "inputs": {"a": {"distribution": "large_mean"}, "b": {"distribution": "normal"}},
                  "params": {**straying["params"], "m": 128, "n": 1024}}
        self.run_cli("run", self.plan(cases=[{**across, "seed": [1, 2, 3]}]), "--device", SIM, "--no-save", code=0)

    def test_the_same_cases_pass_without_a_fault(self):
        for result in self.run_cases([planted for *_, planted in CAUGHT], SIM, code=0).values():
            self.assertEqual(result["status"], "pass", result["reason"])


if __name__ == "__main__":
    unittest.main()
