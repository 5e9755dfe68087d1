"""On a GPU: every path of every own kernel passes, and so does all of the quick plan that the device supports. With a
fault planted nothing passes, so that neither would pass on a program that judges nothing.

Environment: as tests/cli/support.py. The arguments choose classes, as always with unittest."""

import collections
import json
import pathlib
import sys
import unittest

from gpu import PLANS, skip_without_gpu

for folder in ("cli", "detect"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / folder))
import own_kernel_paths  # noqa: E402
from support import CliTest  # noqa: E402

DEVICE = "cuda:0"


class OnAGpu(CliTest):
    """What the plan's tests have in common: a report about each of its cases, from the GPU."""

    def plan_path(self):
        raise NotImplementedError

    def run_plan(self, *arguments, code):
        path = self.plan_path()
        self.run_cli("run", path, "--device", DEVICE, "--json", "report.json", "--no-save", *arguments, code=code,
                     timeout=500)
        report = json.loads((self.folder / "report.json").read_text())
        self.assertFalse(report["machine"]["device"]["simulated"])
        listed = json.loads(self.run_cli("list", "cases", path, "--json", code=0).stdout)
        cases = report["cases"]
        same = [case["digest"][:8] for case in cases] == [case["digest"] for case in listed]
        self.assertTrue(same, f"{len(cases)} cases were reported, {len(listed)} are in the plan")
        print(f"{path.name}: {dict(collections.Counter(case['status'] for case in cases))}", file=sys.stderr)
        return cases

    def expect_judged(self, case):
        """A case that passed has runs, and each of them gates that hold."""
        self.assertTrue(case["runs"], case["id"])
        for run in case["runs"]:
            self.assertEqual(run["error"], "", case["id"])
            self.assertTrue(run["outputs"], case["id"])
            for output in run["outputs"].values():
                self.assertTrue(output["criteria"], case["id"])
                self.assertTrue(all(gate["ok"] for gate in output["criteria"]), case["id"])


class OwnKernels(OnAGpu):
    def plan_path(self):
        path = self.folder / "own_kernel_paths.json"
        path.write_text(json.dumps(own_kernel_paths.plan()))
        return path

    def test_every_path_passes(self):
        for case in self.run_plan(code=0):
            self.assertEqual(case["status"], "pass", f"{case['id']}: {case['reason']}")
            self.assertEqual(case["backend"], "cuda", case["id"])
            self.expect_judged(case)

    def test_no_path_passes_with_a_flipped_bit(self):
        for case in self.run_plan("--inject", "bit_flip", code=1):
            self.assertEqual(case["status"], "fail", f"{case['id']}: {case['reason']}")


class Quick(OnAGpu):
    def plan_path(self):
        return PLANS / "quick.json"

    def test_what_is_supported_passes(self):
        passed = 0
        for case in self.run_plan(code=0):
            self.assertIn(case["status"], ("pass", "unsupported"), f"{case['id']}: {case['reason']}")
            if case["status"] == "pass":
                self.expect_judged(case)
                passed += 1
            else:
                self.assertTrue(case["reason"], case["id"])
        self.assertGreater(passed, 100, "hardly anything was judged")

    def test_nothing_passes_with_a_number_that_is_none(self):
        failed = 0
        for case in self.run_plan("--inject", "nan_written", code=1):
            self.assertIn(case["status"], ("fail", "unsupported"), f"{case['id']}: {case['reason']}")
            failed += case["status"] == "fail"
        self.assertGreater(failed, 100, "hardly anything was judged")


if __name__ == "__main__":
    skip_without_gpu()
    unittest.main()
