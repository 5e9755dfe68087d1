"""run --jsonl: results as JSON Lines while the run goes on."""

import json
import os
import subprocess
import unittest

from support import CLEAN, PROGRAM, CliTest

try:
    import jsonschema
except ImportError:
    jsonschema = None

SIM = ["--device", "sim:sm_90", "--no-save"]
SWEEP = {"params": {"m": 8, "n": 8, "k": [16, 32, 48, 64]}}


class JsonLines(CliTest):
    def lines(self, text):
        return [json.loads(line) for line in text.splitlines()]

    def test_has_a_header_each_case_and_a_summary(self):
        done = self.run_cli("run", self.plan(case=SWEEP), *SIM, "--jsonl", "-", "--json", "report.json", code=0)
        lines = self.lines(done.stdout)
        report = self.report("report.json")
        self.assertEqual([list(line) for line in lines], [["header"]] + [["case"]] * 4 + [["summary"]])
        header, summary = lines[0]["header"], lines[-1]["summary"]
        for member in ("schema", "schema_version", "tool", "plan", "machine", "environment", "started"):
            self.assertEqual(header[member], report[member], member)
        self.assertEqual(summary, {member: report[member] for member in ("summary", "interrupted", "time_s")})
        by_digest = {line["case"]["digest"]: line["case"] for line in lines[1:-1]}
        self.assertEqual(by_digest, {record["digest"]: record for record in report["cases"]})
        self.assertIn("4 cases: 4 pass", done.stderr, "the summary is for people")

    def test_a_file_has_the_same_lines_and_the_console_its_view(self):
        (self.folder / "r.jsonl").write_text("old\n" * 1000)
        done = self.run_cli("run", self.plan(case=SWEEP), *SIM, "--jsonl", "r.jsonl", code=0)
        self.assertEqual(len(self.lines((self.folder / "r.jsonl").read_text())), 6)
        self.assertIn("worst error/limit", done.stdout)

    def test_is_printable_ascii(self):
        plan = self.plan(name="caf\u00e9 \u202e##vso[x].json", case=SWEEP)
        text = self.run_cli("run", plan, *SIM, "--jsonl", "-", code=0).stdout
        self.assertTrue(all(" " <= c <= "~" or c == "\n" for c in text))
        self.assertNotIn("##", text)
        self.assertIn("caf\u00e9", self.lines(text)[0]["header"]["plan"]["name"])

    @unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
    def test_lines_are_described_by_the_schema(self):
        schema = json.loads(self.run_cli("schema", "report", code=0).stdout)
        line = {"$ref": "#/definitions/line", "definitions": schema["definitions"]}
        validator = jsonschema.Draft7Validator(line)
        text = self.run_cli("run", self.plan(case=SWEEP), *SIM, "--inject", "nan_written", "--jsonl", "-", code=1).stdout
        for each in self.lines(text):
            validator.validate(each)
        self.assertFalse(validator.is_valid({"cases": 1}))

    def test_cases_that_did_not_run_have_lines_as_well(self):
        plan = self.plan(case={**SWEEP, "backend": "cublaslt"})
        lines = self.lines(self.run_cli("run", plan, *SIM, "--jsonl", "-", code=4).stdout)
        self.assertEqual([line["case"]["status"] for line in lines[1:-1]], ["unsupported"] * 4)
        nothing = self.run_cli("run", plan, *SIM, "-k", "nowhere", "--jsonl", "-", code=4).stdout
        self.assertEqual([list(line) for line in self.lines(nothing)], [["header"], ["summary"]])

    def test_a_resumed_run_has_all_cases(self):
        plan = self.plan(case=SWEEP)
        self.run_cli("run", plan, "--device", "sim:sm_90", "--out", "out", "--fail-fast", "1", "--inject", "bit_flip", code=1)
        lines = self.lines(self.run_cli("run", plan, "--device", "sim:sm_90", "--resume", "out", "--inject", "bit_flip",
                                        "--jsonl", "-", code=1).stdout)
        self.assertEqual(len({line["case"]["digest"] for line in lines[1:-1]}), 4)
        self.assertEqual(len(lines), 6)

    def test_a_reader_that_has_seen_enough_is_no_error(self):
        plan = self.plan(case={"params": {"m": 64, "n": 64, "k": {"from": 16, "to": 64, "step": 1}}})
        done = subprocess.run(["sh", "-c", '{ "$@"; echo "exit $?" >&2; } | head -n 1', "sh", PROGRAM, "run", plan,
                               "--device", "sim:sm_90", "--out", "out", "--jsonl", "-", "-q"],
                              cwd=self.folder, env=CLEAN, capture_output=True, text=True, timeout=60)
        self.assertIn("exit 0", done.stderr)
        self.assertNotIn("error", done.stderr)
        self.assertEqual(list(json.loads(done.stdout)), ["header"])
        self.assertEqual(self.report()["summary"]["pass"], 49, "the run went on")

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full here")
    def test_a_full_disk_does_not_lose_the_run(self):
        done = self.run_cli("run", self.plan(case=SWEEP), "--device", "sim:sm_90", "--out", "out", "--jsonl", "/dev/full", code=3)
        self.assertIn("cannot write /dev/full: No space left on device", done.stderr)
        self.assertIn("4 cases: 4 pass", done.stdout)
        self.assertEqual(self.report()["summary"]["pass"], 4)

    def test_contradictions_are_found_before_the_run(self):
        plan = self.plan(case=SWEEP)
        for options, saying in [(["--jsonl", "-", "--json", "-"], "only one of them can have stdout"),
                                (["--jsonl", "a", "--json", "./a"], "are the same file"),
                                (["--jsonl", "plan.json"], "which the plan is read from"),
                                (["--jsonl", "nowhere/a"], "there is no folder nowhere"),
                                (["--jsonl", "."], "that is a folder")]:
            with self.subTest(options=options):
                self.assertIn(saying, self.run_cli("run", plan, *SIM, *options, code=2).stderr)


if __name__ == "__main__":
    unittest.main()
