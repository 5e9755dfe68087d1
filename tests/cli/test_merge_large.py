"""te-numcheck merge of large reports: in little memory, and without losing what views show."""

import json
import subprocess
import sys
import time
import unittest

from support import PROGRAM
from test_merge import CASES, FAULT, MergeTest


class Memory(MergeTest):
    """Of records only a part is kept, so that views must not need more than that."""

    VIEWS = ["--json", "--brief-json", "--junit", "--markdown", "--csv", "--html"]

    def views(self, folder):
        (self.folder / folder).mkdir()
        return [word for flag in self.VIEWS for word in (flag, f"{folder}/{flag[2:]}")]

    def test_all_views_are_those_of_the_merged_report(self):
        loose = [{"op": "gemm", "backend": "sim", "mode": "bf16", "params": {"m": 8, "n": 8, "k": 8}, "tolerance": {"ulp": 1000, "allclose": {"rtol": 0, "atol": 1e6}}}]
        shards = self.shards(*FAULT, "--maps", cases=CASES + loose)
        merged = self.run_cli("merge", *shards, *self.views("merged"), code=1)
        self.run_cli("report", "merged/json", *self.views("stored"))
        for flag in self.VIEWS:
            first, second = ((self.folder / folder / flag[2:]).read_bytes() for folder in ("merged", "stored"))
            self.assertTrue(first == second, flag)
        self.assertEqual(self.run_cli("report", "merged/json").stdout, merged.stdout)
        for verbosity in ("-v", "-vv"):
            self.assertEqual(self.run_cli("report", "merged/json", verbosity).stdout, self.run_cli("merge", *shards, verbosity).stdout)
        self.assertEqual(json.loads(self.run_cli("merge", *shards, "--json", "-").stdout), self.report("merged/json"))

    def test_it_takes_less_than_five_times_the_reports(self):
        case = {"op": "gemm", "backend": "sim", "mode": "bf16", "params": {"m": {"from": 1, "to": 10}, "n": 8, "k": {"from": 1, "to": 400}}}
        shards = self.shards(count=2, cases=[case])
        size = sum((self.folder / name).stat().st_size for name in shards)
        code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        done = subprocess.run([sys.executable, "-c", code, PROGRAM, "merge", *shards, "--json", "whole.json"], cwd=self.folder, capture_output=True, text=True, check=True)
        self.assertLess(int(done.stdout) * 1024, 5 * size, "parsed, they take nine times as much")


class Large(MergeTest):
    def test_a_hundred_thousand_cases_take_seconds(self):
        count = 100_000
        case = {"op": "gemm", "backend": "sim", "mode": "bf16", "params": {"m": {"from": 1, "to": 100}, "n": 1, "k": {"from": 1, "to": 1000}}}
        shards = self.shards("--budget", "1ms", count=2, cases=[case])
        start = time.monotonic()
        done = self.run_cli("merge", *shards, "--json", "whole.json", "--allow-empty")
        self.assertLess(time.monotonic() - start, 60)
        self.assertIn(f"{count} cases: ", done.stdout)
        self.assertEqual(self.report("whole.json")["summary"]["cases"], count)


if __name__ == "__main__":
    unittest.main()
