"""What `validate` says that a case needs is what a run then holds."""

import re
import subprocess
import time
import unittest

from support import CLEAN, PROGRAM, CliTest

SIM = ("--device", "sim:sm_90")
MIB = 2**20
UNITS = {"KiB": 2**10, "MiB": MIB, "GiB": 2**30}
ROWS, COLS = 8192, 2048
BESIDES = 48 * MIB  # of threads, samples and statistics, whatever the size
CASES = {"layernorm_fwd": {"rows": ROWS, "hidden": COLS}, "softmax_fwd": {"sq": ROWS, "sk": COLS},
         "softmax_bwd": {"sq": ROWS, "sk": COLS}, "activation_bwd": {"rows": ROWS, "hidden": COLS, "kind": "gelu"},
         "quantize": {"rows": ROWS, "cols": COLS}, "dequantize": {"rows": ROWS, "cols": COLS},
         # References of all rows:
         "layernorm_bwd": {"rows": ROWS, "hidden": COLS}, "bias_grad": {"rows": ROWS, "hidden": COLS},
         "transpose": {"rows": ROWS, "cols": COLS}, "rope_fwd": {"seq": 2048, "batch": 4, "heads": 16, "dim": 128},
         "gemm": {"m": 4096, "n": 4096, "k": 256, "trans_b": True},
         "attention_fwd": {"batches": 4, "heads": 16, "sq": 1024, "sk": 1024, "d": 128}}


def held(process):
    """Bytes that the coordinator has touched, shared memory included; 0 once it has ended."""
    try:
        with open(f"/proc/{process.pid}/status") as status:
            text = status.read()
        return 1024 * sum(int(found) for found in re.findall(r"Rss(?:Anon|Shmem):\s+(\d+)", text))
    except OSError:
        return 0


class MemoryEstimate(CliTest):
    def peak(self, plan, *options):
        command = [PROGRAM, "run", plan, *SIM, "--no-save", "-q", *options]
        with subprocess.Popen(command, cwd=self.folder, env=CLEAN, stdout=subprocess.DEVNULL) as process:
            most = 0
            while process.poll() is None:
                most = max(most, held(process))
                time.sleep(0.002)
            self.assertEqual(process.returncode, 0)
        return most

    def estimate(self, plan):
        text = self.run_cli("validate", plan, code=0).stdout
        number, unit = re.search(r"largest case needs ([\d.]+) (\w+)", text).groups()
        return float(number) * UNITS[unit]

    def test_it_is_right_within_a_fifth(self):
        small = {"op": "layernorm_fwd", "backend": "sim", "mode": "fp32", "params": {"rows": 64, "hidden": 64}}
        nothing = self.peak(self.plan(cases=[small]))
        for op, params in CASES.items():
            for mode in ("fp32", "bf16"):
                with self.subTest(op=op, mode=mode):
                    plan = self.plan(cases=[{"op": op, "backend": "sim", "mode": mode, "params": params}])
                    expected, measured = self.estimate(plan), self.peak(plan) - nothing
                    self.assertLess(abs(measured - expected), 0.2 * expected + BESIDES,
                                    f"{measured / MIB:.0f} MiB for {expected / MIB:.0f}")


    def test_all_rows_are_there_for_one_case_at_a_time(self):
        modes = ("fp32", "bf16", "fp16")  # specials are not compared a few rows at a time
        cases = [{"op": "quantize", "backend": "sim", "mode": modes, "params": CASES["quantize"], "seed": (1, 2),
                  "inputs": {"distribution": "specials"}}]
        self.assertLess(self.peak(self.plan(cases=cases), "--memory", "1200MiB"), 1250 * MIB)


if __name__ == "__main__":
    unittest.main()
