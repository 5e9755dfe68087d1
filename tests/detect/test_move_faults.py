"""Planted faults in casts, transposes, rotary embeddings, dropout, mixture-of-experts moves and the router are caught by
the gates meant for them; without a fault the same cases pass.

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
BITS = ["exact"]


def case(op, mode="fp32", distribution="normal", **params):
    return {"op": op, "mode": mode, "backend": "sim", "params": params, "inputs": {"distribution": distribution}}


def quantize(mode="bf16", **rest):
    return case("quantize", mode, **{"rows": 48, "cols": 64, "layout": "both", **rest})


def dequantize(mode="bf16", **rest):
    return case("dequantize", mode, **{"rows": 48, "cols": 64, **rest})


def transpose(mode="bf16", **rest):
    return case("transpose", mode, **{"rows": 48, "cols": 64, **rest})


def rope(op="rope_fwd", mode="fp32", **rest):
    return case(op, mode, **{"seq": 33, "batch": 2, "heads": 3, "dim": 64, **rest})


def dropout_fwd(**rest):
    return case("dropout_fwd", **{"elements": 65536, "p": 0.25, **rest})


def dropout_bwd(**rest):
    return case("dropout_bwd", **{"elements": 4096, "p": 0.25, **rest})


def permute(**rest):
    return case("moe_permute", "bf16", **{"tokens": 33, "hidden": 64, "topk": 2, **rest})


def unpermute(mode="fp32", **rest):
    return case("moe_unpermute", mode, **{"tokens": 33, "hidden": 64, "topk": 3, **rest})


def router(score="softmax_pre", **rest):
    return case("router_topk", **{"tokens": 65, "experts": 32, "topk": 4, "score": score, **rest})


FAULTS = [
    ("scale_half", quantize(), BITS),
    ("scale_after_cast", quantize(scale=3.3), BITS),
    ("subnormal_codes_flushed", quantize(distribution="log_uniform"), BITS),
    ("wrong_amax", quantize(rows=9, cols=7), BITS),
    ("scaled_amax", quantize(), BITS),
    ("scale_inv_is_scale", quantize(), BITS),
    ("codes_not_transposed", quantize(), BITS),
    ("truncated_output", quantize(), BITS),
    ("double_rounded_output", quantize("fp32", format="fp8_e5m2", rows=512, cols=512), BITS),
    ("saturate_missing", quantize(scale=900), ["G0 pattern"]),
    ("stale_amax", quantize(), BITS),
    ("last_row_stale", quantize(), BITS),
    ("nan_dropped", quantize(distribution="specials"), ["G0 pattern"]),
    ("scale_half", dequantize(), BITS),
    ("scale_inverted", dequantize(), BITS),
    ("scale_ignored", dequantize(), BITS),
    ("sign_dropped", dequantize(), BITS),
    ("truncated_output", dequantize("fp16"), BITS),
    ("output_scale_1_01", dequantize(), BITS),
    ("codes_not_transposed", transpose(), BITS),
    ("tile_skipped", transpose(), BITS),
    ("swapped_pair", transpose(), BITS),
    ("last_row_repeated", transpose(), BITS),
    ("last_row_stale", transpose(), BITS),
    ("bf16_output_in_fp32", transpose("fp32"), BITS),
    ("wrong_pairs", rope(), SEEN),
    ("wrong_pairs", rope("rope_bwd", "bf16", interleaved=True), SEEN),
    ("opposite_sign", rope(), SEEN),
    ("opposite_sign", rope("rope_bwd"), SEEN),
    ("next_position", rope(), SEEN),
    ("next_position", rope("rope_bwd"), SEEN),
    ("start_ignored", rope(start=5), SEEN),
    ("start_ignored", rope("rope_bwd", start=5), SEEN),
    ("bf16_angles", rope("rope_bwd"), SEEN),
    ("bf16_angles", rope(), SEEN),
    ("tf32_angles", rope("rope_fwd", "bf16", position=3001), SEEN),
    ("rest_not_copied", rope(rotary=32), SEEN),
    ("rest_not_copied", rope("rope_bwd", rotary=32), SEEN),
    ("scale_missing", dropout_fwd(), ["elements off the mask"]),
    ("scale_by_p", dropout_fwd(), ["elements off the mask"]),
    ("nothing_dropped", dropout_fwd(), ["dropped share"]),
    ("mask_inverted", dropout_fwd(), ["elements off the mask"]),
    ("constant_mask", dropout_fwd(), ["dropped share", "dropped neighbours"]),
    ("share_half", dropout_fwd(), ["dropped share"]),
    ("scale_missing", dropout_bwd(), SEEN),
    ("scale_by_p", dropout_bwd(), SEEN),
    ("mask_ignored", dropout_bwd(), SEEN),
    ("mask_inverted", dropout_bwd(), SEEN),
    ("mask_shifted", dropout_bwd(), SEEN),
    ("map_shifted", permute(), BITS),
    ("token_major_map", permute(), BITS),
    ("dropped_overwrite", permute(dropped=5), BITS),
    ("last_column_missing", permute(), BITS),
    ("first_expert_only", permute(), BITS),
    ("last_row_stale", permute(), BITS),
    ("probs_ignored", unpermute(), SEEN),
    ("last_expert_missing", unpermute(), SEEN),
    ("mean_of_experts", unpermute(probs=False), SEEN),
    ("fp8_partial_sums", unpermute("bf16"), SEEN),
    ("map_shifted", unpermute(), SEEN),
    ("worst_experts", router(), SEEN),
    ("one_expert_less", router(), SEEN),
    ("softmax_elsewhere", router("softmax_post"), SEEN),
    ("not_normalised", router("sigmoid"), SEEN),
    ("scaling_ignored", router(scaling=2.5), SEEN),
    ("bf16_scores", router(), SEEN),
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
