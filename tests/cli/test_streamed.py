"""References of large outputs whose rows do not know of each other are made while they are compared: that must say what a
comparison with all of them says. --keep-tensors needs them all, so it shows the difference."""

import json
import math
import os
import subprocess
import unittest

from support import CLEAN, PROGRAM, CliTest

SIM = ("--device", "sim:sm_90")
ROWS = {"rows": 600, "hidden": 2048}
CASES = [{"op": op, "mode": mode, "params": params}
         for mode in ("fp32", "bf16")
         for op, params in (("layernorm_fwd", ROWS), ("rmsnorm_fwd", {**ROWS, "zero_centered_gamma": True}),
                            ("rmsnorm_fwd", {**ROWS, "gamma_order": "hf"}), ("softmax_fwd", {"batches": 3, "sq": 200, "sk": 2048}),
                            ("softmax_bwd", {"sq": 600, "sk": 2048}), ("activation_fwd", {**ROWS, "kind": "gelu"}),
                            ("activation_bwd", {**ROWS, "kind": "swiglu"}))]
WIDE = [{"op": "layernorm_fwd", "mode": "bf16", "params": {"rows": 64, "hidden": 65536}},
        {"op": "activation_fwd", "mode": "fp16", "params": {"rows": 131072, "hidden": 8, "kind": "silu"}}]
CODES = {"rows": 600, "cols": 2048}
CASTS = [{"op": op, "mode": mode, "seed": seed, "params": {**CODES, **params}}  # codes of one seed would share a reference
         for seed, mode in enumerate(("fp32", "bf16"))
         for op, params in (("quantize", {}), ("quantize", {"format": "fp8_e5m2", "scale": 3.3}), ("quantize", {"scale": 900}),
                            ("dequantize", {"format": "fp8_e4m3"}), ("dequantize", {"format": "fp8_e5m2"}))]
CASTS += [{"op": "quantize", "mode": "bf16", "params": {**CODES, **params}}
          for params in ({"recipe": "mxfp8"}, {"recipe": "block_1x128", "scale_layout": "compact"})]
ODD_CASTS = [{"op": op, "mode": "bf16", "params": CODES, "inputs": inputs}
             for op in ("quantize", "dequantize")
             for inputs in ({"distribution": "specials"}, {"distribution": "constant", "value": 0.3},
                            {"distribution": "log_uniform"})]
ODD = [{"op": "layernorm_fwd", "mode": "bf16", "params": ROWS, "inputs": inputs}
       for inputs in ({"distribution": "specials"}, {"distribution": "constant", "value": 0.3},
                      {"distribution": "normal", "sigma": 1e18}, {"distribution": "large_mean"})]


def numbers_of(case):
    """The status, and each number of each criterion, by run, output and place."""
    yield "status", case["status"]
    for number, run in enumerate(case["runs"]):
        for port, output in run["outputs"].items():
            yield (number, port, "total"), output["total_error"]["rel_l2"]
            yield (number, port, "fakes"), [(fake["name"], fake["outcome"]) for fake in output["certificate"]["fakes"]
                                            if fake["name"] != "transposed"]  # of another part of the output
            if case["op"] == "quantize":
                yield (number, port, "statistics"), [(each["name"], each["measured"]) for each in output["findings"]]
            for place, criterion in enumerate(output["criteria"]):
                for which in ("measured", "limit"):
                    yield (number, port, place, criterion["name"], which), criterion[which]


class Streamed(CliTest):
    def records(self, cases, *options, code):
        plan = self.plan(cases=[{"backend": "sim", "seed": 3, **case} for case in cases])
        self.run_cli("run", plan, *SIM, "--no-save", "--json", "report.json", *options, code=code)
        report = json.loads((self.folder / "report.json").read_text())
        for case in report["cases"]:  # what streams has no reference before its comparison
            self.assertEqual(case["time_s"]["reference"] > 0, "--keep-tensors" in options, case["id"])
        return {case["digest"]: dict(numbers_of(case)) for case in report["cases"]}

    def compare(self, cases, *options, code=0):
        streamed = self.records(cases, *options, code=code)
        whole = self.records(cases, *options, "--keep-tensors", "kept", "--keep-bytes", "1", code=code)
        self.assertEqual(streamed.keys(), whole.keys())
        for digest, numbers in whole.items():
            self.assertEqual(numbers.keys(), streamed[digest].keys())
            for key, number in numbers.items():
                other = streamed[digest][key]
                if isinstance(number, float) and isinstance(other, float):
                    self.assertTrue(math.isclose(number, other, rel_tol=1e-9), f"{digest} {key}: {other}, not {number}")
                else:
                    self.assertEqual(number, other, f"{digest} {key}")

    def test_right_results(self):
        self.compare(CASES)

    def test_few_and_many_columns(self):
        self.compare(WIDE)

    def test_results_of_which_single_rows_say_too_little(self):
        self.compare(ODD)

    def test_wrong_results(self):
        for fault in ("perturb_all=1e-3", "nan_written", "swapped_rows"):
            with self.subTest(fault=fault):
                self.compare(CASES[:3] + CASES[7:10], "--inject", fault, code=1)

    def test_right_casts_and_what_all_their_rows_share(self):
        self.compare(CASTS)

    def test_casts_of_which_single_rows_say_too_little(self):
        self.compare(ODD_CASTS)

    def test_wrong_casts(self):
        for fault in ("scale_half", "scaled_amax", "scale_inv_is_scale", "last_row_stale"):
            with self.subTest(fault=fault):
                self.compare(CASTS[:2] + CASTS[5:6], "--inject", fault, code=1)

    def test_it_does_not_depend_on_the_number_of_threads(self):
        allowed = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, {min(allowed)})
            alone = self.records(CASTS, code=0)
        finally:
            os.sched_setaffinity(0, allowed)
        self.assertEqual(self.records(CASTS, code=0), alone)

    def test_it_takes_less_memory(self):
        plan = self.plan(cases=[{"op": "layernorm_fwd", "mode": "bf16", "backend": "sim", "params": {"rows": 4096, "hidden": 2048}}])
        used = []
        for options in ((), ("--keep-tensors", "kept", "--keep-bytes", "1")):
            command = [PROGRAM, "run", plan, *SIM, "--no-save", "-q", *options]
            with subprocess.Popen(command, cwd=self.folder, env=CLEAN, stdout=subprocess.DEVNULL) as child:
                _, status, usage = os.wait4(child.pid, 0)
                child.returncode = status
            self.assertEqual(status, 0)
            used.append(usage.ru_maxrss)
        self.assertLess(used[0], 0.8 * used[1], used)


    def test_the_certificate_looks_at_enough_rows(self):
        # few rows have a variance that epsilon matters to
        plan = self.plan(cases=[{"op": "layernorm_fwd", "mode": "bf16", "backend": "sim", "seed": 985243116,
                                 "params": {"rows": 33832, "hidden": 31}, "inputs": {"distribution": "log_uniform"}}])
        self.run_cli("run", plan, *SIM, "--no-save", "--json", "report.json", code=0)
        report = json.loads((self.folder / "report.json").read_text())
        self.assertEqual(report["cases"][0]["runs"][0].get("not_told", []), [])


if __name__ == "__main__":
    unittest.main()
