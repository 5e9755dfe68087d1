"""run --trace: what ran when, on which thread or worker."""

import json
import os
import signal
import subprocess
import time
import unittest

from support import CLEAN, PROGRAM, CliTest

SIM = ["--device", "sim:sm_90", "--no-save"]
SWEEP = {"params": {"m": 32, "n": 48, "k": [16, 32, 48, 64]}, "mode": ["fp32", "bf16"]}
HOST_STAGES = {"inputs", "draw", "store", "load", "reference", "values", "yardsticks", "comparison", "judge", "compare",
               "certify", "record", "wait for references", "wait for cases", "write results"}


class Trace(CliTest):
    def spans(self, name="t.json"):
        """The spans, each with the name of its thread, and begin and end in ns."""
        events = json.loads((self.folder / name).read_text())["traceEvents"]
        threads = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        spans = [event for event in events if event["ph"] == "X"]
        for span in spans:
            span["thread"] = threads[span["tid"]]
            span["begin"] = round(span["ts"] * 1000)
            span["end"] = round((span["ts"] + span["dur"]) * 1000)
        self.assertEqual({event["pid"] for event in events}, {events[0]["pid"]})
        return spans

    def expect_nested(self, spans):
        """Two spans of a thread lie within each other, or apart."""
        around = {}
        for span in sorted(spans, key=lambda each: (each["begin"], -each["end"])):
            open_ends = around.setdefault(span["tid"], [])
            while open_ends and open_ends[-1] <= span["begin"]:
                open_ends.pop()
            if open_ends:
                self.assertLessEqual(span["end"], open_ends[-1], span)
            open_ends.append(span["end"])


class Failures(Trace):
    def test_what_cannot_be_written_is_refused_before_the_run(self):
        plan = self.plan(case=SWEEP)
        (self.folder / "old.json").symlink_to(plan)
        for options, saying in [(["--trace", "-"], "--trace -: name a file"),
                                (["--trace", "nowhere/t"], "--trace nowhere/t: there is no folder nowhere"),
                                (["--trace", "."], "that is a folder"),
                                (["--trace", "x" * 256], "File name too long"),
                                (["--trace", "/proc/version"], "cannot"),
                                (["--trace", "t", "--json", "./t"], "--json ./t and --trace t are the same file"),
                                (["--trace", "t", "--jsonl", "t"], "are the same file"),
                                (["--trace", "plan.json"], "which the plan is read from"),
                                (["--trace", "old.json"], "which the plan is read from")]:
            with self.subTest(options=options):
                before = sorted(path.name for path in self.folder.iterdir())
                self.assertIn(saying, self.run_cli("run", plan, *SIM, *options, code=2).stderr)
                self.assertEqual(sorted(path.name for path in self.folder.iterdir()), before)
        done = self.run_cli("run", plan, "--device", "sim:sm_90", "--out", "out", "--trace", "out/report.json", code=2)
        self.assertIn("there is no folder out", done.stderr)
        (self.folder / "out").mkdir()
        done = self.run_cli("run", plan, "--device", "sim:sm_90", "--out", "out", "--trace", "out/report.json", code=2)
        self.assertIn("are the same file", done.stderr)

    def test_a_plan_with_mistakes_leaves_no_file(self):
        self.run_cli("run", self.plan(case={"mode": "bf61"}), *SIM, "--trace", "t.json", code=2)
        self.assertFalse((self.folder / "t.json").exists())

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full here")
    def test_a_full_disk_does_not_lose_the_run(self):
        done = self.run_cli("run", self.plan(case=SWEEP), "--device", "sim:sm_90", "--out", "out", "--trace", "/dev/full", code=3)
        self.assertIn("cannot write /dev/full: No space left on device", done.stderr)
        self.assertIn("8 cases: 8 pass", done.stdout)
        self.assertEqual(self.report()["summary"]["pass"], 8)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full here")
    def test_another_full_disk_does_not_lose_the_trace(self):
        self.run_cli("run", self.plan(case=SWEEP), *SIM, "--json", "/dev/full", "--trace", "t.json", code=3)
        self.assertEqual(len([span for span in self.spans() if span["name"] == "record"]), 8)

    def test_a_device_that_does_not_start_is_seen(self):
        self.run_cli("run", self.plan(case=SWEEP), "--device", "cuda:63", "--no-save", "--trace", "t.json", code=3)
        self.assertIn("start worker", {span["name"] for span in self.spans()})

    def test_an_interrupted_run_is_complete(self):
        plan = self.plan(case={"params": {"m": 64, "n": 64, "k": {"from": 1, "to": 20000, "step": 1}}})
        child = subprocess.Popen([PROGRAM, "run", plan, "--device", "sim:sm_90", "--out", "out", "--trace", "t.json"],
                                 cwd=self.folder, env=CLEAN, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        journal = self.folder / "out" / "results.jsonl"
        deadline = time.monotonic() + 60
        while not (journal.exists() and journal.read_bytes().count(b"\n") > 5) and time.monotonic() < deadline:
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        child.wait(timeout=60)
        self.assertEqual(child.returncode, 130)
        passed = {case["id"] for case in self.report()["cases"] if case["status"] == "pass"}
        spans = self.spans()
        self.assertTrue(passed)
        self.assertLessEqual(passed, {span["args"].get("case") for span in spans if span["name"] == "comparison"})
        self.assertFalse([span for span in spans if "unfinished" in span["args"]])
        self.expect_nested(spans)


class Runs(Trace):
    def test_every_case_is_seen_in_every_stage(self):
        begin = time.monotonic()
        self.run_cli("run", self.plan(case=SWEEP), *SIM, "--json", "r.json", "--trace", "t.json", code=0)
        elapsed_ns = (time.monotonic() - begin) * 1e9
        cases = {case["id"] for case in self.report("r.json")["cases"]}
        spans = self.spans()
        self.assertEqual(len(cases), 8)
        for stage in ("send", "device", "hand over", "wait for references", "comparison", "judge", "record"):
            self.assertEqual({span["args"].get("case") for span in spans if span["name"] == stage}, cases, stage)
        for stage in ("inputs", "reference"):
            groups = [span["args"] for span in spans if span["name"] == stage]
            self.assertEqual([group["cases"] for group in groups], [2] * 4, stage)
            self.assertLessEqual({group["group"] for group in groups}, cases)
        self.assertLessEqual(HOST_STAGES, {span["name"] for span in spans})
        for span in spans:
            self.assertGreaterEqual(span["begin"], 0)
            self.assertGreaterEqual(span["end"], span["begin"])
            self.assertLess(span["end"], elapsed_ns)
            self.assertNotIn("unfinished", span["args"])
        self.expect_nested(spans)
        for thread, stages in [("coordinator", {"inputs", "wait for cases"}), ("worker", {"start worker", "device"})]:
            names = {span["name"] for span in spans if span["thread"] == thread}
            self.assertLessEqual(stages - {"inputs"}, names, thread)

    def test_the_device_comes_after_the_inputs_and_before_the_verdict(self):
        self.run_cli("run", self.plan(), *SIM, "--trace", "t.json", code=0)
        first = {}
        for span in self.spans():
            first.setdefault(span["name"], span)
        for one, other in [("start worker", "send"), ("inputs", "send"), ("send", "device"), ("device", "comparison"),
                           ("reference", "comparison"), ("comparison", "record"), ("record", "write results")]:
            self.assertLessEqual(first[one]["end"], first[other]["begin"], (one, other))
        self.assertIn("ms", first["device"]["args"]["detail"])

    def test_workers_have_threads_of_their_own(self):
        case = {**SWEEP, "environment": [{}, {"NVIDIA_TF32_OVERRIDE": "0"}]}
        self.run_cli("run", self.plan(case=case), *SIM, "--trace", "t.json", code=0)
        spans = self.spans()
        starts = [span for span in spans if span["name"] == "start worker"]
        self.assertEqual({span["thread"] for span in starts}, {"worker 1", "worker 2"})
        self.assertEqual({span["args"].get("detail") for span in starts}, {None, "NVIDIA_TF32_OVERRIDE=0"})
        self.assertEqual({span["thread"] for span in spans if span["name"] == "device"}, {"worker 1", "worker 2"})

    def test_in_this_process_as_well(self):
        self.run_cli("run", self.plan(case=SWEEP), *SIM, "--in-process", "--trace", "t.json", code=0)
        spans = self.spans()
        self.assertEqual(len({span["args"]["case"] for span in spans if span["name"] == "device"}), 8)
        self.expect_nested(spans)

    def test_cases_that_do_not_run_are_recorded(self):
        plan = self.plan(case={**SWEEP, "backend": "cublaslt"})
        self.run_cli("run", plan, *SIM, "--trace", "t.json", code=4)
        self.assertEqual(len({span["args"]["case"] for span in self.spans() if span["name"] == "record"}), 8)

    def test_no_case_is_fine(self):
        self.run_cli("run", self.plan(), *SIM, "-k", "nowhere", "--trace", "t.json", code=4)
        self.assertEqual({span["name"] for span in self.spans()}, {"write results"})

    def test_says_what_ran_and_replaces_a_file(self):
        (self.folder / "t.json").write_text("old" * 10_000)
        plan = self.plan(name="caf\u00e9.json")
        self.run_cli("run", plan, *SIM, "--trace", "t.json", code=0)
        text = (self.folder / "t.json").read_text()
        self.assertTrue(text.isascii())
        about = json.loads(text)["otherData"]
        self.assertEqual(about["plan"], "caf\u00e9")
        self.assertRegex(about["tool"], r"^te-numcheck \d+\.\d+\.\d+ \(")

    def test_changes_no_result(self):
        plan = self.plan(case=SWEEP)
        self.run_cli("run", plan, *SIM, "--json", "a.json", code=0)
        self.run_cli("run", plan, *SIM, "--json", "b.json", "--trace", "t.json", code=0)
        self.assertEqual(self.without_times(self.report("a.json")), self.without_times(self.report("b.json")))


class Slowest(CliTest):
    def test_metrics_end_with_the_slowest_cases_and_their_stages(self):
        plan = self.plan(case={**SWEEP, "params": {"m": 32, "n": 48, "k": {"from": 16, "to": 96, "step": 16}}})
        text = self.run_cli("run", plan, *SIM, "-vv", "--json", "r.json", code=0).stdout
        self.assertRegex(text, r"slowest 5 cases .*\n +time +inputs +device +reference +yardsticks +comparison +case\n"
                               r"(.+\n){5}\n12 cases: 12 pass")
        self.assertNotIn("slowest", self.run_cli("report", "r.json", "-v", code=0).stdout)
        self.assertIn("slowest 5 cases", self.run_cli("report", "r.json", "-vv", code=0).stdout)
        self.assertIn("slowest 2 cases", self.run_cli("report", "r.json", "-vv", "--slowest", "2", code=0).stdout)

    def test_what_cases_share_counts_for_the_first_of_them(self):
        self.run_cli("run", self.plan(case=SWEEP), *SIM, "--json", "r.json", code=0)
        report = self.report("r.json")
        for stage in ("inputs", "reference", "yardsticks", "comparison"):
            of_cases = sum(case["time_s"][stage] for case in report["cases"])
            self.assertGreater(of_cases, 0, stage)
            self.assertAlmostEqual(of_cases, report["time_s"][stage], delta=0.2 * of_cases + 1e-3, msg=stage)


if __name__ == "__main__":
    unittest.main()
