"""Planted faults are diagnosed: run --inject keeps the tensors, diagnose names the cause from them. Results that nothing is
wrong with are called correct."""

import json
import re
import unittest

from faults import PlantsFaults
from support import SOURCE

SEEDS = (7,)

GEMM = {"m": 96, "n": 80, "k": 512}
NORM = {"rows": 64, "hidden": 256}
ATTENTION = {"batches": 2, "heads": 4, "kv_heads": 2, "sq": 32, "sk": 96, "d": 32}
DRAWN = {"dropout": 0.2, "dropout_mask": "drawn"}
# Of every op: what the name of the first cause must match.
EVERYWHERE = {
    "bit_flip": "some_elements_wrong", "swapped_rows": "rows_moved", "all_nan": "elements_all_NaN", "all_seven": "elements_all_7",
    "all_zero": "elements_all_0", "unwritten_tile": "not_written", "nan_written": "some_elements_wrong",
    "stale_tile": r"some_elements_wrong|\w+_partly_reversed", "signs_flipped": "output_scaled=-1",
}
PRODUCT = {
    "missing_k_tail": "terms_left_out", "missing_k_tail_8": "terms_left_out", "missing_k_stage": "terms_left_out",
    "doubled_split_head": "terms_added_twice", "duplicated_k_block": "terms_added_twice", "stale_k_tail": "terms_replaced",
    "unreduced_split_k": "terms_left_out", "transposed_a": "a_transposed", "scale_half": "alpha=0.5", "scale_1_01": "alpha=1.01",
    "bias_missing": "bias=false",
}
NARROW = {"double_rounded_output": "output_through_fp16", "truncated_output": "output_truncated"}
STATISTICS = {
    "epsilon_x10": "epsilon=1e-04", "bessel": "bessel", "bf16_statistics": "statistics_in_bf16",
    "last_element_missing": "last_element_left_out", "previous_row_statistics": "statistics_of_row_before",
    "output_scale_1_01": "output_scaled=1.01",
}
TABLE = [
    ("gemm", "fp32", {**GEMM, "bias": True},
     {**EVERYWHERE, **PRODUCT, "tf32_silently": "operands_in_tf32", "tf32_truncated_inputs": "operands_truncated_to_tf32",
      "bf16_inputs": "operands_in_bf16", "bf16_output_in_fp32": "output_in_bf16",
      # Of numbers of this size the two have the same bits.
      "tf32_output_in_fp32": "output_in_(tf32|fp16)"}),
    ("gemm", "bf16", {**GEMM, "beta": 1, "bias": True},
     {**EVERYWHERE, **PRODUCT, **NARROW, "beta_ignored": "beta=0", "product_rounded": "product_rounded_before_c",
      "sum_rounded": "sum_rounded_before_bias"}),
    ("layernorm_fwd", "fp32", NORM,
     {**EVERYWHERE, **STATISTICS, "beta_missing": "beta_as_zeros", "bf16_output_in_fp32": "output_in_bf16"}),
    ("rmsnorm_fwd", "bf16", NORM, {**EVERYWHERE, **STATISTICS, **NARROW, "gamma_order_swapped": "gamma_order=hf"}),
    ("softmax_fwd", "fp32", {"batches": 2, "heads": 2, "sq": 64, "sk": 96, "scale": 0.3},
     {**EVERYWHERE, "softmax_scale_missing": "scale=1", "softmax_scale_1_01": "scale=0.303"}),
    ("quantize", "bf16", {"rows": 48, "cols": 64}, {"scale_inv_is_scale": "scale_unchanged|scale_inv_is_scale"}),
    # Of the wrong log-sum-exp alone, a missing tile of keys would say as much; but then the output would be wrong as well.
    ("attention_fwd", "bf16", ATTENTION, {"swapped_rows": "rows_moved", "stale_lse": "stale_lse"}),
    # Too many operations for a simulated tensor core, but not for this op.
    ("attention_fwd", "bf16", {"batches": 1, "heads": 2, "sq": 64, "sk": 6400, "d": 64}, {"acc16_values": "acc16_values"}),
    # What is expected depends on the mask that was drawn.
    ("attention_fwd", "bf16", {**ATTENTION, **DRAWN},
     {"dropout_scale_missing": "dropout_scale_missing", "dropout_mask_shifted": "dropout_mask_shifted"}),
    ("attention_bwd", "bf16", {**ATTENTION, **DRAWN, "statistics": "device"},
     {"swapped_rows": "rows_moved", "delta_missing": "delta_missing|row_sums_missing", "stale_lse": "stale_lse"}),
    ("rope_fwd", "bf16", {"seq": 64, "heads": 4, "dim": 64},
     {**NARROW, "wrong_pairs": "interleaved=true", "bf16_angles": "freqs_in_bf16", "tf32_angles": "freqs_in_tf32"}),
]


class Diagnoses(PlantsFaults):
    def kept(self, plan, *options):
        """Where the tensors of the plan's runs are."""
        folder = self.folder / "kept"
        self.run_cli("run", plan, "--device", "sim:sm_90", "--no-save", "--keep-tensors", folder, *options)
        return sorted(folder.iterdir())

    def diagnosis(self, file, *options):
        done = self.run_cli("diagnose", "--tensors", file, *options, "--json", "-")
        self.assertIn(done.returncode, (0, 1, 4), done.stderr)
        return json.loads(done.stdout)

    def test_planted_faults_are_named(self):
        missed = []
        for op, mode, params, faults in TABLE:
            for fault, wanted in faults.items():
                for seed in SEEDS:
                    plan = self.plan(cases=[{"op": op, "mode": mode, "backend": "sim", "params": params, "seed": seed}])
                    (file,) = self.kept(plan, "--inject", fault)
                    found = self.diagnosis(file)
                    names = [cause["name"] for cause in found["causes"]]
                    if not names or not re.fullmatch(wanted, names[0]):
                        closest = [(one["name"], one["share"], one["failing"]) for one in found["excluded"][:2]]
                        missed.append(f"{op} {mode} {fault} seed {seed}: {names}, not {wanted}; closest {closest}")
                    file.unlink()
        self.assertEqual(missed, [], "\n".join(missed))

    def names(self, case, fault, *options):
        plan = self.plan(cases=[{"backend": "sim", "seed": SEEDS[0], **case}])
        (file,) = self.kept(plan, "--inject", fault)
        found = [cause["name"] for cause in self.diagnosis(file, *options)["causes"]]
        file.unlink()
        return found

    def test_what_the_simulated_device_leaves_anyway_is_no_fault(self):
        # FP8 outputs of the reference and of the simulated device differ in many bits, with any fault and with none.
        case = {"op": "attention_fwd", "mode": "fp8_e4m3", "params": {"batches": 2, "heads": 8, "sq": 32, "sk": 96, "d": 64}}
        self.assertIn(self.names(case, "perturb_element=3"), ([], ["some_elements_wrong"]))
        case = {**case, "mode": "fp8_hybrid", "params": {**case["params"], "sq": 64, "mask": "causal"}}
        self.assertEqual(self.names(case, "perturb_row=0.3"), ["rows_scaled=1.3"])

    def test_lengths_are_asked_for(self):
        case = {"op": "attention_fwd", "mode": "fp32", "backend": "sim", "params": {"batches": 2, "heads": 2, "sq": 48, "sk": 40, "d": 16}}
        (file,) = self.kept(self.plan(cases=[case]), "--inject", "perturb_all=0.5")
        done = self.run_cli("diagnose", "--tensors", file, "--param", "mask=padding", code=2)
        self.assertIn("attention_fwd needs the tensor q_lengths (int32): queries of each sequence", done.stderr)
        names = [cause["name"] for cause in self.diagnosis(file)["causes"]]
        self.assertFalse(any("mask=padding" in name for name in names), names)
        file.unlink()

    def test_one_nan_is_no_leak(self):
        case = {"op": "attention_fwd", "mode": "bf16", "backend": "sim", "seed": 1,
                "params": {"batches": 2, "heads": 2, "sq": 65, "sk": 97, "d": 32, "mask": "causal"},
                "inputs": {"distribution": "normal", "v": {"distribution": "specials", "fraction": 0.05}}}
        for fault, leaks in (("nan_written", False), ("masked_values_leak", True)):
            (file,) = self.kept(self.plan(cases=[case]), "--inject", fault)
            causes = " ".join(cause["cause"] for cause in self.diagnosis(file)["causes"])
            self.assertEqual("masked out" in causes, leaks, causes)
            file.unlink()

    def test_exchanged_rows_beside_huge_scores_are_no_missing_sink(self):
        case = {"op": "attention_fwd", "mode": "bf16", "seed": 2831614352, "inputs": {"distribution": "log_uniform", "low": -20, "high": 20},
                "params": {"batches": 3, "heads": 9, "kv_heads": 3, "sq": 129, "sk": 129, "d": 8, "softmax": "off_by_one",
                           "layout": "bhsd"}}
        self.assertEqual(self.names(case, "swapped_rows")[0], "rows_moved")
        plain = {"op": "attention_fwd", "mode": "bf16", "params": {**ATTENTION, "softmax": "off_by_one"}}
        self.assertEqual(self.names(plain, "sink_missing")[0], "sink_missing")

    def test_exchanged_rows_that_are_nearly_alike_need_no_second_cause(self):
        # Rows far from 0 have one direction: of E4M3 numbers, two of them differ by an ulp here and there.
        for seed in (5, 10, 25):
            case = {"op": "rmsnorm_fwd", "mode": "bf16", "seed": seed, "params": {"rows": 65, "hidden": 193, "output": "fp8_e4m3"},
                    "inputs": {"distribution": "normal", "x": {"distribution": "rows"}}}
            self.assertEqual(self.names(case, "swapped_rows"), ["rows_moved"], seed)

    def test_a_tile_of_other_elements_is_one_cause(self):
        """Also where it is nearly all of the output."""
        permute = {"op": "moe_permute", "mode": "bf16", "params": {"tokens": 33, "hidden": 64, "topk": 2}}
        self.assertEqual(self.names(permute, "stale_tile"), ["y_partly_reversed"])
        router = {"op": "router_topk", "mode": "fp32", "params": {"tokens": 65, "experts": 32, "topk": 4, "score": "softmax_pre"}}
        self.assertEqual(self.names(router, "stale_tile"), ["probs_partly_reversed"])

    def test_a_fault_has_one_name_in_every_mode_and_shape(self):
        """Whether a computation in double or the bits of a simulated device prove it."""
        wanted = {
            "missing_k_tail": ("terms_left_out", [("gemm", "bf16", {"m": 8, "n": 8, "k": 8193, "trans_a": True}),
                                                  ("gemm", "fp16_acc16", {"m": 96, "n": 80, "k": 256}), ("gemm", "fp32", GEMM)]),
            "unreduced_split_k": ("terms_left_out", [("gemm", "fp16_acc16", {"m": 96, "n": 80, "k": k}) for k in (128, 256)]),
            "duplicated_k_block": ("terms_added_twice", [("gemm", mode, {"m": 96, "n": 80, "k": 100}) for mode in ("fp32", "fp16_acc16")]),
            "scale_1_01": ("alpha=1.01", [("gemm", mode, {"m": 96, "n": 80, "k": 64}) for mode in ("bf16", "fp16_acc16")]),
            "bf16_inputs": ("operands_in_bf16", [("gemm", mode, {"m": 64, "n": 48, "k": 192}) for mode in ("fp32", "fp16")]),
            "softmax_scale_missing": ("scale=1", [("attention_fwd", mode, ATTENTION) for mode in ("fp32", "bf16")]),
            "output_scale_1_01": ("output_scaled=1.01", [("attention_fwd", mode, ATTENTION) for mode in ("fp32", "bf16")]),
        }
        for fault, (name, cases) in wanted.items():
            for op, mode, params in cases:
                with self.subTest(fault=fault, mode=mode, params=params):
                    self.assertEqual(self.names({"op": op, "mode": mode, "params": params}, fault)[0], name)

    def test_two_causes_are_named(self):
        # Most terms have another factor, and some are left out: not terms that are added twice.
        self.assertEqual(self.names({"op": "gemm", "mode": "bf16", "params": {**GEMM, "beta": 1}}, "missing_k_tail",
                                    "--param", "alpha=0.5", "--effort", "thorough")[0], "alpha=1 + terms_left_out")
        # The scale that fits best makes up for the wrong keys as well; the usual one does not.
        first = self.names({"op": "attention_fwd", "mode": "fp32", "params": {**ATTENTION, "sq": 64}}, "head_map_rotated",
                           "--param", "scale=1", "--effort", "thorough")[0]
        self.assertRegex(first, r"scale=0\.1767.* \+ head_map_rotated")

        # With a padding mask, elements of padded queries would not count.
        first = self.names({"op": "attention_fwd", "mode": "fp32", "params": {**ATTENTION, "sq": 64}}, "key_tile_dropped",
                           "--param", "mask=causal", "--effort", "thorough")[0]
        self.assertRegex(first, r"mask=none \+ (key_tile_dropped|last_keys_left_out=32)$")

    def test_what_may_be_anything_is_explained_by_its_bits(self):
        case = {"op": "gemm", "mode": "fp8_e4m3", "params": {"m": 96, "n": 80, "k": 16, "trans_b": False},
                "inputs": {"distribution": "specials", "fraction": 0.003}, "tolerance": {"min_judged": 0.9}, "seed": 0}
        self.assertIn("nan_dropped", self.names(case, "nan_dropped"))

    def test_nans_that_are_moved_keep_their_bits(self):
        case = {"op": "moe_permute", "mode": "bf16", "backend": "sim", "params": {"tokens": 14, "hidden": 21, "topk": 8},
                "inputs": {"distribution": "specials", "fraction": 0.3}, "seed": 3}
        plan = self.plan(cases=[case])
        (file,) = self.kept(plan)
        self.assertEqual(self.diagnosis(file)["verdict"], "correct")
        file.unlink()
        (file,) = self.kept(plan, "--inject", "nan_payload")
        self.assertEqual(self.diagnosis(file)["verdict"], "wrong")

    def test_right_results_are_called_correct(self):
        files = self.kept(SOURCE / "configs" / "plans" / "quick.json", "--jobs", "2")
        self.assertGreater(len(files), 300)
        found = [self.diagnosis(file) for file in files]
        others = {verdict: [one["failing"] for one in found if one["verdict"] == verdict] for verdict in ("wrong", "undecided")}
        self.assertEqual(others["wrong"], [])
        # The plan asks for less of two products with NaN and infinities, four are empty, and six largest magnitudes are 0 or
        # infinite; a file does not say so.
        self.assertEqual(len(others["undecided"]), 12, others["undecided"])
        self.assertEqual(sum(reason.startswith("amax: ") for reason in others["undecided"]), 6)
        for reason in others["undecided"]:
            self.assertRegex(reason, "there are no elements|elements are finite|of the elements are judged|the only output is zero")


if __name__ == "__main__":
    unittest.main()
