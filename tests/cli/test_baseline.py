"""A run that is compared with a baseline, which a plan or --baseline names."""

import json
import unittest

from support import CliTest

SIM = ["--device", "sim:sm_90"]
SIX = {"params": {"m": 16, "n": 16, "k": [32, 33, 64]}, "mode": ["fp32", "bf16"]}


class BaselineTest(CliTest):
    def setUp(self):
        super().setUp()
        (self.folder / "plans").mkdir()
        self.plain = self.plan("plans/plan.json", case=SIX)
        self.run_cli("run", self.plain, *SIM, "--no-save", "--brief-json", "base.json", code=0)
        self.named = self.plan("plans/named.json", case=SIX, baseline="../base.json")

    def run_named(self, *arguments, code, plan=None, env=None):
        return self.run_cli("run", plan or self.named, *SIM, "--no-save", "--json", "report.json", *arguments, code=code,
                            env=env)

    def comparison(self):
        return self.report("report.json")["comparison"]

    def case(self, number):
        return self.report("base.json")["cases"][number]


class Verdict(BaselineTest):
    def test_equal_results_pass(self):
        done = self.run_named(code=0)
        self.assertIn("baseline base.json: 6 identical\n", done.stdout)
        self.assertEqual(self.comparison()["summary"]["identical"], 6)
        self.assertEqual(self.comparison()["regressions"], [])
        self.run_named("--baseline", "base.json", plan=self.plain, code=0)
        self.assertEqual(self.comparison()["baseline"], "base.json")

    def test_a_regression_fails_and_is_named_everywhere(self):
        digest = self.case(0)["digest"]
        planted = ["--inject", "scale_1_01", "--inject-case", digest, "--markdown", "summary.md", "--junit", "junit.xml"]
        done = self.run_named(*planted, code=1, env={"GITHUB_ACTIONS": "true"})
        self.assertIn("1 newly failing, 5 identical", done.stdout)
        self.assertIn("1 regression against the baseline base.json: 1 newly failing, 5 identical\n", done.stderr)
        self.assertIn("::error::1 regression against the baseline base.json", done.stderr)
        self.assertEqual([case["digest"] for case in self.comparison()["regressions"]], [digest])
        self.assertIn("| **newly failing** | gemm/", (self.folder / "summary.md").read_text())
        junit = (self.folder / "junit.xml").read_text()
        self.assertIn("against the baseline: newly failing, pass -&gt; fail\n", junit)
        self.assertIn('tests="6" failures="1"', junit, "it is told once")

    def test_what_the_verdict_allows_may_still_be_a_regression(self):
        # The case passes in the baseline and ends as xfail now.
        known = self.folder / "known.json"
        known.write_text(json.dumps({"version": 1, "known_issues": [
            {"op": "gemm", "cause": "the last 1 of k is missing", "reason": "12"}]}))
        planted = ["--inject", "missing_k_tail", "--inject-case", self.case(2)["digest"]]
        self.run_named(*planted, "--known", "known.json", code=0)
        self.assertEqual(self.comparison()["summary"]["changed status"], 1, "an excused failure is told, and does not gate")
        base = self.report("base.json")
        for case in base["cases"]:
            for run in case["runs"]:
                for output in run["outputs"].values():
                    output["xxh128"] = "0" * 32
                    for criterion in output["criteria"]:
                        criterion["measured"] = 0.001 * criterion["limit"]
        (self.folder / "base.json").write_text(json.dumps(base))
        done = self.run_named("--junit", "junit.xml", code=1)
        self.assertIn("6 regressions against the baseline base.json: 6 worse\n", done.stderr)
        junit = (self.folder / "junit.xml").read_text()
        self.assertEqual(junit.count('<failure type="worse" message="against the baseline: worse, pass -&gt; pass">'), 6)

    def test_only_selected_cases_count(self):
        self.run_named("--case", self.case(3)["digest"], code=0)
        self.assertEqual(self.comparison()["sentence"], "1 identical")
        self.run_named("--shard", "1/2", code=0)
        self.assertEqual(self.comparison()["summary"]["gone"], 0)

    def test_cases_that_the_plan_does_not_have_are_mentioned(self):
        fewer = self.plan("plans/fewer.json", case={**SIX, "mode": "fp32"})
        done = self.run_named("--baseline", "base.json", plan=fewer, code=0)
        self.assertIn("note: 3 cases of the baseline are not in the plan, so nothing is said of them\n", done.stderr)
        self.assertNotIn("note: ", self.run_named("--baseline", "base.json", "--mode", "fp32", plan=self.plain, code=0).stderr)

    def test_cases_that_do_not_run_any_more_are_gone_unless_the_budget_skipped_them(self):
        done = self.run_named("--memory", "1KiB", "--allow-empty", code=1)
        self.assertIn("6 gone", done.stdout)
        self.run_named("--budget", "1ms", "--allow-empty", code=0)
        self.assertEqual(self.comparison()["summary"]["gone"], 0)

    def test_adding_a_baseline_changes_neither_digests_nor_identity_of_the_plan(self):
        self.run_cli("run", self.plain, *SIM, "--no-save", "--json", "plain.json", code=0)
        plan = json.loads((self.folder / self.plain).read_text())
        (self.folder / self.plain).write_text(json.dumps({**plan, "baseline": "../base.json"}))
        self.run_named(plan=self.plain, code=0)
        self.assertEqual(self.report("report.json")["plan"]["digest"], self.report("plain.json")["plan"]["digest"])

    def test_a_plan_inherits_a_baseline_relative_to_the_file_that_names_it(self):
        self.plan("heir.json", case=SIX, extends="plans/named.json")
        self.assertIn("baseline base.json: 6 identical", self.run_named(plan="heir.json", code=0).stdout)

    def test_the_view_can_be_made_later(self):
        self.run_named(code=0)
        self.assertIn("baseline base.json: 6 identical\n", self.run_cli("report", "report.json", code=0).stdout)


class Refused(BaselineTest):
    def test_before_anything_runs_with_the_position_in_the_plan(self):
        other = self.plan("other.json", case={"params": {"m": 8, "n": 8, "k": 8}})
        self.run_cli("run", other, *SIM, "--no-save", "--brief-json", "other-report.json", code=0)
        (self.folder / "text.json").write_text("{}")
        broken = self.report("base.json")
        del broken["cases"][0]["runs"]
        (self.folder / "broken.json").write_text(json.dumps(broken))
        for name, words in [("missing.json", "no such file"), ("text.json", "text.json is not a report of te-numcheck"),
                            ("broken.json", "lacks what is compared"), ("plans", "not a regular file|is a folder"),
                            ("other-report.json", "its only case is not in the plan")]:
            plan = self.plan("plan.json", case=SIX, baseline=name)
            for command in (["run", plan, *SIM, "--out", "out"], ["validate", plan]):
                done = self.run_cli(*command, code=2)
                self.assertRegex(done.stderr, rf"plan.json:1:\d+: error: cannot compare with the baseline {name}: .*({words})")
                self.assertFalse((self.folder / "out").exists())
            done = self.run_cli("run", self.plain, *SIM, "--out", "out", "--baseline", name, code=2)
            self.assertRegex(done.stderr, rf"error: --baseline: cannot compare with the baseline {name}: .*({words})")
            self.assertFalse((self.folder / "out").exists())

    def test_mistakes_in_the_plan(self):
        for value, words in [(7, '"baseline" must be the name of a report'), ("", '"baseline" must be the name of a file')]:
            self.assertIn(words, self.run_cli("validate", self.plan(baseline=value), code=2).stderr)
        self.assertIn("is outside the plan's folder", self.run_cli("validate", self.named, "--sandbox", code=2).stderr)
        # A missing file in the plan's folder is missing, not outside.
        for name in ("missing.json", "missing/base.json", "missing/../base-2.json"):
            said = self.run_cli("validate", self.plan("here.json", baseline=name), "--sandbox", code=2).stderr
            self.assertRegex(said, r"here.json:1:\d+: error: cannot compare with the baseline .*: no such file")
        for name in ("../missing.json", "missing/../../missing.json"):
            said = self.run_cli("validate", self.plan("here.json", baseline=name), "--sandbox", code=2).stderr
            self.assertIn("is outside the plan's folder", said)
        second = self.plan("second.json", case={"params": {"m": 8, "n": 8, "k": 8}}, baseline="another.json")
        self.assertIn("a run is compared with one report", self.run_cli("run", self.named, second, *SIM, code=2).stderr)

    def test_a_run_does_not_overwrite_its_baseline(self):
        done = self.run_cli("run", self.named, *SIM, "--no-save", "--brief-json", "base.json", code=2)
        self.assertIn("this would overwrite", done.stderr)

    def test_a_missing_base_plan_is_missing_in_a_sandbox_too(self):
        for name in ("missing.json", "missing/plan.json"):
            said = self.run_cli("validate", self.plan("here.json", extends=name), "--sandbox", code=2).stderr
            self.assertRegex(said, r"here.json:1:\d+: error: cannot read .*: no such file")


class Annotations(BaselineTest):
    def test_failed_cases_are_annotated_ten_at_most(self):
        many = self.plan(case={"params": {"m": 16, "n": 16, "k": {"from": 32, "to": 45}}})
        for plan, annotations in [(self.plain, 6), (many, 10)]:
            done = self.run_cli("run", plan, *SIM, "--no-save", "--inject", "scale_1_01", code=1,
                                env={"GITHUB_ACTIONS": "true"})
            lines = [line for line in done.stderr.splitlines() if line.startswith("::error ")]
            self.assertEqual(len(lines), annotations)
            self.assertRegex(lines[0], r"^::error title=te-numcheck%3A fail::gemm/.* #\w{8}%0Ad: G1 .*%0Arun again: te-numcheck run ")
        self.assertEqual(lines[-1], "::error title=te-numcheck::5 more cases failed; the report has all of them")
        self.assertNotIn("::error", self.run_cli("run", many, *SIM, "--no-save", "--inject", "scale_1_01", code=1).stderr)


if __name__ == "__main__":
    unittest.main()
