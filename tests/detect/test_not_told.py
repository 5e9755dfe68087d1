"""Inputs that do not show a mistake in an op's formula say so, and are no worse for it."""

import json
import unittest

from faults import PlantsFaults

SIM = "sim:sm_90"


def case(op, mode, distribution, params, **inputs):
    return {"op": op, "mode": mode, "backend": "sim", "params": params, "inputs": {"distribution": distribution, **inputs}}


EPSILON = "epsilon from ten times epsilon"
GELU = "gelu by tanh from gelu by erf"
ROWS = {"rows": 64, "hidden": 256}
CODES = {"rows": 64, "cols": 256}
LARGEST = "the largest magnitude from the largest value"
SATURATED = "saturated codes from NaN"
# A case, the fault of its device that is the mistake, what it cannot tell, or what it can.
BLIND = [
    (case("rmsnorm_fwd", "fp32", "normal", ROWS, sigma=1e3), "epsilon_x10", EPSILON),
    (case("activation_fwd", "fp32", "uniform", {**ROWS, "kind": "gelu"}, low=20, high=30), "erf_for_tanh", GELU),
    (case("gemm", "bf16", "normal", {"m": 64, "n": 64, "k": 16, "epilogue": "gelu"}, sigma=1e-3), "gelu_erf", GELU),
]
# Mistakes that other parameters do not give: a case, what it cannot tell.
BLIND_TO = [
    (case("quantize", "bf16", "uniform", CODES, low=1, high=2), LARGEST),
    (case("quantize", "bf16", "normal", CODES), SATURATED),
    (case("quantize", "bf16", "normal", {**CODES, "scale": 1}), "the scale from 1"),
    (case("bias_grad", "fp32", "uniform", {**ROWS, "fused": "gelu"}, low=20, high=30), GELU),
]
MASK = "p from half of p"
BLIND_TO += [
    (case("gemm", "bf16", "normal", {"m": 64, "n": 64, "k": 64, "beta": 1, "output": "fp32"}, c={"distribution": "normal", "sigma": 1e12}),
     "the product beside its addends from none"),
    (case("dropout_fwd", "fp32", "constant", {"elements": 4096, "p": 0.3}, value=0), "1 / (1 - p) from 1"),
    (case("dropout_fwd", "bf16", "normal", {"elements": 64, "p": 0.1}), MASK),
    (case("attention_dropout", "bf16", "normal", {"batches": 1, "heads": 1, "sq": 16, "sk": 16, "d": 64}),
     "dropout from half of it"),
    (case("transpose", "bf16", "constant", CODES), "the transpose from the matrix as it lies"),
    (case("moe_permute", "bf16", "constant", {"tokens": 64, "hidden": 64, "topk": 2}),
     "places of the map from the order of tokens"),
    (case("activation_fwd", "fp32", "constant", {**ROWS, "kind": "swiglu"}), "the half that f takes from the other one"),
    (case("activation_fwd", "fp32", "constant", {**ROWS, "kind": "relu"}, value=1), "max(x, 0) from its square"),
    (case("attention_fwd", "bf16", "normal", {"batches": 1, "heads": 2, "sq": 32, "sk": 32, "d": 64, "softcap": 30},
          sigma=1e-3), "the cap of the scores from none"),
    (case("rope_fwd", "fp32", "normal", {"seq": 1, "heads": 4, "dim": 64}), "a rotation from its inverse"),
]
ALL_MISTAKES = ("amax_of_values", "mask_ignored", "mean_for_sum", "row_sums_missing", "kept_with_p", "scale_ignored",
                "untransposed", "unpermuted", "halves_swapped", "rotated_back", "sink_missing", "softmax_for_sigmoid",
                "srelu")
SEEING_ALL = [
    case("quantize", "bf16", "uniform", {**CODES, "scale": 1e3, "layout": "both"}, low=-2, high=1),
    case("dropout_bwd", "fp32", "normal", {"elements": 4096, "p": 0.3}),
    case("dropout_fwd", "bf16", "normal", {"elements": 4096, "p": 0.3}),
    case("dropout_fwd", "fp32", "normal", {"elements": 4096, "p": 0}),
    case("attention_dropout", "bf16", "normal", {"batches": 2, "heads": 2, "sq": 64, "sk": 64, "d": 64}),
    case("dequantize", "bf16", "normal", CODES, sigma=3),
    case("transpose", "fp16", "normal", CODES),
    case("moe_permute", "bf16", "normal", {"tokens": 64, "hidden": 64, "topk": 2}),
    case("moe_unpermute", "bf16", "normal", {"tokens": 64, "hidden": 64, "topk": 2, "probs": False}),
    case("activation_fwd", "bf16", "normal", {**ROWS, "kind": "geglu"}),
    case("activation_bwd", "fp32", "normal", {**ROWS, "kind": "clamped_swiglu", "limit": 1}),
    case("activation_bwd", "fp16", "normal", {**ROWS, "kind": "relu"}),
    case("rope_bwd", "bf16", "normal", {"seq": 16, "heads": 4, "dim": 2}),
    case("router_topk", "fp32", "normal", {"tokens": 64, "experts": 8, "topk": 2, "score": "sigmoid"}),
    case("attention_fwd", "fp32", "normal", {"batches": 1, "heads": 2, "sq": 32, "sk": 32, "d": 64, "softmax": "learnable",
                                             "window_left": 8, "bias": "post_scale", "softcap": 4}),
    case("attention_bwd", "fp32", "normal", {"batches": 1, "heads": 2, "sq": 32, "sk": 32, "d": 64, "softcap": 2, "bias": "alibi"}),
    case("bias_grad", "bf16", "normal", {**ROWS, "fused": "gelu"}),
    case("bias_grad", "fp32", "normal", ROWS),
    case("attention_bwd", "bf16", "normal", {"batches": 1, "heads": 2, "sq": 32, "sk": 32, "d": 64, "mask": "causal"}),
]
SEEING = [
    (case("rmsnorm_fwd", "bf16", "normal", ROWS), "epsilon_x10", EPSILON),
    (case("layernorm_fwd", "fp32", "normal", ROWS), "epsilon_x10", EPSILON),
    (case("activation_fwd", "bf16", "normal", {**ROWS, "kind": "gelu"}), "erf_for_tanh", GELU),
    (case("gemm", "fp16", "normal", {"m": 64, "n": 64, "k": 4, "epilogue": "gelu"}), "gelu_erf", GELU),
    (case("softmax_fwd", "bf16", "normal", {"sq": 64, "sk": 64, "scale": 0.5, "mask": "causal"}), "softmax_scale_missing",
     "the scale of the scores from 1"),
]


class NotTold(PlantsFaults):
    def result(self, planted, *arguments):
        plan = self.plan(cases=[planted])
        self.run_cli("run", plan, "--device", SIM, "--json", "report.json", "--no-save", *arguments, code=None)
        (result,) = json.loads((self.folder / "report.json").read_text())["cases"]
        return result

    def test_a_mistake_that_would_pass_is_told(self):
        for planted, fault, words in BLIND:
            with self.subTest(op=planted["op"], mistake=words):
                result = self.result(planted)
                self.assertIn(words, result["runs"][0]["not_told"])
                self.assertEqual(result["status"], "pass", "a fact, and no doubt")
                self.assertEqual(self.result(planted, "--inject", fault)["status"], "pass", "as it says")

    def test_a_mistake_that_would_fail_is_not(self):
        for planted, fault, words in SEEING:
            with self.subTest(op=planted["op"], mistake=words):
                self.assertNotIn(words, self.result(planted)["runs"][0]["not_told"])
                self.assertEqual(self.result(planted, "--inject", fault)["status"], "fail", "as it implies")

    def test_wrong_code_that_would_pass_is_told(self):
        for planted, words in BLIND_TO:
            with self.subTest(op=planted["op"], mistake=words):
                self.assertIn(words, self.result(planted)["runs"][0]["not_told"])

    def test_ordinary_inputs_show_all_mistakes(self):
        for planted in SEEING_ALL:
            with self.subTest(op=planted["op"], mode=planted["mode"]):
                run = self.result(planted)["runs"][0]
                self.assertEqual(run["not_told"], [])
                rejected = [fake for output in run["outputs"].values() for fake in output["certificate"]["fakes"]
                            if fake["name"] in ALL_MISTAKES]
                self.assertTrue(rejected, "none was planted")

    def test_one_output_that_tells_is_enough(self):
        """y in E4M3 does not show epsilon, rsigma in FP32 does."""
        planted = case("rmsnorm_fwd", "bf16", "normal", {**ROWS, "output": "fp8_e4m3"}, sigma=8)
        run = self.result(planted)["runs"][0]
        outcomes = {port: fake["outcome"] for port, output in run["outputs"].items()
                    for fake in output["certificate"]["fakes"] if fake["name"] == "epsilon_x10"}
        self.assertEqual(outcomes, {"y": "not_told", "rsigma": "rejected"})
        self.assertNotIn(EPSILON, run["not_told"])

    def test_the_console_says_it_if_asked(self):
        plan = self.plan(cases=[planted for planted, *_ in BLIND])
        quiet = self.run_cli("run", plan, "--device", SIM, "--no-save", code=0).stdout
        self.assertNotIn("cannot tell", quiet)
        loud = self.run_cli("run", plan, "--device", SIM, "--no-save", "-v", code=0).stdout
        self.assertRegex(loud, rf"(?m)^ *2 cases cannot tell {GELU}$")
        all_of_it = self.run_cli("run", plan, "--device", SIM, "--no-save", "-vv", code=0).stdout
        self.assertIn(f"        cannot tell {EPSILON}", all_of_it)

    def test_views_of_full_and_brief_reports_say_it(self):
        plan = self.plan(cases=[planted for planted, *_ in BLIND])
        self.run_cli("run", plan, "--device", SIM, "--no-save", "--json", "full.json", "--brief-json", "brief.json", code=0)
        for report in ("full.json", "brief.json"):
            self.run_cli("report", report, "--markdown", f"{report}.md", "--html", f"{report}.html", code=0)
            summary, page = (self.folder / f"{report}.md").read_text(), (self.folder / f"{report}.html").read_text()
            self.assertIn(f"- 1 case cannot tell {EPSILON}\n- 2 cases cannot tell {GELU}\n", summary)
            self.assertIn(f"cannot tell {GELU}", page)


if __name__ == "__main__":
    unittest.main()
