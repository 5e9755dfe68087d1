"""diagnose: the command that asks the same again, and the answer in one line."""

import json
import math
import random
import shlex
import unittest

from support import CliTest
from test_diagnose import f32, npy

M, N, K = 24, 16, 40


class Again(CliTest):
    def setUp(self):
        super().setUp()
        rng = random.Random(5)
        a, w = ([f32(rng.gauss(0, 1)) for _ in range(rows * K)] for rows in (M, N))
        right = [f32(math.fsum(a[i * K + t] * w[j * K + t] for t in range(K))) for i in range(M) for j in range(N)]
        (self.folder / "of step 3").mkdir()
        for name, shape, values in (("a", (M, K), a), ("w", (N, K), w), ("right", (M, N), right),
                                    ("half", (M, N), [v / 2 for v in right])):
            npy(self.folder / "of step 3" / f"{name}.npy", shape, values)

    def diagnose(self, y, *more, code):
        return self.run_cli("diagnose", "gemm", "--in", "a=of step 3/a.npy", "--in", "b=of step 3/w.npy", "--out",
                            f"d=of step 3/{y}.npy", *more, code=code).stdout

    def test_says_what_was_read_from_the_tensors(self):
        text = self.diagnose("half", code=1)
        again = text.splitlines()[-1]
        self.assertTrue(again.startswith("again     te-numcheck diagnose gemm --mode fp32 --in "), again)
        words = shlex.split(again.removeprefix("again     te-numcheck "))
        self.assertIn("trans_b=true", words)
        self.assertIn("a=of step 3/a.npy", words)
        same = self.run_cli(*words, code=1).stdout
        self.assertEqual([line for line in same.splitlines() if not line.startswith("note")],
                         [line for line in text.splitlines() if not line.startswith("note")])

    def test_is_in_the_json(self):
        found = json.loads(self.diagnose("half", "--param", "trans_b=true", "--json", "-", code=1))
        self.assertEqual(found["reproduce"].count("trans_b=true"), 1)

    def test_is_not_said_of_a_right_result(self):
        self.assertNotIn("\nagain", self.diagnose("right", code=0))

    def test_quiet_answers_in_a_line(self):
        self.assertEqual(self.diagnose("right", "-q", code=0), "correct: every gate passes\n")
        text = self.diagnose("half", "-q", code=1)
        self.assertEqual(text.count("\n"), 1)
        self.assertRegex(text, "^d is wrong: .*0.5")

    def test_of_a_case_names_the_report(self):
        plan = self.plan(case={"op": "gemm", "params": {"m": 32, "n": 32, "k": 64}})
        self.run_cli("run", plan, "--device", "sim:sm_90", "--no-save", "--inject", "scale_half", "--json", "report.json",
                     code=1)
        digest = self.report("report.json")["cases"][0]["digest"]
        text = self.run_cli("diagnose", "--case", digest, "report.json", code=1).stdout
        self.assertEqual(text.splitlines()[-1], f"again     te-numcheck diagnose --case {digest} report.json")
        # A name that looks like an option, and what was chosen besides.
        (self.folder / "-of today.json").write_bytes((self.folder / "report.json").read_bytes())
        text = self.run_cli("diagnose", "--case", digest, "--effort", "quick", "--", "-of today.json", code=1).stdout
        words = shlex.split(text.splitlines()[-1].removeprefix("again     te-numcheck "))
        self.assertEqual(words, ["diagnose", "--case", digest, "./-of today.json", "--effort", "quick"])
        self.assertEqual(self.run_cli(*words, code=1).stdout, text)

    def test_of_a_simulated_device_says_so(self):
        plan = self.plan(case={"op": "gemm", "params": {"m": 32, "n": 32, "k": 64}})
        self.run_cli("run", plan, "--device", "sim:sm_90", "--no-save", "--inject", "scale_half", "--json", "report.json",
                     code=1)
        digest = self.report("report.json")["cases"][0]["digest"]
        notice = "SIMULATED sm_90: no hardware evidence"
        self.assertEqual(self.run_cli("diagnose", "--case", digest, "report.json", code=1).stdout.splitlines()[1], f"*** {notice} ***")
        self.assertRegex(self.run_cli("diagnose", "-q", "--case", digest, "report.json", code=1).stdout,
                         rf"^d is wrong: .* \({notice}\)\n$")
        found = json.loads(self.run_cli("diagnose", "--case", digest, "report.json", "--json", "-", code=1).stdout)
        self.assertTrue(found["simulated"])
        self.assertIn(notice, self.run_cli("diagnose", "--case", digest, "report.json", "--html", "-", code=1).stdout)
        # Of tensors, nobody knows.
        self.assertNotIn("SIMULATED", self.diagnose("half", code=1))


if __name__ == "__main__":
    unittest.main()
