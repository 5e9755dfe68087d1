"""te-numcheck compare: a pipeline that keeps a baseline, and everything that can be wrong with its files."""

import json
import time
import unittest

from support import SOURCE, CliTest
from test_report import closed, jsonschema

SIM = ["--device", "sim:sm_90", "--no-save"]


class Compare(CliTest):
    def make(self, name, *arguments, plan=None, code=None):
        self.run_cli("run", plan or self.sweep(), *SIM, "--json", name, "--brief-json", f"brief-{name}", *arguments, code=code)
        return name

    def sweep(self, ks=(32, 48, 64)):
        return self.plan(case={"params": {"m": 16, "n": 16, "k": list(ks)}, "mode": ["fp32", "bf16"]})

    def test_the_same_results_are_identical(self):
        base, new = self.make("base.json"), self.make("new.json")
        for pair in [(base, new), (f"brief-{base}", new), (base, f"brief-{new}"), (f"brief-{base}", f"brief-{new}")]:
            done = self.run_cli("compare", *pair, code=0)
            self.assertIn("6 identical\n", done.stdout)

    def test_a_planted_regression_fails_and_is_named(self):
        base = self.make("base.json", code=0)
        new = self.make("new.json", "--inject", "scale_1_01", code=1)
        done = self.run_cli("compare", f"brief-{base}", new, "--markdown", "changes.md", code=1)
        self.assertIn("6 newly failing", done.stdout)
        self.assertIn("pass -> fail: d: G1 bound", done.stdout)
        markdown = (self.folder / "changes.md").read_text()
        self.assertTrue(markdown.startswith("### te-numcheck: 6 newly failing"), markdown[:200])
        self.assertIn("**newly failing**", markdown)
        back = self.run_cli("compare", new, base, code=0)
        self.assertIn("6 fixed", back.stdout)

    def test_gates_that_are_missing(self):
        base = self.make("base.json")
        for name in ("base.json", "brief-base.json"):
            edited = self.report(name)
            for run in edited["cases"][0]["runs"]:
                run["outputs"]["d"]["criteria"] = []
            (self.folder / "edited.json").write_text(json.dumps(edited))
            done = self.run_cli("compare", base, "edited.json", code=1)
            self.assertIn("1 worse, 5 identical", done.stdout)
            self.assertIn("the new report has no gates of d, the base has", done.stdout)
            self.assertIn("6 identical", self.run_cli("compare", "edited.json", base, code=0).stdout)

    def test_a_case_with_any_number_of_runs_and_outputs(self):
        self.make("base.json")
        report = self.report("brief-base.json")
        run = report["cases"][0]["runs"][0]
        for name, order in (("one.json", 1), ("other.json", -1)):
            report["cases"][0]["runs"] = [{**run, "implementation": f"algo {i}"} for i in range(60_000)][::order]
            (self.folder / name).write_text(json.dumps(report))
        start = time.monotonic()
        self.assertIn("6 identical", self.run_cli("compare", "one.json", "other.json", code=0).stdout)
        self.assertLess(time.monotonic() - start, 15)
        report["cases"][0]["runs"] = [{**run, "outputs": {f"d{i}": run["outputs"]["d"] for i in range(20)}}]
        (self.folder / "one.json").write_text(json.dumps(report))
        done = self.run_cli("compare", "one.json", "brief-base.json", code=1)
        self.assertIn("the new report has no d0, d1, d10, d11, d12 and 15 more, the base has", done.stdout)

    def test_outputs_that_are_missing(self):
        base = self.make("base.json")
        for name in ("base.json", "brief-base.json"):
            for edit in (lambda outputs: outputs.update(e=outputs.pop("d")), lambda outputs: outputs.clear()):
                edited = self.report(name)
                for run in edited["cases"][0]["runs"]:
                    edit(run["outputs"])
                (self.folder / "edited.json").write_text(json.dumps(edited))
                done = self.run_cli("compare", base, "edited.json", code=1)
                self.assertIn("1 worse, 5 identical", done.stdout)
                self.assertIn("the new report has no d, the base has", done.stdout)

    def test_cases_that_are_gone(self):
        base, new = self.make("base.json"), self.make("new.json", plan=self.sweep([32]))
        self.assertIn("4 gone, 2 identical", self.run_cli("compare", base, new, code=1).stdout)
        done = self.run_cli("compare", base, new, "--allow-missing", code=0)
        self.assertIn("plan digest: ", done.stdout)

    def test_nothing_in_common_verifies_nothing(self):
        base, new = self.make("base.json", plan=self.sweep([32])), self.make("new.json", plan=self.sweep([48]))
        self.run_cli("compare", base, new, "--allow-missing", code=4)

    def test_reports_in_which_nothing_ran_verify_nothing(self):
        plan = self.plan(case={"backend": "cudnn", "op": "softmax_fwd", "params": {"batches": 1, "heads": 1, "sq": 4, "sk": 8}})
        self.run_cli("run", plan, "--device", "sim:sm_90", "--no-save", "--json", "none.json", code=4)
        self.run_cli("compare", "none.json", "none.json", code=4)

    def test_json(self):
        base, new = self.make("base.json"), self.make("new.json", "--inject", "scale_1_01")
        written = json.loads(self.run_cli("compare", base, new, "--json", "-", code=1).stdout)
        self.assertEqual(written["schema"], "te-numcheck/comparison")
        self.assertEqual(written["summary"]["newly failing"], 6)
        self.assertEqual({case["change"] for case in written["cases"]}, {"newly failing"})

    @unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
    def test_json_is_valid_under_the_published_schema(self):
        schema = json.loads((SOURCE / "configs/schema/comparison-1.schema.json").read_text())
        jsonschema.Draft7Validator.check_schema(schema)
        validator = jsonschema.Draft7Validator(closed(schema))
        base, changed = self.make("base.json"), self.make("new.json", "--inject", "scale_1_01")
        fewer, none = self.make("fewer.json", plan=self.sweep([32])), self.make("none.json", "--memory", "1KiB")
        for pair in [(base, base), (base, changed), (changed, base), (base, fewer), (fewer, base), (base, none), (none, base),
                     (f"brief-{base}", changed)]:
            written = json.loads(self.run_cli("compare", *pair, "--json", "-").stdout)
            self.assertEqual([f"{list(e.path)}: {e.message[:300]}" for e in validator.iter_errors(written)], [], pair)
        for broken in [{**written, "sentence": 7}, {**written, "more": 1},
                       {key: value for key, value in written.items() if key != "summary"}]:
            self.assertFalse(validator.is_valid(broken))

    def test_a_step_summary_is_appended_to_and_another_file_replaced(self):
        base = self.make("base.json")
        for name, environment in [("summary.md", {"GITHUB_STEP_SUMMARY": "summary.md"}), ("other.md", {}),
                                  ("./spelled.md", {"GITHUB_STEP_SUMMARY": str(self.folder / "spelled.md")})]:
            (self.folder / name).write_text("before\n")
            self.run_cli("compare", base, base, "--markdown", name, env=environment, code=0)
            text = (self.folder / name).read_text()
            self.assertEqual(text.startswith("before\n"), bool(environment), name)
            self.assertIn("### te-numcheck: 6 identical", text)

    def test_a_full_disk_costs_no_verdict(self):
        base = self.make("base.json")
        done = self.run_cli("compare", base, base, "--json", "/dev/full", "--markdown", "changes.md", code=3)
        self.assertIn("6 identical", done.stdout)
        self.assertIn("cannot write /dev/full", done.stderr)
        self.assertIn("6 identical", (self.folder / "changes.md").read_text())

    def test_mistakes(self):
        base = self.make("base.json")
        (self.folder / "text.json").write_text("{}")
        for arguments, code, words in [
            ([], 2, "needs two reports, BASE and NEW, not 0"),
            ([base], 2, "not 1"),
            ([base, base, base], 2, "not 3"),
            ([base, "missing.json"], 3, "cannot read missing.json: no such file"),
            ([base, "text.json"], 3, "text.json is not a report of te-numcheck"),
            ([base, base, "--allow-worse", "0.5"], 2, "--allow-worse: \"0.5\" is not a number from 1 to 1000000"),
            ([base, base, "--allow-worse", "nan"], 2, "--allow-worse: \"nan\""),
            ([base, base, "--allow-worse", "0x2"], 2, "is not a number"),
            ([base, base, "--json", "both", "--markdown", "both"], 2, "are the same file"),
            ([base, base, "--allow-worse="], 2, "--allow-worse"),
            ([base, base, "--json", base], 2, f"would overwrite {base}, which is read"),
            ([base, base, "--markdown", "-"], 2, "name a file"),
            ([base, base, "--markdown", "no/such/folder.md"], 2, "there is no folder no/such"),
        ]:
            done = self.run_cli("compare", *arguments, code=code)
            self.assertIn(words, done.stderr, arguments)
        self.assertEqual(self.report("base.json")["summary"]["pass"], 6)


if __name__ == "__main__":
    unittest.main()
