"""On a GPU: a cuBLASLt that leaves out, repeats or misreads part of k after every product is caught in every mode, and
each failure names the range. The same library without a fault trips nothing.

Environment: as tests/cli/support.py, and TE_K_FAULT_CUBLASLT: the folder of that library (k_fault_cublaslt.cpp)."""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from gpu import PROGRAM, skip_without_gpu

WRAPPER = os.environ["TE_K_FAULT_CUBLASLT"]
MODES = ("fp32", "fp32_pedantic", "tf32", "fp32_fast16f", "fp32_fast16bf", "bf16x9", "bf16", "fp16", "fp16_acc16", "fp8_e4m3",
         "fp8_hybrid")
# What every device since sm_80 has.
EVERYWHERE = ("fp32", "fp32_pedantic", "tf32", "fp32_fast16f", "fp32_fast16bf", "bf16", "fp16", "fp16_acc16")


def slice_begin(which, k, split):
    """Where k_fault_plan.cpp takes a slice of k to begin."""
    return which * k // max(2, split)


def missing_split(k, split):
    begin, end = slice_begin(1, k, split), slice_begin(2, k, split)
    return f"the last {k - begin} of k are missing" if end == k else f"k = {begin} to {end - 1} are missing"


# By fault, the cause that a finding must name, of k and the algorithm's split.
CAUSES = {
    "missing_k_tail": lambda k, split: "the last 1 of k is missing",
    "missing_k_tail_8": lambda k, split: "the last 8 of k are missing",
    "missing_k_stage": lambda k, split: "k = 64 to 127 are missing",
    "unreduced_split_k": lambda k, split: f"the last {k - k // 2} of k are missing",
    "missing_split": missing_split,
    "doubled_split_head": lambda k, split: f"k = {slice_begin(1, k, split)} is counted twice",
    "stale_k_tail": lambda k, split: "the last 8 of k are read from 64 earlier in k",
    "k_tail_of_next_row": lambda k, split: "the last 8 of k are read from the next row of A",
}


def gemm(mode, k, distribution="normal", algorithms="heuristic", **params):
    return {"op": "gemm", "mode": mode, "backend": "cublaslt", "algorithms": algorithms,
            "params": {"m": 64, "n": 72, "k": k, "trans_b": True, **params}, "inputs": {"distribution": distribution}}


def cases_of(mode):
    """FP8 only as cuBLASLt takes it: A B^T, rows that are multiples of 16 bytes. Sums in FP16 and outputs of 16 bits are
    short, so that one product of a sum shows. Where k is the slow axis of both operands it is even, because odd ones show
    a fault of the library itself (configs/plans/scenarios/cublaslt_k_tail.json)."""
    fp8 = "fp8" in mode
    wide = {} if mode == "fp16_acc16" else {"output": "fp32"}
    yield gemm(mode, 304, **wide)
    yield gemm(mode, 304, "exact", **wide)
    yield gemm(mode, 304, **wide, batch=3, alpha=-0.5, pad_a=16, pad_b=16, pad_d=16)
    if mode != "fp16_acc16":
        yield gemm(mode, 1008, **wide)
        yield gemm(mode, 2960 if fp8 else 2946, **wide)
    if not fp8:
        yield gemm(mode, 301, **wide)
        yield gemm(mode, 302, trans_a=True, trans_b=False, beta=0.5, **wide)


CASES = [case for mode in MODES for case in cases_of(mode)]
CASES += [gemm(mode, 304) for mode in ("bf16", "fp16", "fp8_e4m3", "fp8_hybrid")]
CASES += [gemm(mode, 304, algorithms="all", output="fp32") for mode in ("fp32", "bf16", "fp8_e4m3")]
CASES += [gemm("bf16", 304, beta=1, in_place=True, output="fp32")]


def causes_of(run):
    return [finding.get("cause") for output in run["outputs"].values() for finding in output["findings"]]


class KFaults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="te-numcheck-gpu-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        plan = {"version": 1, "name": "k_faults", "seed": 5, "cases": CASES}
        (self.folder / "plan.json").write_text(json.dumps(plan))

    def run_plan(self, code, fault=None):
        """The cases of a run, and what the library did to its products."""
        report, log = self.folder / "report.json", self.folder / f"log-{fault}"
        environment = {**os.environ, "NUMCHECK_FAULT_LOG": str(log)}
        environment.pop("NUMCHECK_K_FAULT", None)
        if fault is not None:
            environment["NUMCHECK_K_FAULT"] = fault
        command = [PROGRAM, "run", "plan.json", "--device", "cuda:0", "--json", report, "--no-save", "--lib-dir", WRAPPER]
        done = subprocess.run(command, cwd=self.folder, timeout=500, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        cases = json.loads(report.read_text())["cases"]
        self.assertEqual(len(cases), len(CASES))
        return cases, log.read_text().splitlines() if log.exists() else []

    def expect_named(self, fault, case):
        self.assertEqual(case["status"], "fail", f"{case['id']}: {case['reason']}")
        for run in case["runs"]:
            self.assertEqual(run["status"], "fail", f"{case['id']}: {run['failing']}")
            cause = CAUSES[fault](case["params"]["k"], int(run["details"]["split_k"]))
            self.assertIn(cause, causes_of(run), f"{case['id']}: {run['implementation']}: {run['failing']}")

    def test_without_a_fault_nothing_fails(self):
        cases, log = self.run_plan(code=0)
        self.assertEqual(log, [])
        for case in cases:
            accepted = ("pass", "warn") if case["mode"] in EVERYWHERE else ("pass", "warn", "unsupported")
            self.assertIn(case["status"], accepted, f"{case['id']}: {case['reason']}")

    def test_every_fault_is_caught_in_every_mode_and_named(self):
        for fault in CAUSES:
            with self.subTest(fault=fault):
                cases, log = self.run_plan(code=1, fault=fault)
                runs = [run for case in cases for run in case["runs"]]
                self.assertEqual([line for line in log if not line.startswith(f"planted {fault} ")], [])
                self.assertGreaterEqual(len(log), len(runs))
                for case in cases:
                    with self.subTest(case=case["id"]):
                        if case["mode"] in EVERYWHERE or case["status"] != "unsupported":
                            self.expect_named(fault, case)
                statuses = dict(collections.Counter(case["status"] for case in cases))
                modes = len({case["mode"] for case in cases if case["status"] == "fail"})
                print(f"{fault}: {statuses}, {len(runs)} runs in {modes} modes, planted in {len(log)} products",
                      file=sys.stderr)


if __name__ == "__main__":
    skip_without_gpu()
    unittest.main()
