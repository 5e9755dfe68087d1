"""A CI pipeline from end to end on the simulated device: the baseline, a regression, shards, known issues, and the files
that people and services read."""

import json
import shutil
import subprocess
import unittest

from support import CLEAN, CliTest

try:
    import junitparser
except ImportError:
    junitparser = None

SIM = ["--device", "sim:sm_90", "--no-save"]
SHARDS = 4


class Pipeline(CliTest):
    @classmethod
    def setUpClass(cls):
        cls.case = {"params": {"m": 32, "n": 24, "k": [31, 32, 40, 64, 65, 96]}, "mode": ["fp32", "bf16", "fp8_e4m3"],
                    "backend": "auto"}

    def setUp(self):
        super().setUp()
        self.numerics = self.plan("numerics.json", case=self.case)

    def stage(self, name, *arguments, code=0):
        done = self.run_cli("run", self.numerics, *SIM, "--json", f"{name}.json", "--junit", f"{name}.xml", "--markdown",
                            f"{name}.md", *arguments, code=code)
        return done, self.report(f"{name}.json")

    def require(self, option, command="run"):
        if option not in self.run_cli(command, "--help").stdout:
            self.skipTest(f"{command} has no {option}")

    def planted(self, report):
        """The arguments that plant a fault in one case, and its record."""
        case = next(case for case in report["cases"] if case["mode"] == "bf16")
        return ["--inject", "missing_k_tail", "--inject-case", case["digest"]], case

    def test_a_regression_against_the_baseline(self):
        _, base = self.stage("base")
        arguments, case = self.planted(base)
        self.stage("new", *arguments, code=1)
        done = self.run_cli("compare", "base.json", "new.json", "--markdown", "changes.md", "--json", "changes.json", code=1)
        self.assertIn("1 newly failing, 17 identical", done.stdout)
        self.assertRegex((self.folder / "changes.md").read_text(), r"\*\*newly failing\*\* \| " + case["id"].replace("_", r"\\_"))
        self.assertEqual([change["digest"] for change in self.report("changes.json")["cases"]], [case["digest"]])
        self.run_cli("compare", "base.json", "base.json", code=0)

    def test_four_shards_merged_are_the_whole(self):
        if "\n  merge " not in self.run_cli("--help").stdout:
            self.skipTest("there is no merge")
        _, whole = self.stage("whole")
        shards = []
        for index in range(1, SHARDS + 1):
            self.stage(f"shard-{index}", "--shard", f"{index}/{SHARDS}", "--allow-empty")
            shards.append(f"shard-{index}.json")
        self.run_cli("merge", *reversed(shards), "--json", "merged.json", code=0)
        merged, whole = self.report("merged.json"), self.without_times(whole)
        self.assertEqual(self.without_times(merged)["cases"], whole["cases"])
        self.assertEqual(merged["summary"], whole["summary"])
        self.run_cli("compare", "whole.json", "merged.json", code=0)
        self.run_cli("merge", *shards[:-1], "--json", "three.json", code=2)

    def test_a_contract_that_a_lost_case_breaks(self):
        self.require("--write-contract")
        self.stage("promised", "--write-contract", "contract.json")
        self.stage("kept", "--contract", "contract.json")
        lost, _ = self.stage("lost", "--contract", "contract.json", "--inject", "late_refusal", "--inject-case",
                             self.report("kept.json")["cases"][0]["digest"], code=1)
        self.assertIn("CONTRACT BROKEN: 1 of 18 promised cases did not run", lost.stdout)
        # The promises of one architecture say nothing of another, where FP8 does not exist.
        self.run_cli("run", self.numerics, "--device", "sim:sm_80", "--no-save", "--contract", "contract.json", code=2)

    def test_a_known_issue_until_it_expires(self):
        _, base = self.stage("base")
        arguments, _ = self.planted(base)
        for expires, code, words in [("2999-12-31", 0, "excuses   issues.json:1:"), ("2020-01-31", 1, "EXPIRED   issues.json:1:")]:
            (self.folder / "issues.json").write_text(json.dumps({"version": 1, "known_issues": [
                {"op": "gemm", "cause": "the last 1 of k is missing", "reason": "tracked as 12", "expires": expires}]}))
            done, report = self.stage("known", *arguments, "--known", "issues.json", code=code)
            self.assertIn(words, done.stdout)
            self.assertEqual(report["summary"]["xfail"], 1 - code)

    @unittest.skipIf(junitparser is None, "python3-junitparser is not installed")
    def test_junit_is_read_by_another_program(self):
        _, base = self.stage("base")
        arguments, case = self.planted(base)
        self.stage("bad", *arguments, code=1)
        found = {test.name: [type(result).__name__ for result in test.result]
                 for suite in junitparser.JUnitXml.fromfile(str(self.folder / "bad.xml")) for test in suite}
        self.assertEqual(set(found), {case["id"] for case in base["cases"]})
        self.assertEqual([name for name, results in found.items() if "Failure" in results], [case["id"]])

    def test_html_is_shown_by_a_browser(self):
        self.require("--html")
        browser = shutil.which("chromium")
        if browser is None:
            self.skipTest("chromium is not installed")
        _, base = self.stage("base")
        arguments, case = self.planted(base)
        self.stage("bad", *arguments, "--html", "bad.html", code=1)
        done = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder}/browser",
             "--virtual-time-budget=10000", "--dump-dom", f"file://{self.folder}/bad.html"],
            capture_output=True, timeout=110, env={**CLEAN, "HOME": str(self.folder)})
        self.assertIn(case["digest"][:8], done.stdout.decode("utf-8", "replace"), done.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()
