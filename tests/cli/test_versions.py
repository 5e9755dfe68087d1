"""--te-lib given twice: two versions of TransformerEngine in one run. Without a GPU their cases are unsupported, but
everything else can be tested."""

import json
import os
import shutil
import unittest

from support import CliTest

SIM = ["--device", "sim:sm_90"]
ROWS = {"op": "rmsnorm_fwd", "mode": "bf16", "params": {"rows": [2, 4, 8], "hidden": 16}, "backend": ["sim", "transformer_engine"]}
NEW, OLD = "transformer_engine@2.20.2", "transformer_engine@2.11.0"


class VersionsTest(CliTest):
    def setUp(self):
        super().setUp()
        self.new = self.install("new", "2.20.2")
        self.old = self.install("old", "2.11.0")
        self.both = ["--te-lib", self.new, "--te-lib", self.old]

    def install(self, name, version, library=None):
        """Creates a package folder with the wheel of a version; returns the path of its library."""
        path = self.folder / name / "transformer_engine" / "wheel_lib" / "libtransformer_engine.so"
        path.parent.mkdir(parents=True)
        if library is None:
            path.write_text("no library")
        else:
            shutil.copy(library, path)
        (self.folder / name / f"transformer_engine_cu13-{version}.dist-info").mkdir()
        return path.relative_to(self.folder)

    def cases(self, *arguments):
        return json.loads(self.run_cli("list", "cases", *arguments, "--json", code=0).stdout)

    def ids(self, *arguments):
        return [case["id"] for case in self.cases(*arguments)]


class Cases(VersionsTest):
    def test_one_for_each_version_in_place_of_those_of_the_backend(self):
        plan = self.plan(case=ROWS)
        one = self.ids(plan, "--te-lib", self.new)
        self.assertEqual(one, self.ids(plan), "one library changes nothing")
        expected = []
        for identifier in one:
            names = [NEW, OLD] if identifier.endswith("/transformer_engine") else [None]
            expected += [identifier if name is None else identifier.replace("transformer_engine", name) for name in names]
        self.assertEqual(len(expected), 9)
        self.assertEqual(self.ids(plan, *self.both), expected)

    def test_other_backends_keep_their_digests(self):
        plan = self.plan(case=ROWS)
        before = {case["id"]: case["digest"] for case in self.cases(plan)}
        after = {case["id"]: case["digest"] for case in self.cases(plan, *self.both)}
        kept = [name for name in before if name in after]
        self.assertEqual(len(kept), 3)
        self.assertEqual([before[name] for name in kept], [after[name] for name in kept])
        self.assertEqual(len(set(after.values())), 9)

    def test_selection(self):
        plan = self.plan(case=ROWS)
        self.assertEqual(len(self.ids(plan, *self.both, "--backend", "transformer_engine")), 6)
        self.assertEqual(len(self.ids(plan, *self.both, "--backend", OLD)), 3)
        self.assertEqual(len(self.ids(plan, *self.both, "-k", "@2.20.2$")), 3)
        named = self.cases(plan, *self.both)[-1]
        self.assertTrue(named["id"].endswith(OLD))
        self.assertEqual(self.ids(plan, *self.both, "--case", named["id"]), [named["id"]])
        self.assertEqual(self.ids(plan, *self.both, "--case", named["digest"]), [named["id"]])
        self.assertIn("unknown backend", self.run_cli("list", "cases", plan, "--backend", OLD, code=2).stderr)

    def test_explain_knows_versions(self):
        plan = self.plan(case=ROWS)
        named = self.cases(plan, *self.both)[-1]
        for what, options in [(named["id"], []), (named["id"], self.both), (named["digest"], self.both)]:
            text = self.run_cli("explain", what, plan, *options, code=0).stdout
            self.assertIn(named["id"] + "\ndigest " + named["digest"], text)
        other = named["id"].replace(OLD, "transformer_engine@2.99.0")
        self.assertIn(other, self.run_cli("explain", other, plan, code=0).stdout, "a version need not be here")
        self.run_cli("explain", other, plan, *self.both, code=2)
        self.assertIn("the case belongs to", self.run_cli("explain", other, plan, "--te-lib", self.new, code=2).stderr)
        nameless = named["id"].replace(OLD, "transformer_engine@")
        self.assertIn("no version after the @", self.run_cli("explain", nameless, plan, code=2).stderr)
        self.run_cli("explain", named["id"], plan, "--te-lib", "/nonexistent", code=2)
        self.run_cli("explain", "gemm", "--te-lib", "/nonexistent", code=2)

    def test_a_sample_and_shards_keep_versions_together(self):
        plan = self.plan(case={**ROWS, "params": {"rows": {"from": 1, "to": 20, "step": 1}, "hidden": 16}})
        alone = self.ids(plan, "--sample", "7")
        both = self.ids(plan, *self.both, "--sample", "7")
        self.assertEqual(len(alone), 7)
        plain = [name.replace("@2.20.2", "").replace("@2.11.0", "") for name in both]
        self.assertEqual(list(dict.fromkeys(plain)), alone)
        parts = [self.ids(plan, *self.both, "--shard", f"{part}/3") for part in (1, 2, 3)]
        self.assertEqual(sum(map(len, parts)), 60)
        for part in parts:
            self.assertEqual(sum(NEW in name for name in part), sum(OLD in name for name in part))

    def test_equal_and_unknown_versions(self):
        same = self.install("same", "2.20.2")
        odd = self.install("odd", "x")
        names = {name.split("/")[-1] for name in self.ids(self.plan(case=ROWS), "--te-lib", self.new, "--te-lib", same, "--te-lib", odd)}
        self.assertEqual(names, {"sim", NEW + "-a", NEW + "-b", "transformer_engine@unknown"})

    def test_other_arguments_are_not_libraries(self):
        plan = self.plan(case=ROWS)
        self.assertEqual(len(self.ids("--te-lib", self.new, plan)), 6)


class Runs(VersionsTest):
    def run_both(self, *arguments, code=0):
        return self.run_cli("run", self.plan(case=ROWS), *SIM, *self.both, *arguments, code=code)

    def test_the_record_names_versions(self):
        done = self.run_both("--out", "out")
        report = self.report()
        self.assertEqual(report["summary"]["pass"], 3)
        self.assertEqual(report["summary"]["unsupported"], 6)
        self.assertEqual(report["plan"]["expanded"], 9)
        refused = [case for case in report["cases"] if case["status"] == "unsupported"]
        self.assertEqual({case["backend"] for case in refused}, {NEW, OLD})
        for case in refused:
            self.assertIn(f"the backend {case['backend']} needs a CUDA device", case["reason"])
        rows = report["library_changes"]["rows"]
        self.assertEqual(len(rows), 1)
        facts = {name: rows[0][name] for name in ("base", "other", "cases", "identical", "changed", "not_comparable", "neither")}
        self.assertEqual(facts, {"base": "2.20.2", "other": "2.11.0", "cases": 3, "identical": 0, "changed": 0,
                                 "not_comparable": 0, "neither": 3})
        self.assertEqual(report["library_changes"]["sentences"], ["rmsnorm_fwd: 3 with neither version"])
        self.assertIn("rmsnorm_fwd: 3 with neither version", done.stdout)

    def test_one_library_makes_no_table(self):
        self.run_cli("run", self.plan(case=ROWS), *SIM, "--te-lib", self.new, "--out", "out", code=0)
        self.assertNotIn("library_changes", self.report())

    def test_reproducers_name_the_libraries(self):
        self.run_both("--out", "out")
        case = self.report()["cases"][1]
        words = case["reproduce"].split()
        again = json.loads(self.run_cli(*words[1:], "--json", "-", code=4).stdout)
        self.assertEqual([c["id"] for c in again["cases"]], [case["id"]])

    def test_resume(self):
        self.run_both("--out", "whole")
        self.run_both("--out", "part")
        journal = self.folder / "part" / "results.jsonl"
        lines = journal.read_text().splitlines(keepends=True)
        self.assertEqual(len(lines), 10)
        journal.write_text("".join(lines[:4]))
        (self.folder / "part" / "report.json").unlink()
        self.run_both("--resume", "part")
        part, whole = (self.without_times(self.report(f"{folder}/report.json")) for folder in ("part", "whole"))
        self.assertEqual(part, whole)

    def test_exec_reads_cases_of_versions(self):
        self.run_both("--out", "out")
        record = self.report()["cases"][2]
        self.assertEqual(record["backend"], OLD)
        for options, code in [(self.both, 4), (["--te-lib", self.old], 4), ([], 2), (["--te-lib", self.new], 2)]:
            done = self.run_cli("exec", *SIM, *options, stdin=json.dumps(record).encode(), code=code)
            if code == 4:
                self.assertEqual(json.loads(done.stdout)["digest"], record["digest"])
            else:
                self.assertIn(f'unknown backend "{OLD}"', done.stderr)


class Doctor(VersionsTest):
    def doctor(self, *libraries, code):
        options = [word for library in libraries for word in ("--te-lib", library)]
        done = self.run_cli("doctor", *SIM, *options, code=code)
        if "not in this build" in done.stdout:
            self.skipTest("a build without CUDA has no backend transformer_engine")
        return [line for line in done.stdout.splitlines() if " transformer_engine " in line]

    def test_shows_every_library_in_its_order(self):
        first = self.install("first", "2.13.0", os.environ["TE_FAKE_LIBRARY"])
        second = self.install("second", "2.12.0", os.environ["TE_FAKE_LIBRARY"])
        lines = self.doctor(first, second, code=0)
        self.assertEqual(len(lines), 2)
        self.assertRegex(lines[0], r"^ok +transformer_engine +2\.13\.0 \(.*/first/.*; it lacks ")
        self.assertRegex(lines[1], r"^ok +transformer_engine +2\.12\.0 \(.*/second/.*; it lacks ")

    def test_one_that_does_not_load_leaves_the_others(self):
        good = self.install("good", "2.13.0", os.environ["TE_FAKE_LIBRARY"])
        lines = self.doctor(self.old, good, code=3)
        self.assertEqual([line.split()[0] for line in lines], ["BAD", "ok"])

    def test_the_option_for_the_child_process_is_not_for_users(self):
        self.assertIn("--inspect", self.run_cli("doctor", "--inspect", "cudnn", code=2).stderr)
        self.assertNotIn("--inspect", self.run_cli("doctor", "--help", code=0).stdout)


if __name__ == "__main__":
    unittest.main()
