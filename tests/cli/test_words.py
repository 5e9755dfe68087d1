"""Words of a command line that people type in several ways, and what becomes of those that they mistype."""

import shutil
import unittest

from support import CliTest

SIM = ["--device", "sim:sm_90"]


class Words(CliTest):
    def setUp(self):
        super().setUp()
        self.small = self.plan(case={"mode": ["fp32", "bf16"], "params": {"m": [16, 32], "n": 16, "k": [32, 64]}})

    def expect(self, arguments, sentence, **more):
        done = self.run_cli(*arguments, code=2, **more)
        self.assertEqual(done.stdout, "")
        self.assertIn(f"error: {sentence}", done.stderr)

    def run_small(self, *arguments, code=0, **more):
        return self.run_cli("run", self.small, "--no-save", "-q", *SIM, *arguments, code=code, **more).stdout

    def test_the_count_of_fail_fast(self):
        for words in (["-x3"], ["-x", "3"], ["-x=3"], ["--fail-fast", "3"], ["--fail-fast=3"], ["-qx3"], ["-qx", "3"]):
            with self.subTest(words):
                self.assertIn("8 cases: 3 fail, 5 skipped", self.run_small("--inject", "swapped_rows", *words, code=1))
        for words in (["-x"], ["--fail-fast"], ["-xq"], ["-x", "--inject", "swapped_rows"]):
            with self.subTest(words):
                inject = [] if "--inject" in words else ["--inject", "swapped_rows"]
                self.assertIn("8 cases: 1 fail, 7 skipped", self.run_small(*words, *inject, code=1))
        for words in (["-x0"], ["-x", "0"], ["-x=no"], ["-x=-1"]):
            with self.subTest(words):
                self.assertIn("--fail-fast: ", self.run_cli("run", self.small, *words, code=2).stderr)
        # A count before the plan, and a plan whose name is a number.
        self.assertIn("3 fail", self.run_cli("run", "-x", "3", self.small, "--no-save", "-q", *SIM, "--inject", "swapped_rows",
                                             code=1).stdout)
        shutil.copy(self.folder / self.small, self.folder / "3")
        self.assertIn("1 fail", self.run_cli("run", "-x", "./3", "--no-save", "-q", *SIM, "--inject", "swapped_rows",
                                             code=1).stdout)

    def test_values_of_flags(self):
        for words in (["--verbose=foo"], ["-v=2"], ["--verbose=2"], ["--verbose=-1"], ["--verbose=" + "9" * 20]):
            with self.subTest(words):
                self.expect(["run", self.small, *words], "option --verbose takes no value, but is given \"")
        for words in (["--quiet=foo"], ["--quiet=false"], ["-q=1"]):
            with self.subTest(words):
                self.expect(["run", self.small, *words], "option --quiet takes no value, but is given")
        for flag in ("--strict", "--no-save", "--wide", "--in-process", "--allow-empty", "--include-host", "--sandbox"):
            with self.subTest(flag):
                self.expect(["run", self.small, flag + "=no"], f'option {flag} takes no value, but is given "no"')
        self.expect(["list", "ops", "--json=x"], 'option --json takes no value, but is given "x"')

    def test_short_options_with_values(self):
        for words in (["-k", "bf16"], ["-kbf16"], ["-k=bf16"], ["-qkbf16"], ["-qk=bf16"], ["-qk", "bf16"]):
            with self.subTest(words):
                self.assertIn("4 cases: 4 pass", self.run_small(*words))
        self.assertIn("8 cases: 8 pass", self.run_small("-k=m=[13]"), "only the first = separates")
        self.expect(["run", self.small, "-k="], "option --filter needs a value")
        self.expect(["run", self.small, "-vfoo"], "unknown option -foo")

    def test_two_dashes_end_the_options(self):
        self.run_cli("validate", "--", self.small, code=0)
        shutil.copy(self.folder / self.small, self.folder / "-q")
        self.assertIn("largest case", self.run_cli("validate", "--", "-q", self.small, code=0).stdout)

    def test_names_that_a_parser_takes_apart(self):
        for name in ("[a,b]", "[a]", "a,b", '"a"', "a b", "+", "++", "é…", "a\nb", "%s", "{}"):
            with self.subTest(name):
                shutil.copy(self.folder / self.small, self.folder / name)
                self.assertIn("8 cases", self.run_cli("validate", "./" + name, "-q", code=0).stdout)
        self.assertIn("8 cases", self.run_cli("validate", "[a,b]", "-q", code=0).stdout)
        self.assertIn("8 cases", self.run_cli("validate", "-q", "--", "[a,b]", code=0).stdout)
        self.assertIn("8 cases", self.run_cli("validate", "++", "-q", code=0).stdout)

    def test_help_as_a_word(self):
        for command in ("run", "list", "validate", "explain", "compare", "report", "exec", "doctor", "schema", "completion"):
            with self.subTest(command):
                self.assertEqual(self.run_cli("help", command, code=0).stdout, self.run_cli(command, "--help", code=0).stdout)
        self.assertEqual(self.run_cli("help", code=0).stdout, self.run_cli("--help", code=0).stdout)
        self.assertEqual(self.run_cli("help", "list", "faults", code=0).stdout, self.run_cli("help", "list", code=0).stdout)
        self.expect(["help", "rnu"], "unknown command rnu (did you mean run?)")
        self.expect(["rnu", "--help"], "unknown command rnu (did you mean run?)")

    def test_a_plan_without_a_command(self):
        self.expect([self.small], f"unknown command {self.small}; to run this plan: te-numcheck run {self.small}\n")
        self.expect(["quick"], "unknown command quick; to run this plan: te-numcheck run quick\n")
        self.expect([self.small, "--mode", "bf16"], f"unknown command {self.small}; to run this plan: ")
        self.expect(["nothere.json"], "unknown command nothere.json\n")
        self.expect(["explain", self.small], f"explain: name a case before its plan: te-numcheck explain ID|DIGEST {self.small}")
        shutil.copy(self.folder / self.small, self.folder / "my plan.json")
        self.expect(["my plan.json"], "unknown command my plan.json; to run this plan: te-numcheck run 'my plan.json'\n")

    def test_variables_are_blamed_for_what_they_say(self):
        for name, option, value in (("TE_NUMCHECK_JOBS", "--jobs", "abc"), ("TE_NUMCHECK_DEVICE", "--device", "gpu"),
                                    ("TE_NUMCHECK_LIB_DIR", "--lib-dir", "nowhere"), ("TE_NUMCHECK_COLOR", "--color", "blue"),
                                    ("TE_NUMCHECK_TE_LIB", "--te-lib", "nowhere.so")):
            with self.subTest(name):
                self.expect(["run", self.small], name + ": ", env={name: value})
                self.expect(["run", self.small, option, value], option + ": ")

    def test_several_devices(self):
        self.expect(["run", self.small, "--device", "sim:sm_80,sim:sm_90"],
                    '--device: "sim:sm_80,sim:sm_90" names several devices, but a run uses one')
        self.expect(["run", self.small, "--device", "sim:sm_80", "--device", "sim:sm_90"],
                    "option --device is given 2 times; it takes one value")

    def test_times_of_nothing(self):
        for option in ("--timeout", "--budget"):
            for value in ("0s", "0ms", "0.0m", "0h"):
                self.expect(["run", self.small, option, value], f'{option}: "{value}" is not a time greater than 0')

    def test_digests(self):
        digest = self.run_cli("list", "cases", self.small, "--mode", "bf16", code=0).stdout.split()[2]
        for name in (digest, digest[:5], digest.upper(), "#" + digest):
            with self.subTest(name):
                self.assertIn("1 case: 1 pass", self.run_small("--case", name))
        for name in ("0", "018", "#01", "ABC"):
            with self.subTest(name):
                self.expect(["run", self.small, "--case", name],
                            f'--case: "{name}" is too short for a digest; give at least 4 of its 32 digits')
                self.expect(["explain", name, self.small], f'explain: "{name}" is too short for a digest')
        self.expect(["run", self.small, "--case", "0" * 32], f'--case: no case has the digest "{"0" * 32}"')

    def test_resume_names_a_file(self):
        self.run_cli("run", self.small, *SIM, "--out", "an out", code=0)
        for name in ("report.json", "results.jsonl"):
            self.expect(["run", self.small, "--resume", f"an out/{name}"],
                        f"--resume an out/{name}: that is a file; name the folder of a run: --resume 'an out'\n")
        self.expect(["run", self.small, "--resume", self.small], f"--resume {self.small}: that is a file; name the folder of a run")

    def test_a_backend_without_the_op_says_so(self):
        case = {"op": "attention_fwd", "mode": "bf16", "backend": "cublaslt",
                "params": {"batches": 1, "heads": 1, "sq": 1, "sk": 1, "d": 8}}
        done = self.run_cli("run", self.plan(case=case), *SIM, code=4)
        self.assertIn("unsupported: cublaslt has no attention_fwd; backends that have it: cuda, cudnn, ", done.stdout)

    def test_exec_without_cases_says_so(self):
        for text in (b"", b"\n\n", b" \t\n"):
            done = self.run_cli("exec", *SIM, stdin=text, code=4)
            self.assertEqual(done.stdout, "")
            self.assertIn("nothing to run: standard input has no case", done.stderr)


if __name__ == "__main__":
    unittest.main()
