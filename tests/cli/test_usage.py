"""Command lines: help, versions, and every way to get them wrong."""

import unittest

from support import CliTest

COMMANDS = ["run", "list", "validate", "explain", "exec", "doctor", "schema", "completion", "man"]


class Help(CliTest):
    def test_program(self):
        self.expect_golden("help.txt", self.run_cli("--help", code=0).stdout)
        self.assertEqual(self.run_cli("-h", code=0).stdout, self.run_cli("--help", code=0).stdout)

    def test_every_command(self):
        for command in COMMANDS:
            with self.subTest(command):
                done = self.run_cli(command, "--help", code=0)
                self.expect_golden(f"help-{command}.txt", done.stdout)
                self.assertEqual(done.stderr, "")

    def test_help_wins_over_mistakes(self):
        self.run_cli("run", "--nonsense", "--help", code=0)

    def test_without_command_help_goes_to_stderr(self):
        done = self.run_cli(code=2)
        self.assertEqual(done.stdout, "")
        self.assertIn("usage: te-numcheck COMMAND", done.stderr)

    def test_version(self):
        self.assertRegex(self.run_cli("--version", code=0).stdout, r"^te-numcheck \d+\.\d+\.\d+ \(.*\)\nbuilt with ")
        self.run_cli("run", "--version", code=0)


class Mistakes(CliTest):
    def expect(self, arguments, sentence):
        done = self.run_cli(*arguments, code=2)
        self.assertEqual(done.stdout, "")
        self.assertIn(f"error: {sentence}", done.stderr)

    def test_unknown_option_gets_a_suggestion(self):
        self.expect(["run", "--colour", "auto", "plan.json"], "unknown option --colour (did you mean --color?)")
        self.expect(["run", "plan.json", "--filtre=x"], "unknown option --filtre (did you mean --filter?)")
        self.expect(["--colour", "run"], "unknown option --colour (did you mean --color?)")

    def test_unknown_option_without_neighbour(self):
        self.expect(["run", "--zzzzzzzzzzzz"], "unknown option --zzzzzzzzzzzz\n")
        self.expect(["run", "-Z"], "unknown option -Z")

    def test_unknown_command(self):
        self.expect(["rnu"], "unknown command rnu (did you mean run?)")
        self.expect(["plan.json"], "unknown command plan.json")

    def test_commands_that_do_not_exist_yet_are_unknown(self):
        for command in ["probe", "bench"]:
            self.expect([command], f"unknown command {command}")

    def test_a_plan_named_like_a_command(self):
        self.expect(["run", "list"], "")

    def test_missing_value(self):
        self.expect(["run", "plan.json", "--json"], "option --json needs a value")

    def test_bad_numbers(self):
        plan = self.plan()
        for option, value in [("--repeat", "0"), ("--repeat", "two"), ("--jobs", "1'000"), ("--sample", "0b11"),
                              ("--fail-fast=x", None), ("--max-cases", "-1")]:
            with self.subTest(option=option, value=value):
                arguments = ["run", plan, option] + ([value] if value is not None else [])
                done = self.run_cli(*arguments, code=2)
                self.assertIn("is not a whole number from", done.stderr)

    def test_bad_words(self):
        plan = self.plan()
        self.expect(["run", plan, "--color", "maybe"], '--color: "maybe" is not one of auto, always, never')
        self.expect(["run", plan, "--progress", "maybe"], '--progress: "maybe" is not one of auto, plain, never')
        self.expect(["run", plan, "--mode", "bf61"], 'unknown mode "bf61" (did you mean bf16?)')
        self.expect(["run", plan, "--op", "gem"], 'unknown op "gem" (did you mean gemm?)')
        self.expect(["run", plan, "--backend", "cublast"], 'unknown backend "cublast" (did you mean cublaslt?)')
        self.expect(["run", plan, "--inject", "bit_flop"], 'unknown fault "bit_flop" (did you mean bit_flip?)')
        for fault in ("perturb_row", "perturb_row=", "perturb_row=much", "perturb_row=-1", "perturb_row=inf", "perturb_row=1x"):
            self.expect(["run", plan, "--inject", fault],
                        "the fault perturb_row needs a relative size above 0, such as perturb_row=1e-3")
        self.expect(["run", plan, "--inject", "bit_flip=2"], 'unknown fault "bit_flip=2" (did you mean bit_flip?)')
        self.expect(["run", plan, "--tag", "x"], "--tag x: no case of the plan has a tag")
        self.expect(["run", plan, "--filter", "("], '--filter: "(" is not a usable regular expression')
        self.expect(["run", plan, "--case", "nothing"], '--case: no case is named "nothing"')
        self.expect(["run", plan, "--timeout", "soon"], "--timeout")
        self.expect(["run", plan, "--memory", "much"], "--memory")
        self.expect(["run", plan, "--device", "gpu"], "")
        self.expect(["list", "everything"], 'unknown list topic "everything"')
        self.expect(["list", "faults", "gem"], 'unknown op "gem" (did you mean gemm?)')
        self.expect(["schema", "plans"], 'unknown schema "plans" (did you mean plan?)')
        self.expect(["completion", "csh"], 'unknown shell "csh"')
        self.expect(["explain", "gem"], 'unknown topic "gem" (did you mean gemm?)')

    def test_missing_arguments(self):
        self.expect(["run"], "run: name a plan")
        self.expect(["validate"], "validate: name a plan")
        self.expect(["list"], "list: name one of")
        self.expect(["list", "cases"], "list cases: name a plan")
        self.expect(["explain"], "explain: name a page, an op, or a case and its plan")
        self.expect(["completion"], "completion: name a shell")

    def test_superfluous_arguments(self):
        self.expect(["doctor", "now"], 'doctor: unexpected argument "now"')
        self.expect(["list", "plans", "plan.json"], 'list plans: unexpected argument "plan.json"')
        self.expect(["list", "ops", "gemm"], 'list ops: unexpected argument "gemm"')
        self.expect(["list", "modes", "gemm", "gemm"], 'list modes: unexpected argument "gemm"')

    def test_contradictions(self):
        plan = self.plan()
        (self.folder / "out").mkdir()
        self.expect(["run", plan, "--no-save", "--out", "x"], "--no-save contradicts --out")
        self.expect(["run", plan, "--out", "x", "--resume", "out"], "--out contradicts --resume")

    def test_paths_that_cannot_be_written(self):
        plan = self.plan()
        self.expect(["run", plan, "--json", "nowhere/report.json"], "--json nowhere/report.json: there is no folder")
        self.expect(["run", plan, "--json", "."], "--json .: that is a folder")
        self.expect(["run", plan, "--out", plan], f"--out {plan}: that is not a folder")
        self.expect(["run", plan, "--lib-dir", "nowhere"], "--lib-dir: nowhere is not a folder")
        self.expect(["run", plan, "--te-lib", "nowhere.so"], "--te-lib: nowhere.so does not exist")
        self.expect(["run", plan, "--te-lib", plan, "--te-lib", "nowhere.so"], "--te-lib: nowhere.so does not exist")
        self.expect(["list", "cases", plan, "--te-lib", "nowhere.so"], "--te-lib: nowhere.so does not exist")
        self.expect(["run", plan, "--te-lib", plan, "--te-lib", plan, "--in-process"],
                    "--in-process: one process cannot load two TransformerEngine libraries")
        self.expect(["run", plan, "--brief-json", "nowhere/b.json"], "--brief-json nowhere/b.json: there is no folder")
        self.expect(["run", plan, "--brief-json", "-"], "--brief-json -: name a file")

    def test_github_gets_annotations(self):
        done = self.run_cli("run", "--colour", code=2, env={"GITHUB_ACTIONS": "true"})
        self.assertIn("::error::unknown option --colour (did you mean --color?)\n", done.stderr)


class BrokenPlans(CliTest):
    def test_all_mistakes_are_shown_with_positions(self):
        (self.folder / "broken.json").write_text(
            '{\n  "version": 1,\n  "seeed": 3,\n  "cases": [\n'
            '    {"op": "gemm", "mode": ["bf61"], "params": {"m": 4, "n": 4, "k": 4}}\n  ]\n}\n')
        done = self.run_cli("run", "broken.json", code=2)
        self.assertEqual(done.stdout, "")
        self.expect_golden("broken-plan.txt", done.stderr)

    def test_annotations_have_positions(self):
        (self.folder / "broken.json").write_text('{"version": 1, "cases": [{"op": "gem"}]}')
        done = self.run_cli("validate", "broken.json", code=2, env={"GITHUB_ACTIONS": "true"})
        self.assertRegex(done.stderr, r"::error file=broken\.json,line=1,col=\d+::")

    def test_missing_empty_and_binary_plans(self):
        self.assertIn("nothere.json", self.run_cli("run", "nothere.json", code=2).stderr)
        for name, content in [("empty.json", b""), ("binary.json", bytes(range(256))), ("number.json", b"7")]:
            (self.folder / name).write_bytes(content)
            self.assertIn(name, self.run_cli("run", name, code=2).stderr)
        self.run_cli("run", ".", code=2)

    def test_nothing_runs_and_nothing_is_written(self):
        (self.folder / "broken.json").write_text("{")
        self.run_cli("run", "broken.json", code=2)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["broken.json"])

    def test_too_many_cases(self):
        plan = self.plan(case={"params": {"m": 16, "n": 16, "k": {"from": 1, "to": 20, "step": 1}}})
        self.assertIn("20", self.run_cli("validate", plan, "--max-cases", "10", code=2).stderr)
        self.run_cli("validate", plan, "--max-cases", "20", code=0)


if __name__ == "__main__":
    unittest.main()
