"""te-numcheck diagnose --case and run --diagnose where workers die and disks are full: a sentence, an exit code, nothing lost."""

import json
import os
import signal
import subprocess
import time
import unittest

from support import CLEAN, PROGRAM, CliTest
from test_workers import BUSY_TICKS, LARGE, LARGE_ID, SIM, cpu_ticks, worker_of

SMALL = {"op": "gemm", "mode": "fp32", "backend": "sim", "params": {"m": [48, 64], "n": 40, "k": 64, "bias": True}}


class DiagnoseTrouble(CliTest):
    def test_a_worker_that_dies_is_said(self):
        self.run_cli("run", self.plan(cases=[LARGE]), *SIM, "--no-save", "--inject", "missing_k_tail", "--json", "report.json", code=1)
        for number, name in ((signal.SIGKILL, "SIGKILL"), (signal.SIGTERM, "SIGTERM")):
            with self.subTest(signal=name):
                command = [PROGRAM, "diagnose", "--case", LARGE_ID, "report.json", "--json", "diagnosis.json"]
                child = subprocess.Popen(command, cwd=self.folder, env=CLEAN, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE)
                os.kill(self.busy_worker(child), number)
                out, errors = child.communicate(timeout=120)
                self.assertEqual((child.returncode, out), (3, b""), errors)
                self.assertIn(f"{LARGE_ID} left no outputs: the worker was killed by {name}", errors.decode())
                self.assertFalse((self.folder / "diagnosis.json").exists())

    def busy_worker(self, child):
        deadline, worker = time.monotonic() + 60, None
        while worker is None and time.monotonic() < deadline:
            worker = worker_of(child.pid)
            time.sleep(0.01)
        self.assertIsNotNone(worker, "there is no worker")
        idle = cpu_ticks(worker)
        while cpu_ticks(worker) < idle + BUSY_TICKS:
            self.assertLess(time.monotonic(), deadline, "the worker never became busy")
            time.sleep(0.01)
        return worker

    def test_a_full_disk_takes_no_diagnosis_along(self):
        run = ["run", self.plan(cases=[SMALL]), *SIM, "--no-save", "--inject", "bias_missing", "--diagnose", "failed"]
        for option in ("--json", "--junit", "--markdown", "--html"):
            with self.subTest(option=option):
                done = self.run_cli(*run, option, "/dev/full", code=3)
                self.assertIn("cannot write /dev/full: No space left on device", done.stderr)
                self.assertIn("it was computed with bias = false, not true", done.stdout)

    def test_a_full_disk_takes_no_answer_along(self):
        self.run_cli("run", self.plan(cases=[SMALL]), *SIM, "--no-save", "--inject", "bias_missing", "--keep-tensors", "kept", code=1)
        file = sorted((self.folder / "kept").iterdir())[0]
        done = self.run_cli("diagnose", "--tensors", file, "--html", "/dev/full", "--json", "diagnosis.json", code=3)
        self.assertIn("cannot write /dev/full", done.stderr)
        self.assertIn("it was computed with bias = false", done.stdout)
        self.assertEqual(json.loads((self.folder / "diagnosis.json").read_text())["causes"][0]["name"], "bias=false")
        done = self.run_cli("diagnose", "--tensors", file, "--json", "/dev/full", code=3)
        self.assertIn("it was computed with bias = false", done.stdout)
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, "diagnose", "--tensors", file], cwd=self.folder, env=CLEAN, stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"cannot write to standard output: No space left on device", done.stderr)


if __name__ == "__main__":
    unittest.main()
