"""te-numcheck diagnose on the tensors that a run kept: answers that depend on nothing but these."""

import os
import subprocess
import unittest

from support import CLEAN, PROGRAM, CliTest

SIM = ("--device", "sim:sm_90")


class DiagnoseKept(CliTest):
    def kept(self, fault, case):
        """The file of a run's tensors with that fault."""
        plan = self.plan(cases=[{"backend": "sim", "seed": 1, **case}])
        self.run_cli("run", plan, *SIM, "--no-save", "--inject", fault, "--keep-tensors", "kept", code=1)
        return next((self.folder / "kept").iterdir())

    def test_the_number_of_threads_changes_nothing(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("there is one processor")
        file = self.kept("softmax_scale_1_01", {"op": "softmax_fwd", "mode": "bf16", "params": {"sq": 16, "sk": 48, "scale": 0.13}})
        one = {min(os.sched_getaffinity(0))}
        answers = [subprocess.run([PROGRAM, "diagnose", "--tensors", file, *SIM, "--json", "-"], cwd=self.folder, env=CLEAN,
                                  capture_output=True, text=True, check=False, preexec_fn=pinned).stdout
                   for pinned in (None, lambda: os.sched_setaffinity(0, one))]
        self.assertIn('"causes"', answers[0])
        self.assertEqual(*answers)

    def test_a_share_is_said_though_no_bits_are_equal(self):
        file = self.kept("tf32_silently", {"op": "gemm", "mode": "fp32", "params": {"m": 8, "n": 4, "k": 4096}})
        done = self.run_cli("diagnose", "--tensors", file, *SIM, code=1)
        self.assertRegex(done.stdout, r"every gate passes then; it explains 99\.\d* %")

    def test_elements_that_no_draw_leaves_are_named(self):
        params = {"batches": 1, "heads": 2, "sq": 40, "sk": 60, "d": 32, "dropout": 0.2, "dropout_mask": "drawn"}
        file = self.kept("nan_written", {"op": "attention_dropout", "mode": "bf16", "params": params})
        done = self.run_cli("diagnose", "--tensors", file, *SIM, code=1)
        self.assertIn("1 of 4800 elements wrong", done.stdout)
        self.assertIn("every gate passes then\n", done.stdout)

    def test_a_draw_without_its_mask_is_refused(self):
        case = {"backend": "sim", "seed": 1, "op": "dropout_fwd", "mode": "fp32", "params": {"elements": 4096, "p": 0.25}}
        self.run_cli("run", self.plan(cases=[case]), *SIM, "--no-save", "--keep-tensors", "kept", code=0)
        kept = next((self.folder / "kept").iterdir()).read_bytes()
        size = int.from_bytes(kept[:8], "little")
        told = ["--param", "p=0.25", "--param", "elements=4096", "--mode", "fp32"]
        for port, other in (("y", "mask"), ("mask", "y")):
            with self.subTest(given=port):
                header = kept[8 : 8 + size].replace(f'"{other}":'.encode(), b'"unused":')
                (self.folder / "t.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + kept[8 + size :])
                done = self.run_cli("diagnose", "dropout_fwd", "--tensors", "t.safetensors", *told, *SIM, code=2)
                self.assertIn(f"{port} is judged together with {other}, because both are drawn: give {other} as well", done.stderr)


if __name__ == "__main__":
    unittest.main()
