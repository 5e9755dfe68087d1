"""te-numcheck merge: shards joined give what the whole run gives, and nothing that does not fit is joined."""

import copy
import json
import unittest

from support import CliTest

SIM = ["--device", "sim:sm_90", "--no-save"]
SHARDS = 4

CASES = [
    {"op": "gemm", "backend": "sim", "mode": ["fp32", "tf32", "bf16"], "params": {"m": 16, "n": 16, "k": [20, 33, 40, 48, 64, 72, 80, 127]},
     "environment": [{}, {"NVIDIA_TF32_OVERRIDE": "0"}, {"NVIDIA_TF32_OVERRIDE": "1"}]},
    {"op": "layernorm_fwd", "backend": "sim", "mode": "bf16", "params": {"rows": [3, 5], "hidden": [64, 96]}, "tags": ["norm"],
     "xfail": [{"match": {"hidden": 96}, "reason": "known"}]},
    {"op": "softmax_fwd", "backend": ["sim", "cudnn"], "mode": "fp32", "params": {"batches": 2, "heads": 1, "sq": 4, "sk": [8, 24]}},
]
FAULT = ["--inject", "missing_k_tail", "--inject-case", "gemm/m=16,n=16,k=127/fp32/sim"]


class MergeTest(CliTest):
    def shards(self, *arguments, count=SHARDS, names="shard-{}.json", **fields):
        """Runs them; returns the names of their reports."""
        plan = self.plan(**({"cases": CASES} | fields))
        names = [names.format(i + 1) for i in range(count)]
        for i, name in enumerate(names):
            self.run_cli("run", plan, *SIM, "--shard", f"{i + 1}/{count}", "--json", name, "--brief-json", f"brief-{name}", *arguments)
        return names

    def merge(self, *arguments, code=None):
        self.run_cli("merge", *arguments, "--json", "merged.json", code=code)
        return self.report("merged.json")

    def change(self, name, edit):
        """A copy of a report with a change."""
        report = self.report(name)
        edit(report)
        (self.folder / f"changed-{name}").write_text(json.dumps(self.counted(report)))
        return f"changed-{name}"

    def comparable(self, report):
        report = self.without_times(report)
        report.pop("shards", None)
        # Timed: the tables repeat the time on the device.
        for row in report.get("override_effect", {}).get("rows", []):
            for state in row["states"].values():
                del state["device_s"]
        return report


class Whole(MergeTest):
    def expect_equal(self, shards, whole):
        self.assertEqual(self.comparable(self.merge(*shards)), self.comparable(self.report(whole)))

    def test_merged_shards_equal_the_whole_run(self):
        shards = self.shards(*FAULT)
        self.assertGreater(min(len(self.report(name)["cases"]) for name in shards), 0)
        done = self.run_cli("run", self.plan(cases=CASES), *SIM, *FAULT, "--json", "whole.json", "--brief-json", "brief.json")
        whole = self.report("whole.json")
        for table in ("override_effect", "causes", "precision_map"):
            self.assertTrue(whole[table], table)
        self.assertGreaterEqual({case["status"] for case in whole["cases"]}, {"pass", "fail", "unsupported", "xpass"})
        self.expect_equal(shards, "whole.json")
        self.expect_equal(reversed(shards), "whole.json")
        merged = self.run_cli("merge", *shards, code=done.returncode)
        self.assertEqual(merged.stdout.splitlines()[1], "*** SIMULATED sm_90: no hardware evidence ***")
        self.assertIn(f"{len(whole['cases'])} cases: ", merged.stdout)

    def test_brief_shards_make_a_brief_report(self):
        shards = [f"brief-{name}" for name in self.shards()]
        self.run_cli("run", self.plan(cases=CASES), *SIM, "--brief-json", "whole.json")
        done = self.run_cli("merge", *shards, "--brief-json", "merged.json", "--junit", "junit.xml")
        merged, whole = self.report("merged.json"), self.report("whole.json")
        for report in (merged, whole):
            for name in ("started", "time_s"):
                del report[name]
            del report["tool"]["argv"]
            report.pop("shards", None)
        self.assertEqual(merged, whole)
        self.assertIn(f"{len(whole['cases'])} cases: ", done.stdout)
        self.assertTrue((self.folder / "junit.xml").exists())
        for option in (["--json", "x.json"], ["--out", "x"]):
            self.assertIn("brief report", self.run_cli("merge", *shards, *option, code=2).stderr)

    def test_a_selection_is_a_whole(self):
        shards = self.shards("--op", "gemm")
        self.run_cli("run", self.plan(cases=CASES), *SIM, "--op", "gemm", "--json", "whole.json")
        self.expect_equal(shards, "whole.json")

    def test_a_plan_that_chooses_cases_by_kernel(self):
        case = {"op": "gemm", "backend": "sim", "mode": "bf16", "algorithms": "all", "select": "new_configurations",
                "inputs": [{"distribution": "normal"}, {"distribution": "exact"}], "params": {"m": [8, 16, 24], "n": 8, "k": {"from": 1, "to": 100}}}
        shards = self.shards(cases=[case])
        self.run_cli("run", self.plan(cases=[case]), *SIM, "--json", "whole.json", code=0)
        self.expect_equal(shards, "whole.json")
        counts = [self.report(name)["configurations"]["verified"] for name in shards]
        whole = self.report("whole.json")["configurations"]["verified"]
        self.assertGreater(sum(counts), whole, "shards verify some configurations twice")

    def test_shards_without_cases(self):
        shards = self.shards("--op", "softmax_fwd", count=9)
        empty = [i for i, name in enumerate(shards) if not self.report(name)["cases"]]
        self.assertTrue(empty)
        done = self.run_cli("run", self.plan(cases=CASES), *SIM, "--op", "softmax_fwd", "--shard", f"{empty[0] + 1}/9", code=0)
        self.assertRegex(done.stderr, rf"nothing to run: shard {empty[0] + 1}/9 has none of the \d+ selected cases?\n")
        self.run_cli("run", self.plan(cases=CASES), *SIM, "--op", "softmax_fwd", "--json", "whole.json")
        self.expect_equal(shards, "whole.json")

    def test_nothing_at_all(self):
        shards = self.shards("--filter", "nothing", count=2)
        self.run_cli("merge", *shards, code=4)
        self.run_cli("run", self.plan(cases=CASES), *SIM, "--filter", "nothing", "--shard", "1/2", code=4)
        self.run_cli("merge", *shards, "--allow-empty", code=0)

    def test_a_shard_whose_budget_was_used_up_knows_no_machine(self):
        shards = self.shards(cases=CASES[:1], count=2)

        def skip(report):
            report["machine"].update(device=None, libraries={}, driver=None)
            for case in report["cases"]:
                case.update(status="skipped", runs=[])

        idle = [self.change(shards[0], skip), shards[1]]
        merged = self.merge(*idle, code=0)
        self.assertEqual(merged["machine"]["device"]["sm"], 90)
        self.assertEqual(merged["summary"]["skipped"], len(self.report(shards[0])["cases"]))
        unknown = self.change(shards[1], lambda r: r["machine"].update(device=None))
        self.assertIn("the device is none, but", self.run_cli("merge", shards[0], unknown, code=2).stderr)

    def test_one_report_is_a_whole(self):
        self.run_cli("run", self.plan(), *SIM, "--json", "one.json", code=0)
        self.assertEqual(self.merge("one.json", code=0), self.report("one.json"))

    def test_what_shards_do_not_share(self):
        shards = self.shards()

        def edit(report):
            report["started"] = "2001-02-03T04:05:06Z"
            report["machine"]["device"].update(index=1, uuid="GPU-other")
            report["machine"]["host"]["cpus"] = 99
            report["environment"]["CUDA_VISIBLE_DEVICES"] = "1"
            report["notes"] = ["a worker was replaced"]

        shards[2] = self.change(shards[2], edit)
        merged = self.merge(*shards)
        self.assertEqual(merged["started"], "2001-02-03T04:05:06Z")
        self.assertEqual(merged["machine"]["device"]["uuid"], "")
        self.assertEqual(merged["notes"], ["shard 3/4: a worker was replaced"])
        self.assertEqual([shard["index"] for shard in merged["shards"]], [0, 1, 2, 3])
        third = merged["shards"][2]
        self.assertEqual(third["device"], {"index": 1, "uuid": "GPU-other"})
        self.assertEqual(third["host"]["cpus"], 99)
        self.assertEqual(third["environment"]["CUDA_VISIBLE_DEVICES"], "1")
        self.assertEqual(merged["plan"]["shard"], {"index": 0, "count": 1})


class Gates(MergeTest):
    def test_the_gates_are_those_of_a_run(self):
        shards = self.shards()
        self.run_cli("merge", *shards, code=1)  # xpass
        cases = [CASES[0], CASES[2]]
        shards = self.shards(cases=cases)
        self.run_cli("merge", *shards, code=0)
        done = self.run_cli("merge", *shards, "--require-supported", code=1)
        self.assertIn("no case failed, but --fail-on unsupported makes the exit code 1: 2 unsupported", done.stderr)
        self.run_cli("merge", *shards, "--fail-on", "inconclusive", code=0)

    def test_a_contract_of_a_selection_is_that_of_a_run(self):
        plan, contract = self.plan(cases=CASES), ["--contract", "contract.json"]
        self.run_cli("run", plan, *SIM, "--write-contract", "contract.json")
        edited = json.loads((self.folder / "contract.json").read_text())
        edited["plans"][0]["cases"] += ["gemm/m=1/fp32/sim", "softmax_fwd/h=1,sq=4,sk=24,b=2/fp32/cudnn"]
        (self.folder / "contract.json").write_text(json.dumps(edited))
        self.run_cli("run", plan, *SIM, "--op", "gemm", *contract, "--json", "whole.json", code=1)
        shards = self.shards("--op", "gemm", *contract, count=2)
        merged, whole = self.merge(*shards, *contract, code=1)["contract"], self.report("whole.json")["contract"]
        self.assertGreater(whole["not_selected"], 0)
        self.assertEqual([one["id"] for one in whole["broken"] if "m=1/" in one["id"]], ["gemm/m=1/fp32/sim"])
        self.assertEqual(merged, whole)
        # A shard that did not keep it does not say what it left out on purpose.
        shards[1] = self.change(shards[1], lambda r: r.pop("contract"))
        self.assertEqual(self.merge(*shards, *contract, code=1)["contract"]["not_selected"], 0)
        self.run_cli("run", plan, *SIM, "--mode", "fp32", "--write-contract", "other.json")
        done = self.run_cli("merge", *shards, "--contract", "other.json", code=2)
        self.assertIn("--contract other.json: shard-1.json was run with another contract", done.stderr)

    def test_a_baseline_of_shards_is_refused(self):
        self.run_cli("run", self.plan(cases=CASES), *SIM, "--json", "base.json", "--filter", "gemm")
        names = self.shards("--baseline", "base.json", "--filter", "gemm", count=2)
        done = self.run_cli("merge", *names, "--json", "merged.json", code=2)
        self.assertIn("shard-1.json was compared with a baseline, which says nothing of the whole", done.stderr)

    def test_a_folder_for_the_report(self):
        shards = self.shards(cases=CASES[:1])
        done = self.run_cli("merge", *shards, "--out", "whole", code=0)
        self.assertIn("report: whole/report.json", done.stdout)
        self.assertEqual(self.report("whole/report.json")["summary"]["pass"], 72)
        self.assertIn("already has a report.json", self.run_cli("merge", *shards, "--out", "whole", code=2).stderr)


class Refused(MergeTest):
    def expect_refused(self, reports, *sentences):
        done = self.run_cli("merge", *reports, code=2)
        for sentence in sentences:
            self.assertIn(sentence, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def test_incomplete_shards(self):
        one, two, three, four = self.shards(cases=CASES[:1])
        self.expect_refused([one, two, four], "shard 3/4 is missing")
        self.expect_refused([two], "shard 1/4 is missing", "shard 3/4 is missing", "shard 4/4 is missing")
        self.expect_refused([one, two, two, three, four], f"shard 2/4 is there twice: {two} and {two}")
        other = self.shards(cases=CASES[:1], count=2, names="half-{}.json")
        self.expect_refused([one, two, three, other[1]], "half-2.json is one of 2 shards, but shard-1.json is one of 4")

    def test_reports_that_differ(self):
        shards = self.shards(cases=CASES[:1], count=2)
        changes = [
            (lambda r: r["plan"].update(digest="0" * 32), "the digest of the plan and of --known files is " + "0" * 32 + ", but shard-1.json has "),
            (lambda r: r["plan"].update(expanded=7), "the number of the plan's cases is 7, but"),
            (lambda r: r["tool"].update(version="9.9.9"), "the program's version is 9.9.9, but shard-1.json has "),
            (lambda r: r["tool"].update(revision="abc"), "the program's revision is abc, but"),
            (lambda r: r["machine"]["device"].update(name="NVIDIA X"), "the device is NVIDIA X, but shard-1.json has simulated sm_90"),
            (lambda r: r["machine"]["device"].update(sm=80), "the compute capability is 80, but"),
            (lambda r: r["machine"].update(driver="1.2"), "the driver is 1.2, but shard-1.json has none"),
            (lambda r: r["machine"]["libraries"].update(cudnn="9.1"), "the library cudnn is 9.1, but shard-1.json has none"),
            (lambda r: r["environment"].update(NVIDIA_TF32_OVERRIDE="0"),
             "the variable NVIDIA_TF32_OVERRIDE is 0, but shard-1.json has unset"),
            (lambda r: r["settings"].update(repeat=5), "--repeat is 5, but shard-1.json has 2"),
            (lambda r: r["settings"].update(reference_flops=7), "--reference-flops is 7, but shard-1.json has 1500000000000.0"),
            (lambda r: r["settings"].update(inject="nan_written"), "--inject is nan_written, but shard-1.json has none"),
            (lambda r: r.update(configurations={"asked": 1, "kept": 1, "offered": 1, "verified": 1}),
             "asked is 1, but shard-1.json has not asked for"),
            (lambda r: r.update(interrupted=True), "was interrupted: continue that run with --resume"),
            (lambda r: r["plan"]["shard"].pop("places"), "does not say where its cases belong: an older te-numcheck wrote it"),
            (lambda r: r["plan"]["shard"].update(index=2), "is shard 3 of 2, which does not exist"),
        ]
        for edit, sentence in changes:
            changed = self.change(shards[1], edit)
            self.expect_refused([shards[0], changed, *shards[2:]], f"{changed}", sentence)

    def test_all_reasons_at_once(self):
        shards = self.shards(cases=CASES[:1])

        def edit(report):
            report["interrupted"] = True
            report["tool"]["version"] = "9.9.9"

        text = self.expect_refused([shards[0], self.change(shards[1], edit)], "these reports cannot be merged")
        for words in ("shard 3/4 is missing", "shard 4/4 is missing", "was interrupted", "the program's version"):
            self.assertIn(words, text)

    def test_brief_and_full_ones(self):
        shards = self.shards(cases=CASES[:1])
        self.expect_refused([shards[0], f"brief-{shards[1]}", *shards[2:]], "brief-shard-2.json is a brief report, but shard-1.json is a full one")

    def test_cases_that_are_not_one_selection(self):
        shards = self.shards(cases=CASES[:1])
        filled = next(i for i, name in enumerate(shards) if self.report(name)["cases"])

        def expect(edit, *sentences):
            changed = [name if i != filled else self.change(name, edit) for i, name in enumerate(shards)]
            self.expect_refused(changed, *sentences)

        expect(lambda r: r["cases"].append(r["cases"][0]), "has the case gemm/", " twice")
        expect(lambda r: r["plan"]["shard"]["places"].pop(), f"has {len(self.report(shards[filled])['cases'])} cases, but places for ")
        expect(lambda r: (r["cases"].pop(), r["plan"]["shard"]["places"].pop()), "but all the reports together have 71")
        expect(lambda r: r["plan"]["shard"]["places"].reverse(), "their cases are not those of one selection")
        expect(lambda r: r["plan"]["shard"]["places"].__setitem__(0, 10**9), "is not its own")
        expect(lambda r: r["cases"][0].update(digest="0" * 32), "their cases are not those of one selection")
        # Shards of different selections.
        other = self.shards("--mode", "bf16", cases=CASES[:1], names="bf16-{}.json")
        self.expect_refused([*shards[:2], *other[2:]], "reports")
        later = next(i for i, name in enumerate(shards) if i != filled and self.report(name)["cases"])
        expect(lambda r: r["cases"].__setitem__(0, copy.deepcopy(self.report(shards[later])["cases"][0])), "both have the case")

    def test_broken_reports(self):
        shards = self.shards(cases=CASES[:1], count=2)
        for edit in [lambda r: r.pop("plan"), lambda r: r["plan"].update(shard=7), lambda r: r["plan"]["shard"].update(count="4"),
                     lambda r: r.pop("environment"), lambda r: r["machine"].update(libraries=3), lambda r: r.pop("time_s"),
                     lambda r: r["plan"]["shard"].update(places={"a": 1}), lambda r: r["plan"]["shard"].update(count=-1),
                     lambda r: r["plan"]["shard"].update(of=10**18), lambda r: r["plan"]["shard"].update(count=10**18),
                     lambda r: r.update(notes=5), lambda r: r["tool"].update(version="\n\x1b[31m::error::x")]:
            for index in (0, 1):
                self.assertTrue(self.report(shards[index])["cases"])
                reports = list(shards)
                reports[index] = self.change(shards[index], edit)
                done = self.run_cli("merge", *reports)
                self.assertIn(done.returncode, (2, 3), done.stderr)
                self.assertNotIn("internal error", done.stderr)
                self.assertNotIn("\x1b", done.stderr)

    def test_a_summary_that_the_cases_contradict(self):
        self.run_cli("run", self.plan(), *SIM, "--inject", "scale_1_01", "--json", "one.json", "--brief-json", "brief.json", code=1)
        for name in ("one.json", "brief.json"):
            self.run_cli("merge", name, code=1)
            report = self.report(name)
            report["summary"].update({"fail": 0, "pass": 1})
            (self.folder / name).write_text(json.dumps(report))
            for command in (["merge", name], ["report", name, "--csv", "x.csv"], ["compare", name, name]):
                self.assertIn(f"{name}: summary/fail is 0, but its cases make it 1", self.run_cli(*command, code=3).stderr)

    def test_mistakes(self):
        shards = self.shards(cases=CASES[:1], count=2)
        (self.folder / "text.json").write_text("{}")
        for arguments, code, words in [
            ([], 2, "name the reports of all shards"),
            ([shards[0], "missing.json"], 3, "cannot read missing.json: no such file"),
            ([shards[0], "text.json"], 3, "text.json is not a report of te-numcheck"),
            ([*shards, "--json", shards[0]], 2, f"would overwrite {shards[0]}, which is read"),
            ([*shards, "--json", "no/such/folder.json"], 2, "there is no folder no/such"),
            ([*shards, "--fail-on", "warm"], 2, "did you mean warn?"),
            ([*shards, "--json", "/dev/full"], 3, "cannot write /dev/full"),
        ]:
            self.assertIn(words, self.run_cli("merge", *arguments, code=code).stderr, arguments)


if __name__ == "__main__":
    unittest.main()
