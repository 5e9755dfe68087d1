"""te-numcheck diagnose --case, and the files of run --keep-tensors: what a run did besides its outputs."""

import json
import unittest

from support import CliTest

CASE = {"op": "gemm", "mode": "bf16", "backend": "sim", "params": {"m": 96, "n": 80, "k": 64}}
ID = "gemm/m=96,n=80,k=64/bf16/sim"


class DiagnoseCase(CliTest):
    def plant(self, fault, **options):
        plan = self.plan(cases=[{**CASE, "params": {**CASE["params"], **options}}])
        self.run_cli("run", plan, "--device", "sim:sm_90", "--no-save", "--inject", fault, "--json", "report.json", "--keep-tensors",
                     "kept", code=1)

    def said(self, *arguments, code=1):
        return json.loads(self.run_cli("diagnose", *arguments, "--json", "-", code=code).stdout)

    def test_a_run_that_misbehaves_is_told_from_wrong_numbers(self):
        for fault, name in (("write_past_end", "written_outside"), ("workspace_overrun", "written_outside"),
                            ("input_overwritten", "input_overwritten"), ("race", "runs_differ")):
            with self.subTest(fault=fault):
                self.plant(fault)
                found = self.said("--case", ID, "report.json")
                self.assertEqual((found["verdict"], found["explained"]), ("misbehaved", True))
                self.assertEqual([cause["name"] for cause in found["causes"]], [name])
                text = self.run_cli("diagnose", "--case", ID, "report.json", code=1).stdout
                self.assertIn("d is correct: every gate passes", text)
                self.assertIn("but the run misbehaved", text)

    def test_wrong_numbers_are_wrong(self):
        self.plant("missing_k_tail")
        found = self.said("--case", ID, "report.json")
        self.assertEqual((found["verdict"], found["causes"][0]["name"]), ("wrong", "terms_left_out"))

    def test_kept_tensors_of_such_a_run_say_that_it_failed(self):
        self.plant("race")
        (file,) = (self.folder / "kept").iterdir()
        found = self.said("--tensors", file, code=0)
        self.assertEqual(found["verdict"], "correct")
        self.assertRegex(" ".join(found["notes"]), "the run that left these tensors failed: d: G0 determinism")

    def test_every_cause_that_is_told_is_listed(self):
        listed = self.run_cli("list", "causes", code=0).stdout
        for name in ("not_written", "stale_amax", "amax_too_large", "written_outside", "input_overwritten", "runs_differ",
                     "masked_values_leak", "exponentials_rounded", "range_of_k"):
            self.assertIn(name, listed)

    def test_what_an_op_finds_has_a_name_of_its_own(self):
        listed = {cause["name"] for cause in json.loads(self.run_cli("list", "causes", "--json", code=0).stdout)}
        case = {"op": "attention_fwd", "mode": "fp16", "backend": "sim", "inputs": {"v": {"distribution": "specials", "fraction": 0.01}},
                "params": {"sq": 32, "sk": 32, "d": 16, "mask": "causal"}}
        plan = self.plan(cases=[case])
        self.run_cli("run", plan, "--device", "sim:sm_90", "--no-save", "--inject", "masked_values_leak", "--json", "leak.json", code=1)
        (found,) = json.loads((self.folder / "leak.json").read_text())["cases"]
        findings = [finding for output in found["runs"][0]["outputs"].values() for finding in output["findings"] if finding.get("cause")]
        self.assertEqual({finding["name"] for finding in findings} & {"masked_values_leak"}, {"masked_values_leak"})
        self.assertLessEqual({finding["name"] for finding in findings}, listed)


class Groups(CliTest):
    def test_failures_with_the_same_cause_share_its_words(self):
        plan = self.plan(cases=[{**CASE, "params": {**CASE["params"], "m": [96, 128]}}])
        text = self.run_cli("run", plan, "--device", "sim:sm_90", "--no-save", "--inject", "unwritten_tile", "--diagnose", "failed",
                            code=1).stdout
        self.assertRegex(text, r"\n +2  elements of d were not written ")


if __name__ == "__main__":
    unittest.main()
