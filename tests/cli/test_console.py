"""What people read: where elements are wrong, kinds of failures, failures as they happen, ASCII, the slowest cases."""

import os
import pty
import re
import subprocess
import threading
import unittest

from support import CLEAN, PROGRAM, CliTest

SIM = ["--device", "sim:sm_90", "--no-save"]


class Console(CliTest):
    def shown(self, fault, case, code=1):
        return self.run_cli("run", self.plan(case=case), *SIM, "--inject", fault, code=code).stdout

    def test_says_which_elements_are_wrong(self):
        square = {"params": {"m": 64, "n": 64, "k": 32}}
        wide = {"params": {"m": 256, "n": 192, "k": 32}}
        for fault, case, saying in [
                ("swapped_rows", square, "128 of 4096 elements wrong: all of rows "),
                ("nan_written", square, "1 of 4096 elements wrong: row 32, column 32"),
                ("unwritten_tile", wide, "4096 of 49152 elements wrong: 1 of 12 tiles of 64x64, at ["),
                ("unwritten_tile", square, "all 4096 elements are wrong"),
                ("double_rounded_output", {"params": {"m": 256, "n": 256, "k": 64}, "mode": "bf16"}, "elements wrong")]:
            with self.subTest(fault=fault):
                self.assertIn(saying, self.shown(fault, case))

    def test_a_spread_of_which_no_element_is_guilty_is_called_that(self):
        text = self.shown("scale_1_01", {"mode": "fp16_acc16", "params": {"m": 64, "n": 64, "k": 192, "trans_b": True}})
        self.assertIn("no single element of 4096 is beyond its bound; together they are off", text)

    def test_statistics_of_an_op_are_shown_with_its_metrics(self):
        case = {"op": "fp8_recipe", "params": {"steps": 8, "tensors": 2, "course": "spiking"}}
        text = self.run_cli("run", self.plan(case=case), *SIM, "-vv", code=0).stdout
        self.assertRegex(text, r"\n {10}largest scaled amax [\d.e+]+: step 2, tensor \d: scale \S+ is used where an amax of")
        self.assertRegex(text, r"\n {10}steps that lose 3 dB 0\.\d+: \d+ of 16 steps of tensors, from step \d to step \d\n")
        self.assertRegex(text, r"\n {12}step  tensor  scale_used  scale_implied +clipped +underflow +sqnr_db  dead_tensors\n")
        self.assertEqual(len(re.findall(r"\n {12}\s*\d+ +[01]  ", text)), 8)
        longer = {**case, "params": {**case["params"], "steps": 40}}
        self.assertIn("(12 of 40 steps: of each 3 or so, the one that is least like the others)", self.run_cli("run", self.plan(case=longer), *SIM, "-vv", code=0).stdout)
        self.assertNotIn("scaled amax", self.run_cli("run", self.plan(case=case), *SIM, "-v", code=0).stdout)

    def test_groups_failures_by_kind(self):
        text = self.shown("tf32_silently", {"params": {"m": 16, "n": 16, "k": [32, 33, 34, 35]}})
        self.assertIn("4 fail: FP32 asked, TF32 ran", text)
        self.assertEqual(text.count("run again:"), 1)
        for wrong in ("Infinity", "1 > 0"):
            self.assertNotIn(wrong, text)

    def test_findings_have_values(self):
        text = self.shown("epsilon_x10", {"op": "layernorm_fwd", "params": {"rows": 64, "hidden": 192},
                                          "inputs": {"distribution": "rows"}})
        self.assertRegex(text, r"row regression: epsilon 9\S*e-05: the rows' scales fit 0\.0001\S*, requested 1e-05")
        self.assertNotIn("-0.1 effective bits", text)

    def test_what_proves_less_is_said_at_the_top(self):
        plan = self.plan()
        self.assertNotRegex(self.run_cli("run", plan, *SIM, "--no-save", code=0).stdout, "planted|one run each")
        text = self.run_cli("run", plan, *SIM, "--no-save", "--repeat", "1", "--inject", "race", code=None).stdout
        self.assertIn("    fault planted: race    one run each: repeatable bits are not tested\n", text)

    def test_slowest(self):
        plan = self.plan(case={"params": {"m": 16, "n": 16, "k": [32, 512, 64]}})
        self.run_cli("run", plan, *SIM, "--json", "r.json", code=0)
        for command in (["run", plan, *SIM], ["report", "r.json"]):
            text = self.run_cli(*command, "--slowest", "2", code=0).stdout
            self.assertIn("slowest 2 cases", text)
            self.assertRegex(text, r"time +inputs +device +reference +yardsticks +comparison +case")
        for number in ("0", "-1", "x"):
            self.assertIn("--slowest", self.run_cli("report", "r.json", "--slowest", number, code=2).stderr)

    def test_shows_only_ascii_where_the_locale_is_not_utf8(self):
        plan = self.plan("caf\u00e9.json", case={"params": {"m": 123456, "n": 1, "k": 1, "alpha": 0.3333333333, "batch": 1,
                                                            "beta": 0.123456789, "epilogue": "gelu", "bias": True}})
        utf8 = self.run_cli("run", plan, *SIM, "-v", code=0, env={"COLUMNS": "100"}).stdout
        self.assertIn("\u2026", utf8)
        self.assertIn("caf\u00e9", utf8)
        ascii = self.run_cli("run", plan, *SIM, "-v", code=0, env={"LC_ALL": "C", "COLUMNS": "100"}).stdout
        self.assertTrue(ascii.isascii(), ascii)
        self.assertIn("~", ascii)
        self.assertIn("caf\\u{e9}", ascii)


class FailuresAsTheyHappen(CliTest):
    def errors_on_a_terminal(self, *arguments):
        """What a run writes to stderr, which is a terminal."""
        ours, theirs = pty.openpty()
        chunks = []

        def read():
            try:
                while chunk := os.read(ours, 4096):
                    chunks.append(chunk)
            except OSError:
                pass  # the other end is closed

        reader = threading.Thread(target=read)
        reader.start()
        subprocess.run([PROGRAM, *arguments], cwd=self.folder, env=CLEAN, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=theirs, timeout=60, check=False)
        os.close(theirs)
        reader.join(10)
        os.close(ours)
        return b"".join(chunks).decode()

    def test_are_shown_at_once_on_a_terminal_but_not_all(self):
        plan = self.plan(case={"params": {"m": 16, "n": 16, "k": {"from": 1, "to": 30, "step": 1}}})
        text = self.errors_on_a_terminal("run", plan, *SIM, "--inject", "nan_written", "--progress", "never")
        self.assertEqual(text.count("FAIL  gemm/"), 10, text)
        self.assertEqual(text.count("and more failures; all of them are in the report at the end"), 1)
        self.assertIn("d: G0 pattern: 1 element", text)
        self.assertEqual(self.errors_on_a_terminal("run", plan, *SIM, "--inject", "nan_written", "-q"), "")

    def test_a_log_of_a_short_run_has_them_only_in_the_report(self):
        done = self.run_cli("run", self.plan(), *SIM, "--inject", "nan_written", code=1)
        self.assertNotIn("FAIL", done.stderr)
        self.assertIn("FAIL", done.stdout)


if __name__ == "__main__":
    unittest.main()
