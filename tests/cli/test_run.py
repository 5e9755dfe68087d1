"""te-numcheck run: exit codes and output. Everything on simulated devices."""

import json
import os
import pty
import subprocess
import unittest

from support import CLEAN, PROGRAM, CliTest, has_nvidia_driver

SIM = ["--device", "sim:sm_90"]
SWEEP = {"params": {"m": 8, "n": 8, "k": {"from": 1, "to": 12, "step": 1}}}

# Simulating it takes far longer than its time limit on any machine, and than anything else here.
SLOW = {"params": {"m": 2048, "n": 2048, "k": 2048}, "timeout_s": 0.5}

# Numbers so close to their mean that E4M3 rounds all of them to it, so that the mean itself would also pass.
VACUOUS = {"mode": "fp8_e4m3", "params": {"m": 4, "n": 4, "k": 64}, "inputs": {"distribution": "large_mean"}}


class ExitCodes(CliTest):
    def test_a_fault_in_one_case_only(self):
        plan = self.plan(case={"mode": ["fp32", "bf16", "fp16"]})
        listed = json.loads(self.run_cli("list", "cases", plan, "--json", code=0).stdout)
        victim = listed[1]
        for name in (victim["digest"], victim["id"]):
            self.run_cli("run", plan, *SIM, "--inject", "missing_k_tail", "--inject-case", name, "--json", "r.json", code=1)
            statuses = {case["id"]: case["status"] for case in self.report("r.json")["cases"]}
            self.assertEqual(statuses.pop(victim["id"]), "fail")
            self.assertEqual(set(statuses.values()), {"pass"})
        again = [case for case in self.report("r.json")["cases"] if case["status"] == "fail"][0]["reproduce"]
        self.assertIn("--inject-case", again)

    def test_a_fault_in_no_case_is_refused(self):
        plan = self.plan()
        done = self.run_cli("run", plan, *SIM, "--inject", "missing_k_tail", "--inject-case", "nothing", code=2)
        self.assertIn("--inject-case: no case is named \"nothing\"", done.stderr)
        done = self.run_cli("run", plan, *SIM, "--inject-case", "nothing", code=2)
        self.assertIn("needs a fault to plant", done.stderr)

    def test_0_all_passed(self):
        self.run_cli("run", self.plan(), *SIM, code=0)

    def test_1_a_case_failed(self):
        done = self.run_cli("run", self.plan(), *SIM, "--inject", "missing_k_tail", code=1)
        self.assertIn("FAIL  gemm/m=16,n=16,k=32/fp32/sim", done.stdout)
        self.assertIn("run again: te-numcheck run plan.json --device sim:sm_90 --inject missing_k_tail --case ", done.stdout)

    def test_1_a_known_failure_passed(self):
        plan = self.plan(case={"xfail": [{"match": {"k": 32}, "reason": "tracked as 12"}]})
        self.assertIn("XPASS", self.run_cli("run", plan, *SIM, code=1).stdout)

    def test_4_only_known_failures(self):
        plan = self.plan(case={"xfail": [{"match": {"k": 32}, "reason": "tracked as 12"}]})
        self.assertIn("1 xfail", self.run_cli("run", plan, *SIM, "--inject", "missing_k_tail", code=4).stdout,
                      "nothing else was verified")

    def test_a_known_failure_of_some_devices_only(self):
        match = {"k": 32, "architecture": {"from": "sm_89", "to": "sm_90"}}
        plan = self.plan(case={"xfail": [{"match": match, "reason": "tracked as 12"}]})
        arguments = ["run", plan, "--inject", "missing_k_tail", "--device"]
        self.assertIn("1 xfail", self.run_cli(*arguments, "sim:sm_90", code=4).stdout)
        self.assertIn("1 fail", self.run_cli(*arguments, "sim:sm_80", code=1).stdout)
        self.assertIn("1 pass", self.run_cli("run", plan, "--device", "sim:sm_80", code=0).stdout)
        plan = self.plan(case={"xfail": [{"match": {"libraries": {"cublaslt": "13"}}, "reason": "tracked as 12"}]})
        self.assertIn("1 pass", self.run_cli("run", plan, *SIM, code=0).stdout, "a simulated device has no library")

    def test_sums_that_all_overflow_prove_little(self):
        case = {"mode": "fp16", "params": {"m": 72, "n": 40, "k": 64}, "inputs": {"distribution": "large_mean"}}
        self.assertIn("1 inconclusive", self.run_cli("run", self.plan(case=case), *SIM, code=4).stdout)

    def test_a_known_cause_excuses_the_failures_that_it_explains(self):
        issue = {"op": "gemm", "match": {"mode": "fp32"}, "cause": "the last 1 of k is missing", "reason": "tracked as 12"}
        known = self.folder / "known.json"
        known.write_text(json.dumps({"version": 1, "known_issues": [issue]}))
        plan = self.plan(case={"params": {"m": 16, "n": 16, "k": [32, 33]}})
        arguments = ["run", plan, *SIM, "--known-issues", "known.json"]
        self.assertIn("2 xfail", self.run_cli(*arguments, "--inject", "missing_k_tail", code=4).stdout)
        failed = self.run_cli(*arguments, "--inject", "k_tail_of_next_row", code=1).stdout
        self.assertIn("2 fail", failed)
        self.assertIn("--known known.json", failed, "the command that repeats it")
        self.assertIn("2 pass", self.run_cli(*arguments, code=0).stdout, "passing is no surprise")
        known.write_text(json.dumps({"version": 1, "known_issues": [{**issue, "cause": 8}]}))
        self.assertIn("known.json:1:", self.run_cli(*arguments, code=2).stderr)
        self.assertIn("no such file", self.run_cli("run", plan, "--known-issues", "no.json", code=2).stderr)

    def test_1_wins_over_3(self):
        slow = self.plan("slow.json", case=SLOW)
        done = self.run_cli("run", self.plan(), slow, *SIM, "--inject", "missing_k_tail", code=1)
        self.assertIn("1 fail, 1 timeout", done.stdout)

    def test_3_a_case_ran_out_of_time(self):
        done = self.run_cli("run", self.plan("slow.json", case=SLOW), *SIM, code=3)
        self.assertIn("TIMEOUT", done.stdout)
        self.assertIn("timed out after 0.5 s", done.stdout)

    def test_a_case_without_a_time_limit_has_the_common_one(self):
        plan = self.plan(case={"params": SLOW["params"]})
        self.assertIn("timed out after 0.5 s", self.run_cli("run", plan, *SIM, "--timeout", "500ms", code=3).stdout)
        plan = self.plan(case={"timeout_s": 60})
        self.run_cli("run", plan, *SIM, "--timeout", "1ms", code=0)

    @unittest.skipIf(has_nvidia_driver(), "this machine has an NVIDIA driver")
    def test_3_the_device_does_not_exist(self):
        done = self.run_cli("run", self.plan(), "--device", "cuda:0", code=3)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"error: .*cuda:0 cannot be used: \w+")

    @unittest.skipIf(has_nvidia_driver(), "this machine has an NVIDIA driver")
    def test_auto_simulates_only_without_driver_and_says_so(self):
        done = self.run_cli("run", self.plan(case={"backend": "auto"}), code=0)
        self.assertIn("no NVIDIA driver found", done.stderr)
        self.assertIn("SIMULATED sm_90: no hardware evidence", done.stdout)

    def test_4_nothing_selected(self):
        done = self.run_cli("run", self.plan(), *SIM, "--filter", "nothing", code=4)
        self.assertIn("nothing to run: the selection matches none of the plan's 1 case", done.stderr)
        self.run_cli("run", self.plan(), *SIM, "--filter", "nothing", "--allow-empty", code=0)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["plan.json"], "no folder was created")

    def test_4_nothing_supported(self):
        plan = self.plan(case={"backend": "cublaslt"})
        done = self.run_cli("run", plan, *SIM, code=4)
        self.assertIn("unsupported: the backend cublaslt needs a CUDA device", done.stdout)
        self.run_cli("run", plan, *SIM, "--allow-empty", code=0)
        for option in (["--require-supported"], ["--fail-on", "unsupported"]):
            done = self.run_cli("run", plan, *SIM, *option, "--markdown", "s.md", code=1)
            self.assertIn("no case failed, but --fail-on unsupported makes the exit code 1: 1 unsupported\n", done.stderr)
            summary = (self.folder / "s.md").read_text()
            self.assertIn(": not as required, 1 unsupported\n", summary)
            self.assertIn("**These fail the run because `--fail-on` says so.**\n\n| status | case | why |\n|---|---|---|\n"
                          "| unsupported | gemm/m=16,n=16,k=32/fp32/cublaslt |", summary)
            (self.folder / "s.md").unlink()

    def test_4_nothing_fits_into_memory(self):
        done = self.run_cli("run", self.plan(), *SIM, "--memory", "1KiB", code=4)
        self.assertIn("of host memory, but --memory allows only 1.0 KiB", done.stdout)

    def test_strict_fails_inconclusive_cases(self):
        plan = self.plan(case=VACUOUS)
        self.assertIn("1 inconclusive", self.run_cli("run", plan, *SIM, code=4).stdout)
        good = self.plan("good.json", case={"mode": "bf16"})
        self.run_cli("run", plan, good, *SIM, code=0)
        self.run_cli("run", plan, good, *SIM, "--strict", code=1)
        self.run_cli("run", plan, good, *SIM, "--fail-on", "warn,xfail", code=0)
        done = self.run_cli("run", plan, good, *SIM, "--fail-on", "warn,inconclusive", "--fail-on", "xfail", code=1,
                            env={"GITHUB_ACTIONS": "true"})
        self.assertIn("no case failed, but --fail-on inconclusive makes the exit code 1: 1 inconclusive\n", done.stderr)
        self.assertIn("::error::no case failed", done.stderr)

    def test_fail_on_warn_fails_slices_that_a_library_declares(self):
        plan = self.plan(case={"mode": "bf16", "params": {"m": 64, "n": 64, "k": 512}, "algorithms": "all"})
        done = self.run_cli("run", plan, *SIM, "-v", code=0)
        self.assertIn("d: 4 slices of k are added in bf16, as the library declares; otherwise this would fail: ", done.stdout)
        self.assertIn("that rounding once would give other bits have them", done.stdout)
        self.run_cli("run", plan, *SIM, "--strict", code=0)
        done = self.run_cli("run", plan, *SIM, "--fail-on", "warn", code=1)
        self.assertIn("no case failed, but --fail-on warn makes the exit code 1: 1 warn\n", done.stderr)
        self.run_cli("run", plan, *SIM, "--reference-flops", "1e6", "--json", "r.json", code=0)
        sampled = self.report("r.json")["cases"][0]["runs"][-1]["outputs"]["d"]
        self.assertTrue(sampled["sampled"] and "declared" in sampled)
        self.assertIn("G2 block max", [gate["name"] for gate in sampled["criteria"]], "all of D is still judged")
        self.run_cli("run", plan, *SIM, "--inject", "perturb_all=5e-4", "--json", "r.json", code=1)
        sliced = self.report("r.json")["cases"][0]["runs"][-1]["outputs"]["d"]["findings"][-1]
        self.assertIn("3 slices of k are added in bf16, as the library declares, but the bits do not show it: ", sliced["text"])

    def test_what_only_fail_on_fails_is_a_failure_in_junit(self):
        plan = self.plan(case=VACUOUS)
        good, none = self.plan("good.json", case={"mode": "bf16"}), self.plan("none.json", case={"backend": "cublaslt"})
        for words, failed in [("inconclusive", ["inconclusive"]), ("inconclusive,unsupported", ["inconclusive", "unsupported"])]:
            self.run_cli("run", plan, good, none, *SIM, "--fail-on", words, "--json", "report.json", "--junit", "junit.xml", code=1)
            junit = (self.folder / "junit.xml").read_text()
            for status in failed:
                self.assertEqual(junit.count(f'<failure type="{status}" message="--fail-on {status}: '), 1)
            self.assertIn(f'tests="3" failures="{len(failed)}" errors="0" skipped="{2 - len(failed)}"', junit)
            self.run_cli("report", "report.json", "--junit", "again.xml", code=0)
            self.assertEqual((self.folder / "again.xml").read_text(), junit)
        self.run_cli("run", plan, good, *SIM, "--junit", "junit.xml", code=0)
        self.assertIn('failures="0"', (self.folder / "junit.xml").read_text())

    def test_what_failed_anyway_is_not_blamed_on_fail_on(self):
        plan = self.plan(case=VACUOUS)
        good = self.plan("good.json", case={"mode": "bf16"})
        done = self.run_cli("run", plan, good, *SIM, "--fail-on", "inconclusive", "--inject", "nan_written", code=1)
        self.assertNotIn("--fail-on", done.stderr)

    def test_words_of_fail_on_are_statuses(self):
        for words, problem in [("inconclusiv", "unknown status of --fail-on \"inconclusiv\" (did you mean inconclusive?)"),
                               ("pass", "unknown status of --fail-on \"pass\""),
                               ("warn,,xfail", "has an empty entry")]:
            done = self.run_cli("run", self.plan(), *SIM, "--fail-on", words, code=2)
            self.assertIn(problem, done.stderr)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["plan.json"])


class Output(CliTest):
    def test_console_view(self):
        plan = self.plan(case={"mode": ["fp32", "bf16"], "params": {"m": 16, "n": 16, "k": [32, 33]}})
        self.expect_golden("run.txt", self.run_cli("run", plan, *SIM, "--out", "out", code=0).stdout)

    def test_failing_view(self):
        done = self.run_cli("run", self.plan(), *SIM, "--inject", "nan_written", "--no-save", code=1)
        self.expect_golden("run-fail.txt", done.stdout)

    def test_progress_and_messages_stay_out_of_stdout(self):
        done = self.run_cli("run", self.plan(), *SIM, code=0)
        self.assertEqual(done.stderr, "")

    def test_quiet_is_one_line(self):
        done = self.run_cli("run", self.plan(), *SIM, "-q", "--no-save", code=0)
        self.assertRegex(done.stdout, r"^1 case: 1 pass    [^\n]*SIMULATED sm_90: no hardware evidence\n$")

    def test_verbose_lists_cases(self):
        plan = self.plan(case=SWEEP)
        done = self.run_cli("run", plan, *SIM, "-v", "--no-save", code=0)
        self.assertEqual(done.stdout.count("\nPASS "), 12)
        order = [line.split(",k=")[1].split("/")[0] for line in done.stdout.splitlines() if line.startswith("PASS ")]
        self.assertEqual(order, [str(k) for k in range(1, 13)], "plan order")
        self.assertIn("eff. bits", self.run_cli("run", plan, *SIM, "-vv", "--no-save", code=0).stdout)

    def test_json_on_stdout_is_only_json(self):
        done = self.run_cli("run", self.plan(), *SIM, "--json", "-", code=0)
        self.assertEqual(json.loads(done.stdout)["summary"]["pass"], 1)
        self.assertIn("1 case: 1 pass", done.stderr)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["plan.json"])

    def test_json_on_stdout_without_cases(self):
        done = self.run_cli("run", self.plan(), *SIM, "--json", "-", "--filter", "nothing", code=4)
        self.assertEqual(json.loads(done.stdout)["summary"]["cases"], 0)

    def test_json_to_several_places(self):
        done = self.run_cli("run", self.plan(), *SIM, "--json", "a.json", "--json", "-", "--out", "out", code=0)
        self.assertEqual(json.loads(done.stdout), self.report("a.json"))
        self.assertEqual(self.report("a.json"), self.report())

    def test_a_run_leaves_a_folder_unless_told_not_to(self):
        self.run_cli("run", self.plan(), *SIM, "--no-save", code=0)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["plan.json"])
        self.run_cli("run", self.plan(), *SIM, code=0)
        self.run_cli("run", self.plan(), *SIM, code=0)
        folders = list(self.folder.glob("te-numcheck-*"))
        self.assertEqual(len(folders), 2)
        self.assertEqual(sorted(p.name for p in folders[0].iterdir()), ["report.json", "results.jsonl"])

    def test_a_report_is_never_overwritten(self):
        self.run_cli("run", self.plan(), *SIM, "--out", "out", code=0)
        self.assertIn("it already has a report.json", self.run_cli("run", self.plan(), *SIM, "--out", "out", code=2).stderr)

    def test_colour(self):
        plan = self.plan()
        arguments = ["run", plan, *SIM, "--no-save"]
        for env, option, coloured in [({}, [], False), ({"CLICOLOR_FORCE": "1"}, [], True), ({"CLICOLOR_FORCE": "0"}, [], False),
                                      ({"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, [], False),
                                      ({"CLICOLOR_FORCE": "1", "NO_COLOR": ""}, [], True),
                                      ({"NO_COLOR": "1"}, ["--color", "always"], True),
                                      ({"CLICOLOR_FORCE": "1"}, ["--color=never"], False),
                                      ({"TE_NUMCHECK_COLOR": "always"}, [], True),
                                      ({"TE_NUMCHECK_COLOR": "always"}, ["--color", "never"], False)]:
            with self.subTest(env=env, option=option):
                self.assertEqual("\x1b[" in self.run_cli(*arguments, *option, env=env, code=0).stdout, coloured)

    def test_the_device_can_come_from_the_environment(self):
        done = self.run_cli("run", self.plan(), "--no-save", env={"TE_NUMCHECK_DEVICE": "sim:sm_80"}, code=0)
        self.assertIn("SIMULATED sm_80", done.stdout)

    def test_set_variables_are_shown(self):
        done = self.run_cli("run", self.plan(), *SIM, "--no-save", env={"NVIDIA_TF32_OVERRIDE": "0"}, code=0)
        self.assertIn("NVIDIA_TF32_OVERRIDE=0", done.stdout)

    def test_a_device_is_written_to_and_not_replaced(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        for option in ("--json", "--brief-json"):
            device = self.folder / f"device{option}"
            device.symlink_to("/dev/full")  # replacing it would harm nobody
            done = self.run_cli("run", self.plan(), "--device", "sim:sm_90", "--no-save", option, device, code=3)
            self.assertIn("No space left", done.stderr)
            self.assertIn("1 case: 1 pass", done.stdout, "results are shown nevertheless")
            self.assertTrue(device.is_symlink() and device.is_char_device())

    def test_a_full_disk_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, "list", "modes"], env=CLEAN, stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"cannot write to standard output", done.stderr)


    def test_the_precision_map_names_the_border_between_classes(self):
        plan = self.plan(case={"mode": ["fp32", "tf32", "bf16"], "params": {"m": 16, "n": 16, "k": [32, 33, 64]}})
        arguments = ["run", plan, *SIM, "--json", "r.json"]
        self.assertNotIn("precision map", self.run_cli(*arguments, code=0).stdout, "every request got its class")
        rows = self.report("r.json")["precision_map"]
        self.assertEqual([(row["mode"], row["class"], row["where"], row["cases"]) for row in rows],
                         [("fp32", "fp32", "everywhere", 3), ("tf32", "tf32_rne", "everywhere", 3)])
        odd = "gemm/m=16,n=16,k=33/fp32/sim"
        done = self.run_cli(*arguments, "--inject", "tf32_silently", "--inject-case", odd, code=1)
        self.assertRegex(done.stdout, r"gemm  fp32     sim      A B      FP32      FP32   k % 2 = 0 +2  m=16,n=16,k=32\n"
                                      r" +TF32   k % 2 != 0 +1  m=16,n=16,k=33\n")
        rows = self.report("r.json")["precision_map"]
        self.assertEqual([(row["class"], row["border"], row["where"]) for row in rows[:2]],
                         [("fp32", "shape", "k % 2 = 0"), ("tf32_rne", "shape", "k % 2 != 0")])
        self.assertEqual(rows[1]["smallest_id"], odd)

    def test_the_precision_map_keeps_the_values_of_the_variable_apart(self):
        environment = [{"NVIDIA_TF32_OVERRIDE": value} for value in (None, "0", "1")]
        plan = self.plan(case={"environment": environment})
        self.assertIn("fp32 override=1", self.run_cli("run", plan, *SIM, "-v", "--json", "r.json", code=0).stdout)
        self.assertEqual([(row["request"], row["class"]) for row in self.report("r.json")["precision_map"]],
                         [({}, "fp32"), ({"NVIDIA_TF32_OVERRIDE": "0"}, "fp32"), ({"NVIDIA_TF32_OVERRIDE": "1"}, "tf32_rne")])


class OnATerminal(CliTest):
    def run_on_tty(self, *arguments, env=None):
        """What the program writes to a terminal, and its exit code."""
        main, side = pty.openpty()
        child = subprocess.Popen([PROGRAM, *arguments], cwd=self.folder, env={**CLEAN, "TERM": "xterm", **(env or {})},
                                 stdin=subprocess.DEVNULL, stdout=side, stderr=side)
        os.close(side)
        text = b""
        while True:
            try:
                piece = os.read(main, 65536)
            except OSError:
                break
            if not piece:
                break
            text += piece
        os.close(main)
        return child.wait(), text.decode()

    def test_status_line_and_colour(self):
        code, text = self.run_on_tty("run", self.plan(case=SWEEP), *SIM, "--no-save")
        self.assertEqual(code, 0)
        self.assertIn("\r\x1b[K[", text)
        self.assertIn("/12] ", text)
        self.assertIn("\x1b[32m", text)

    def test_never_means_never(self):
        _, text = self.run_on_tty("run", self.plan(case=SWEEP), *SIM, "--no-save", "--progress", "never", "--color", "never")
        self.assertNotIn("\x1b", text)

    def test_a_dumb_terminal_gets_plain_text(self):
        _, text = self.run_on_tty("run", self.plan(case=SWEEP), *SIM, "--no-save", env={"TERM": "dumb"})
        self.assertNotIn("\x1b", text)


if __name__ == "__main__":
    unittest.main()
