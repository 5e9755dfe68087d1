"""Views of a report: JUnit, Markdown and CSV, while it is made and later, from full and from brief reports."""

import csv
import io
import json
import unittest
import xml.etree.ElementTree as ElementTree

from support import CliTest

try:
    import junitparser
except ImportError:
    junitparser = None

SIM = ["--device", "sim:sm_90", "--no-save"]
VIEWS = {"--junit": "junit.xml", "--markdown": "summary.md", "--csv": "table.csv"}


class Views(CliTest):
    def setUp(self):
        super().setUp()
        hostile = self.plan("hostile.json", case={"params": {"m": 16, "n": 16, "k": [32, 48]}, "mode": ["fp32", "bf16"]})
        unsupported = self.plan("unsupported.json", case={"backend": "cublaslt"})
        done = self.run_cli("run", hostile, unsupported, *SIM, "--inject", "scale_1_01", "--json", "report.json",
                            "--brief-json", "brief.json", *self.files(), code=1)
        self.assertIn("4 fail", done.stdout)

    @staticmethod
    def files():
        return [word for pair in VIEWS.items() for word in pair]

    def text(self, name):
        return (self.folder / name).read_bytes().decode()

    def again(self, report):
        """The views of a stored report, by option."""
        for name in VIEWS.values():
            (self.folder / name).unlink()
        self.run_cli("report", report, *self.files(), code=0)
        return {option: self.text(name) for option, name in VIEWS.items()}

    def test_later_views_equal_those_of_the_run(self):
        before = {option: self.text(name) for option, name in VIEWS.items()}
        self.assertEqual(self.again("report.json"), before)

    def test_junit(self):
        for report in ["report.json", "brief.json"]:
            root = ElementTree.fromstring(self.again(report)["--junit"])
            self.assertEqual({name: root.get(name) for name in ["tests", "failures", "errors", "skipped"]},
                             {"tests": "5", "failures": "4", "errors": "0", "skipped": "1"})
            self.assertEqual([suite.get("name") for suite in root], ["gemm fp32", "gemm bf16"])
            failed = root.findall(".//testcase/failure")
            self.assertEqual(len(failed), 4)
            self.assertIn("d: G1 bound", failed[0].get("message"))
            self.assertEqual(len(root.findall(".//testcase/skipped")), 1)
        self.assertIn("run again: te-numcheck run", self.again("report.json")["--junit"])

    @unittest.skipIf(junitparser is None, "python3-junitparser is not installed")
    def test_junit_is_read_back(self):
        xml = junitparser.JUnitXml.fromfile(str(self.folder / "junit.xml"))
        cases = [case for suite in xml for case in suite]
        self.assertEqual((xml.tests, xml.failures, xml.errors, xml.skipped, len(cases)), (5, 4, 0, 1, 5))
        kinds = sorted(type(result).__name__ for case in cases for result in case.result)
        self.assertEqual(kinds, ["Failure"] * 4 + ["Skipped"])
        self.assertEqual(cases[0].classname, "numcheck.gemm.fp32")

    def test_hostile_names(self):
        report = self.report("report.json")
        report["plan"]["name"] = '<a & "b"|`\x1b[31m\n*'
        report["cases"][0]["reason"] = '=1+1,"x"\r\n<script>|\x1b[31m'
        report["cases"][0]["reproduce"] = "te-numcheck run 'a|b`.json' --case 1"
        (self.folder / "report.json").write_text(json.dumps(report))
        views = self.again("report.json")
        root = ElementTree.fromstring(views["--junit"])
        self.assertIn('<a & "b"|`', root.get("name"))
        rows = list(csv.DictReader(io.StringIO(views["--csv"], newline="")))
        self.assertEqual(len(rows), 5)
        self.assertTrue(rows[0]["reason"].startswith("'=1+1,\"x\""), rows[0]["reason"])
        self.assertNotIn("<script>", views["--markdown"].replace("\\<", ""))
        rows = [line for line in views["--markdown"].splitlines() if line.startswith("|") and "**fail**" in line]
        for row in rows:
            self.assertEqual(row.replace("\\|", "").count("|"), 4, row)
        self.assertIn("<br>`te-numcheck run 'a\\|b'.json' --case 1` |", views["--markdown"])
        for text in views.values():
            self.assertNotIn("\x1b", text)

    def test_csv(self):
        for report in ["report.json", "brief.json"]:
            rows = list(csv.DictReader(io.StringIO(self.again(report)["--csv"], newline="")))
            self.assertEqual([row["status"] for row in rows].count("fail"), 4)
            self.assertEqual([row["output"] for row in rows], ["d"] * 4 + [""])
            self.assertGreater(float(rows[0]["error/limit [1]"]), 1)
            self.assertIn("cublaslt", rows[4]["reason"].lower() + rows[4]["backend"])

    def test_markdown_has_failures_first(self):
        for report in ["report.json", "brief.json"]:
            text = self.again(report)["--markdown"]
            self.assertIn("4 fail, 1 unsupported", text.splitlines()[0])
            self.assertLess(text.index("**fail**"), text.index("| op | mode | backend |"))

    def test_a_step_summary_is_appended_to(self):
        (self.folder / "summary.md").write_text("before\n")
        self.run_cli("report", "report.json", "--markdown", "summary.md", env={"GITHUB_STEP_SUMMARY": "summary.md"}, code=0)
        self.assertTrue(self.text("summary.md").startswith("before\n### te-numcheck"))

    def test_the_console_again(self):
        self.assertIn("5 cases: 4 fail, 1 unsupported", self.run_cli("report", "report.json", code=0).stdout)

    def test_stdout(self):
        self.assertEqual(self.run_cli("report", "report.json", "--csv", "-", code=0).stdout.encode(),
                         (self.folder / "table.csv").read_bytes())

    def test_a_full_disk_costs_no_other_view(self):
        (self.folder / "table.csv").unlink()
        done = self.run_cli("report", "report.json", "--junit", "/dev/full", "--csv", "table.csv", code=3)
        self.assertIn("cannot write /dev/full", done.stderr)
        self.assertIn("G1 bound", self.text("table.csv"))

    def test_a_report_without_cases(self):
        empty = self.counted({**self.report("report.json"), "cases": []})
        (self.folder / "empty.json").write_text(json.dumps(empty))
        self.run_cli("report", "empty.json", *self.files(), code=0)
        self.assertIn('tests="0"', self.text("junit.xml"))
        self.assertIn("no cases", self.text("summary.md"))
        self.assertEqual(self.text("table.csv").count("\n"), 1)

    def test_mistakes(self):
        for arguments, code, words in [
            ([], 2, "needs one report, not 0"),
            (["report.json", "report.json"], 2, "not 2"),
            (["missing.json"], 3, "cannot read missing.json: no such file"),
            (["hostile.json"], 3, "not a report of te-numcheck"),
            (["brief.json"], 2, "is a brief report, which has only --brief-json, --junit, --markdown, --write-contract, --csv, --html"),
            (["brief.json", "--json", "x.json"], 2, "is a brief report"),
            (["report.json", "--junit", "report.json"], 2, "would overwrite report.json, which is read"),
            (["report.json", "--junit", "same", "--csv", "same"], 2, "are the same file"),
            (["report.json", "--junit", "-", "--csv", "-"], 2, "--junit - and --csv -: only one of them can have stdout"),
            (["report.json", "--junit", "no/folder.xml"], 2, "there is no folder no"),
        ]:
            self.assertIn(words, self.run_cli("report", *arguments, code=code).stderr, arguments)

    def test_a_report_that_lacks_what_is_shown(self):
        report = self.report("report.json")
        del report["cases"][0]["runs"]
        (self.folder / "broken.json").write_text(json.dumps(report))
        done = self.run_cli("report", "broken.json", "--csv", "-", code=3)
        self.assertIn("broken.json lacks what is shown", done.stderr)


if __name__ == "__main__":
    unittest.main()
