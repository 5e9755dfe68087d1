"""A fault in one row or one tile is caught not far above the size at which it would be caught in the whole output."""

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


class Groups(PlantsFaults):
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
