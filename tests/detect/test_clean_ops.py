"""Right results of unusual rows, of ops other than products: each of these failed a gate that asked too much of them."""

import unittest

from faults import PlantsFaults

SIM = "sim:sm_90"


def case(op, mode, inputs, seed, **params):
    return {"op": op, "mode": mode, "backend": "sim", "params": params, "inputs": inputs, "seed": seed}


# Masked scores of -10^4 outweigh the row's own: its sum is 2e-14, with the errors of exponentials of 32.
OUTWEIGHED = case("softmax_fwd", "fp32", {"distribution": "rows", "low": -12, "high": 4}, 4230472974, batches=3, heads=2, sq=33, sk=40,
                  scale=-91.25202454543971, mask="causal_bottom_right")
# 16 of them are more than FP32 has: one order of summation overflows, another does not.
OVERFLOWING = case("quantize", "bf16", {"distribution": "constant", "value": -1e38}, 442508282, rows=16, cols=2, recipe="nvfp4",
                   block_shape="1x16", format="fp4_e2m1", layout="columnwise", hadamard=True)


class CleanOps(PlantsFaults):
    def check(self, cases):
        for result in self.run_cases(cases, SIM, code=None).values():
            self.assertIn(result["status"], ("pass", "inconclusive"), f"{result['id']}: {result['reason']}")

    def test_rows_that_masked_scores_outweigh(self):
        self.check([OUTWEIGHED])

    def test_hadamard_sums_that_overflow(self):
        self.check([OVERFLOWING])


if __name__ == "__main__":
    unittest.main()
