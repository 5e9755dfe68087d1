"""A wrong amax is caught close above the errors that the largest results have, not only above what any result may have."""

import unittest

from faults import PlantsFaults, key

SIM = "sim:sm_90"


def case(op, mode, **params):
    return {"op": op, "mode": mode, "backend": "sim", "params": params, "inputs": {"distribution": "normal"},
            "algorithms": "heuristic"}


def gemm(accumulate="split", k=1024, **params):
    sizes = {"m": 128, "n": 128, "k": k, "trans_b": True}
    return case("gemm", "fp8_e4m3", accumulate=accumulate, output="fp8_e4m3", **{**sizes, **params})


# The output, what is caught, and the case; all of them passed when V and the bound were those of any order and any element.
CAUGHT = [
    ("d_amax", "G5 amax", 2.4e-3, gemm()),
    ("d_amax", "G5 amax", 2.4e-3, gemm(k=4096)),
    ("d_amax", "G5 amax", 2.4e-2, gemm("fast")),
    ("d_amax", "G5 amax", 4.2e-2, gemm("fast", k=4096)),
    ("d_amax", "G5 amax", 4e-3, gemm(m=40, batch=5, trans_a=True, trans_b=False, alpha=-1.7)),
    ("d1_amax", "G5 amax", 2.4e-3, case("grouped_gemm", "fp8_e4m3", group_m="0+128", group_n=128, group_k=1024, trans_b=True,
                                        output="fp8_e4m3")),
    ("y_amax", "G2 max", 4e-6, case("rmsnorm_fwd", "bf16", rows=128, hidden=256, output="fp8_e4m3")),
]


def gates_of(run, output):
    return {gate["name"]: gate for gate in run["outputs"][output]["criteria"]}


class Amax(PlantsFaults):
    def run_of(self, planted, code, *arguments):
        (run,) = self.run_cases([planted], SIM, *arguments, code=code)[key(planted)]["runs"]
        return run

    def test_a_wrong_amax_is_caught(self):
        for output, gate, size, planted in CAUGHT:
            for seed in (1, 2, 3):
                with self.subTest(size=size, params=planted["params"], seed=seed):
                    run = self.run_of({**planted, "seed": seed}, 1, "--inject", f"perturb_amax={size}")
                    failing = {name for name, found in gates_of(run, output).items() if not found["ok"]}
                    self.assertEqual(failing, {gate})

    def test_the_same_cases_pass_without_a_fault(self):
        for output, gate, _, planted in CAUGHT:
            with self.subTest(params=planted["params"]):
                found = gates_of(self.run_of(planted, 0), output)[gate]
                self.assertLess(3 * found["measured"], found["limit"])

    def test_what_was_replayed_is_told(self):
        source = gates_of(self.run_of(gemm(), 0), "d_amax")["G5 amax"]["source"]
        self.assertRegex(source, r"^amax [0-9.]+ for [0-9.]+; the 32 largest results, replayed in 1 to 8 slices, are off by ")

    def test_nothing_is_replayed_where_more_than_a_factor_follows_or_operands_repeat(self):
        for planted in (gemm(epilogue="relu"), gemm(bias=True), gemm(beta=0.5),
                        {**gemm(), "inputs": {"distribution": "constant"}}, gemm(k=16, m=2, n=2)):
            with self.subTest(params=planted["params"]):
                self.assertNotIn("G5 amax", gates_of(self.run_of(planted, None), "d_amax"))


if __name__ == "__main__":
    unittest.main()
