"""Workers that die or hang: the run ends, one case is lost, all others are complete, and --resume runs the lost one."""

import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

from support import CLEAN, PROGRAM, CliTest

SIM = ["--device", "sim:sm_90"]
# One case that takes a simulated device seconds, among cases that take milliseconds.
SMALL = {"op": "gemm", "mode": "bf16", "backend": "sim", "params": {"m": 32, "n": 32, "k": {"from": 16, "to": 80, "step": 16}}}
LARGE = {"op": "gemm", "mode": "fp16_acc16", "backend": "sim", "params": {"m": 2048, "n": 1024, "k": 4096}}
SMALL_CASES = 10
BUSY_TICKS = os.sysconf("SC_CLK_TCK") // 4
LARGE_ID = "gemm/m=2048,n=1024,k=4096/fp16_acc16/sim"


def worker_of(coordinator):
    """Process id of the coordinator's worker, or nothing."""
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError, IndexError):
            continue
        if parent == coordinator and b"exec" in words:
            return int(entry.name)
    return None


def cpu_ticks(process):
    """User and system time of a process, in clock ticks."""
    fields = (pathlib.Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


class Workers(CliTest):
    def run_and_hit(self, number, *arguments):
        """Sends a signal to the worker while it computes the large case; returns exit code and report."""
        plan = self.plan(cases=[SMALL, LARGE, {**SMALL, "mode": "fp16"}])
        command = [PROGRAM, "run", plan, *SIM, "--out", "out", *arguments]
        child = subprocess.Popen(command, cwd=self.folder, env=CLEAN, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        journal = self.folder / "out" / "results.jsonl"
        deadline = time.monotonic() + 60
        while not (journal.exists() and journal.read_bytes().count(b"\n") > SMALL_CASES) and time.monotonic() < deadline:
            time.sleep(0.01)
        worker = worker_of(child.pid)
        self.assertIsNotNone(worker, "there is no worker")
        self.wait_until_busy(worker, deadline)
        os.kill(worker, number)
        _, errors = child.communicate(timeout=120)
        self.assertEqual(child.returncode, 3, errors.decode())
        return self.report()

    def wait_until_busy(self, worker, deadline):
        """Waits until only the large case is left and its worker computes, which its processor time shows."""
        idle = cpu_ticks(worker)
        while cpu_ticks(worker) < idle + BUSY_TICKS:
            self.assertLess(time.monotonic(), deadline, "the worker never became busy")
            time.sleep(0.01)

    def expect_only_the_large_case_lost(self, report, status):
        lost = [case for case in report["cases"] if case["status"] != "pass"]
        self.assertEqual([case["id"] for case in lost], [LARGE_ID])
        self.assertEqual(lost[0]["status"], status)
        self.assertEqual(len(report["cases"]), SMALL_CASES + 1)
        return lost[0]["reason"]

    def test_killed_in_mid_case_then_resumed(self):
        report = self.run_and_hit(signal.SIGKILL)
        reason = self.expect_only_the_large_case_lost(report, "crashed")
        self.assertIn("SIGKILL", reason)
        self.run_cli("run", "plan.json", *SIM, "--resume", "out", code=0)
        resumed = self.report()
        self.run_cli("run", "plan.json", *SIM, "--out", "whole", code=0)
        self.assertEqual(self.without_times(resumed), self.without_times(self.report("whole/report.json")))

    def test_hanging_worker_costs_its_case_the_time_limit(self):
        report = self.run_and_hit(signal.SIGSTOP, "--timeout", "8s")
        reason = self.expect_only_the_large_case_lost(report, "timeout")
        self.assertIn("8", reason)

    def test_worker_that_ends_by_itself(self):
        report = self.run_and_hit(signal.SIGTERM)
        self.expect_only_the_large_case_lost(report, "crashed")


class Conversation(CliTest):
    """exec answers a line before it reads the next, and keeps its workers."""

    CASE = {"op": "gemm", "params": {"m": 16, "n": 16, "k": 32}, "mode": "fp32", "backend": "sim", "seed": 1}

    def setUp(self):
        super().setUp()
        self.child = subprocess.Popen([PROGRAM, "exec", *SIM], cwd=self.folder, env=CLEAN, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end)

    def end(self):
        self.child.stdin.close()
        self.child.stdout.close()
        self.child.wait(timeout=60)

    def ask(self, **fields):
        self.child.stdin.write(json.dumps({**self.CASE, **fields}) + "\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())

    def test_one_worker_serves_all_lines(self):
        self.assertEqual(self.ask()["status"], "pass")
        worker = worker_of(self.child.pid)
        self.assertIsNotNone(worker)
        for seed in range(2, 6):
            self.assertEqual(self.ask(seed=seed)["status"], "pass")
            self.assertEqual(worker_of(self.child.pid), worker)

    def test_another_environment_has_another_worker(self):
        tf32 = {"mode": "tf32", "params": {"m": 64, "n": 64, "k": 64}}
        as_asked = self.ask(**tf32)["runs"][0]["observed_class"]
        forced = self.ask(**tf32, environment={"NVIDIA_TF32_OVERRIDE": "0"})["runs"][0]["observed_class"]
        self.assertEqual([as_asked, forced, self.ask(**tf32)["runs"][0]["observed_class"]], ["tf32_rne", "fp32", "tf32_rne"])

    def test_a_worker_that_died_between_lines_is_replaced(self):
        self.assertEqual(self.ask()["status"], "pass")
        worker = worker_of(self.child.pid)
        os.kill(worker, signal.SIGKILL)
        self.assertEqual(self.ask()["status"], "pass")
        self.assertNotEqual(worker_of(self.child.pid), worker)


if __name__ == "__main__":
    unittest.main()
