"""te-numcheck run: interrupts, partial results and --resume, on simulated devices."""

import signal
import subprocess
import time
import unittest

from support import CLEAN, PROGRAM, CliTest

SIM = ["--device", "sim:sm_90"]
LONG_SWEEP = {"params": {"m": 8, "n": 8, "k": {"from": 2, "to": 1000, "step": 1}}}
SWEEP = {"params": {"m": 8, "n": 8, "k": {"from": 1, "to": 12, "step": 1}}}


class Resume(CliTest):
    def test_finished_cases_keep_their_records(self):
        plan = self.plan(case=SWEEP)
        self.run_cli("run", plan, *SIM, "--out", "whole", code=0)
        self.run_cli("run", plan, *SIM, "--out", "part", code=0)
        journal = self.folder / "part" / "results.jsonl"
        lines = journal.read_text().splitlines(keepends=True)
        journal.write_text("".join(lines[:6]) + lines[6][:40])
        (self.folder / "part" / "report.json").unlink()
        self.run_cli("run", plan, *SIM, "--resume", "part", code=0)

        part, whole = (self.without_times(self.report(f"{folder}/report.json")) for folder in ("part", "whole"))
        self.assertEqual(part, whole)

    def test_broken_cases_run_again(self):
        plan = self.plan(case=LONG_SWEEP)
        self.run_cli("run", plan, *SIM, "--out", "out", "--fail-fast", "--inject", "bit_flip", code=1)
        self.assertGreater(self.report()["summary"]["skipped"], 0)
        self.run_cli("run", plan, *SIM, "--resume", "out", "--inject", "bit_flip", code=1)
        self.assertEqual(self.report()["summary"]["skipped"], 0)

    def test_refuses_another_plan_device_or_setting(self):
        self.run_cli("run", self.plan(case=SWEEP), *SIM, "--out", "out", code=0)
        self.run_cli("run", "plan.json", "--device", "sim:sm_80", "--resume", "out", code=2)
        self.run_cli("run", "plan.json", *SIM, "--repeat", "3", "--resume", "out", code=2)
        self.run_cli("run", "plan.json", *SIM, "--reference-flops", "1e6", "--resume", "out", code=2)
        self.run_cli("run", self.plan(case={"mode": "bf16"}), *SIM, "--resume", "out", code=2)
        self.run_cli("run", "plan.json", *SIM, "--resume", "nothere", code=2)


class Interrupted(CliTest):
    def interrupt(self, number, before=None):
        plan = self.plan(case={"params": {"m": 64, "n": 64, "k": {"from": 1, "to": 20000, "step": 1}}})
        child = subprocess.Popen([PROGRAM, "run", plan, *SIM, "--out", "out"], cwd=self.folder, env=CLEAN,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 preexec_fn=before)
        journal = self.folder / "out" / "results.jsonl"
        deadline = time.monotonic() + 60
        while not (journal.exists() and journal.read_bytes().count(b"\n") > 5) and time.monotonic() < deadline:
            time.sleep(0.02)
        child.send_signal(number)
        output, _ = child.communicate(timeout=60)
        return child.returncode, output.decode()

    def test_ctrl_c_leaves_a_valid_partial_report(self):
        code, output = self.interrupt(signal.SIGINT)
        self.assertEqual(code, 130)
        self.assertIn("INTERRUPTED", output)
        report = self.report()
        self.assertTrue(report["interrupted"])
        self.assertEqual(len(report["cases"]), 20000)
        self.assertGreater(report["summary"]["pass"], 0)
        self.assertGreater(report["summary"]["skipped"], 0)

    def interrupt_twice(self, plan, delay, out):
        child = subprocess.Popen([PROGRAM, "run", plan, *SIM, "--out", out], cwd=self.folder, env=CLEAN,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(delay)
        for _ in range(2):
            child.send_signal(signal.SIGINT)
            time.sleep(0.05)
        child.communicate(timeout=30)
        self.assertEqual(child.returncode, 130)
        report = self.report(f"{out}/report.json")
        self.assertTrue(report["interrupted"])
        return report

    def test_a_second_ctrl_c_ends_a_long_reference(self):
        plan = self.plan(case={"op": "attention_fwd", "mode": "bf16", "params": {"sq": 300000, "sk": 300000, "d": 8}})
        report = self.interrupt_twice(plan, 3, "out")  # after 3 s the inputs are there
        self.assertEqual([case["status"] for case in report["cases"]], ["skipped"])

    def test_a_second_ctrl_c_keeps_the_record_of_many_cases(self):
        params = {"sq": 64, "sk": 64, "d": {"from": 8, "to": 200, "step": 1}, "heads": [1, 2, 3, 4]}
        plan = self.plan(case={"op": "attention_bwd", "mode": "bf16", "params": params})
        for delay in (0.4, 0.8, 1.2):
            with self.subTest(delay=delay):
                report = self.interrupt_twice(plan, delay, f"after_{delay}")
                self.assertEqual(len(report["cases"]), 193 * 4)
                self.assertGreater(report["summary"]["skipped"], 0)

    def test_sigterm_has_its_own_code(self):
        self.assertEqual(self.interrupt(signal.SIGTERM)[0], 143)

    def test_signals_arrive_although_the_parent_blocks_them(self):
        def block():
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])

        self.assertEqual(self.interrupt(signal.SIGTERM, block)[0], 143)

    def test_closed_terminal_writes_the_report(self):
        self.assertEqual(self.interrupt(signal.SIGHUP)[0], 129)
        self.assertTrue(self.report()["interrupted"])


if __name__ == "__main__":
    unittest.main()
