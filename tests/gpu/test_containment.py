"""On a GPU: a library whose every fifth product makes an illegal access costs the cases of those products, an own kernel
that does so costs the one case that it is planted in, and every other case ends as without the fault, bit for bit.

Environment: as tests/cli/support.py, and TE_FAULTY_CUBLASLT: the folder of the library that faults."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from gpu import PROGRAM, skip_without_gpu

# 58 products. Those in FP32 and TF32 are classified, so each has more launches than the library lets pass.
SHAPES = {"m": [64, 100, 256], "n": [64, 96], "k": [64, 512]}
CASES = [{"op": "gemm", "mode": ["bf16", "fp32", "fp16", "tf32"], "params": SHAPES},
         {"op": "gemm", "mode": "bf16", "params": {"m": 128, "n": 128, "k": {"from": 32, "to": 320, "step": 32}}}]
OWN_CASES = [{**CASES[0], "mode": ["bf16", "fp32", "fp16"]}, CASES[1]]
FAULTY = os.environ["TE_FAULTY_CUBLASLT"]


class Containment(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="te-numcheck-gpu-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write_plan(self, backend, cases):
        plan = {"version": 1, "name": backend, "seed": 3, "defaults": {"backend": backend}, "cases": cases}
        (self.folder / "plan.json").write_text(json.dumps(plan))

    def run_plan(self, *arguments, code, **environment):
        """The cases of a run by digest."""
        path = self.folder / "report.json"
        done = subprocess.run([PROGRAM, "run", "plan.json", "--json", path, *arguments], cwd=self.folder, timeout=500,
                              env={**os.environ, **environment}, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        report = json.loads(path.read_text())
        return {case["digest"]: case for case in report["cases"]}

    def expect_as_without(self, case, clean):
        self.assertEqual(case["status"], clean["status"], case)
        self.assertEqual([run["implementation"] for run in case["runs"]], [run["implementation"] for run in clean["runs"]], case["id"])
        digests = [[output["xxh128"] for output in run["outputs"].values()] for run in case["runs"]]
        self.assertEqual(digests, [[output["xxh128"] for output in run["outputs"].values()] for run in clean["runs"]],
                         case["id"])

    def expect_reported(self, case):
        self.assertEqual(case["status"], "crashed", case)
        self.assertIn("cudaErrorIllegalAddress", case["reason"])
        self.assertRegex(case["reason"], r"it followed (the launch of|\d+ launches, from) ")

    def test_a_library_that_faults_costs_a_case_each_time(self):
        self.write_plan("cublaslt", CASES)
        clean = self.run_plan(code=0)
        self.assertEqual(len(clean), 58)
        for every in ("5", "7", "40"):
            log = self.folder / f"faults-{every}"
            faulty = self.run_plan("--lib-dir", FAULTY, code=3, NUMCHECK_FAULT_EVERY=every,
                                    NUMCHECK_FAULT_LOG=str(log))
            self.assertEqual(faulty.keys(), clean.keys())
            crashed = [case for case in faulty.values() if case["status"] == "crashed"]
            faults = log.read_text().count("fault")
            print(f"every {every}th product: {len(faulty)} cases, {faults} faults, {len(crashed)} crashed",
                  file=sys.stderr)
            self.assertEqual(len(crashed), faults)
            for digest, case in faulty.items():
                if case["status"] == "crashed":
                    self.expect_reported(case)
                else:
                    self.expect_as_without(case, clean[digest])

    def test_an_own_kernel_that_faults_costs_its_case(self):
        self.write_plan("cuda", OWN_CASES)
        clean = self.run_plan(code=0)
        passed = [digest for digest, case in clean.items() if case["status"] == "pass"]
        victim = passed[len(passed) // 2]
        faulty = self.run_plan("--inject", "illegal_address", "--inject-case", victim, code=3)
        self.expect_reported(faulty.pop(victim))
        for digest, case in faulty.items():
            self.expect_as_without(case, clean[digest])
        everywhere = self.run_plan("--inject", "illegal_address", code=3)
        for digest in passed:
            self.expect_reported(everywhere[digest])
        print(f"{len(passed)} own cases with the fault planted, each crashed by itself", file=sys.stderr)


if __name__ == "__main__":
    skip_without_gpu()
    unittest.main()
