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

# Values of 10^-41: each product with a weight is rounded to a multiple of 2^-149, and so is a whole row's mean of 128 of them.
SUBNORMAL_VALUES = case("attention_fwd", "fp32", {"distribution": "patterns", "format": "fp32", "stride": 17,
                                                  "q": {"distribution": "positive"}, "k": {"distribution": "ties", "format": "fp8_e5m2"}},
                        1706542782, batches=2, heads=12, kv_heads=3, sq=64, sk=128, d=1, scale=10, mask="causal_bottom_right",
                        window_right=5, bias="alibi", softmax="off_by_one", layout="bshd")
# A row with one key: o is that key's v, and D cancels dp but for what subnormal products lose.
CANCELLED = case("attention_bwd", "fp32",
                 {"distribution": "ties", "format": "fp8_e4m3", "q": {"distribution": "one_hot"}, "bias": {"distribution": "rows", "low": -3, "high": 3},
                  "k": {"distribution": "rows", "low": 5, "high": 9}, "do": {"distribution": "patterns", "format": "fp32", "stride": 7},
                  "v": {"distribution": "ties", "format": "mixed"}}, 2162143499, heads=12, kv_heads=3, sq=64, sk=64, d=64,
                 mask="causal_bottom_right", window_right=0, bias="post_scale", softmax="off_by_one", layout="bshd", statistics="reference")
# Few different numbers are quantised to FP8 with few different errors.
SIGNS = [case("attention_bwd", "fp8_e4m3", {"distribution": "signs"}, 3463912756, batches=2, heads=12, kv_heads=3, sq=64, sk=128, d=1,
              scale=-0.2, window_right=2, softmax="learnable", softcap=50, layout="bhsd"),
         *[case("attention_fwd", "fp8_e4m3", {"distribution": "signs"}, seed, sq=64, sk=64, d=16) for seed in range(1, 9)]]
# Sums of 128 scores that are nearly 1, or of 100 that are a few numbers: all additions of a binade err alike.
SCORES = [*[case("router_topk", "fp32", {"distribution": "large_mean", "mean": 12, "sigma": 0.5}, seed, tokens=16, experts=256, topk=128,
                 score="sigmoid") for seed in range(1, 4)],
          case("router_topk", "fp32", {"distribution": "ties", "format": "fp8_e5m2"}, 1916305501, tokens=8, experts=1024, topk=100,
               score="sigmoid", scaling=2.5)]

# No token is kept: the tensor that is moved has no elements.
NOTHING_KEPT = case("moe_unpermute", "fp16", {"distribution": "normal"}, 3432708743, tokens=2, hidden=1627, topk=20, dropped=40)


class CleanOps(PlantsFaults):
    def check(self, cases):
        for result in self.run_cases(cases, SIM, code=None).values():
            self.assertIn(result["status"], ("pass", "inconclusive"), f"{result['id']}: {result['reason']}")

    def test_rows_that_masked_scores_outweigh(self):
        self.check([OUTWEIGHED])

    def test_tokens_of_which_none_is_kept(self):
        self.check([NOTHING_KEPT])

    def test_subnormal_values_of_attention(self):
        self.check([SUBNORMAL_VALUES, CANCELLED])

    def test_attention_of_signs_in_fp8(self):
        self.check(SIGNS)

    def test_scores_of_the_router_that_are_nearly_equal(self):
        self.check(SCORES)

    def test_hadamard_sums_that_overflow(self):
        self.check([OVERFLOWING])


if __name__ == "__main__":
    unittest.main()
