"""Every option of every command with invalid values: exit code 2 and a message that names the option."""

import os
import re
import shutil
import subprocess
import unittest

from support import CLEAN, PROGRAM, CliTest

SIM = ["--device", "sim:sm_90"]
LONG = "9" * 131_000  # an argument has 131 071 bytes at most
BAD = ["", " ", "0", "-1", "-0", "+1", "nan", "inf", "1e300", "1e999", "99999999999999999999", "9" * 31, "1.5.2", "x", "0x10",
       ",", "a,,b", "\n", "\u202e", b"\xff\xfe", LONG, "1s " * 9, "1 GiB", "0s", "0ms", "0.0s", "0B", "0/1", "2/1", "1/0",
       "999999999999h", "auto/0", "1/99999999999", "cuda:-1", "cuda:99999999999", "sim:sm_1", "sim:"]

# The values above that an option accepts: expressions that match nothing or everything, and the first GPU.
SELECTS_NOTHING = {" ", "0", "-1", "-0", "nan", "inf", "1e300", "1e999", "99999999999999999999", "9" * 31, "1.5.2", "x",
                   "0x10", ",", "a,,b", "\n", "\u202e", b"\xff\xfe", "1s " * 9, "1 GiB", "0s", "0ms", "0.0s", "0B", "0/1",
                   "2/1", "1/0", "999999999999h", "auto/0", "1/99999999999", "cuda:-1", "cuda:99999999999", "sim:sm_1", "sim:"}
RIGHT = {
    "--filter": SELECTS_NOTHING, "--exclude": SELECTS_NOTHING,
    "--sample": set(), "--shard": set(), "--max-cases": set(), "--jobs": set(), "--repeat": set(), "--fail-fast": set(),
    "--timeout": set(), "--budget": set(), "--memory": set(), "--device": {"0"}, "--inject": set(), "--op": set(),
    "--mode": set(), "--backend": set(), "--tag": set(), "--case": set(), "--failed-in": set(), "--lib-dir": set(),
    "--te-lib": set(), "--color": set(), "--progress": set(), "--resume": set(),
}
PATHS = ["--json", "--brief-json", "--out", "--keep-tensors"]  # any name may be that of a file
OF_LIST = ["--filter", "--exclude", "--op", "--mode", "--backend", "--tag", "--case", "--failed-in", "--sample", "--shard",
           "--max-cases", "--te-lib", "--color", "--progress"]
OF_VALIDATE = ["--max-cases", "--color", "--progress"]


class BadValues(CliTest):
    def setUp(self):
        super().setUp()
        self.small = self.plan()

    def expect(self, command, option, value):
        arguments = [*command, option, value]
        done = self.run_bytes(*arguments)
        shown = str(value)[:40]
        if value in RIGHT[option]:
            self.assertIn(done.returncode, (0, 3, 4), f"{option} {shown}: {done.stderr[:500]}")
            return
        self.assertEqual(done.returncode, 2, f"{command} {option} {shown}: {done.stdout[:300]} {done.stderr[:500]}")
        self.assertEqual(done.stdout, b"")
        message = done.stderr.decode("utf-8")
        names = {"--op": "unknown op|--op", "--mode": "unknown mode|--mode", "--backend": "unknown backend|--backend",
                 "--tag": "--tag", "--inject": "unknown fault|--inject", "--device": "--device|device"}
        self.assertRegex(message, f"^error: .*({names.get(option, re.escape(option))})", option)
        self.assertLess(len(message), 4000)

    def run_bytes(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], cwd=self.folder, env=CLEAN, capture_output=True, timeout=60,
                              stdin=subprocess.DEVNULL)

    def test_of_run(self):
        for option in RIGHT:
            for value in BAD:
                if option == "--fail-fast" or value in RIGHT[option]:
                    continue  # --fail-fast takes what is not a number after a = only; --filter is in test_of_list
                with self.subTest(option=option, value=str(value)[:40]):
                    self.expect(["run", self.small, "--no-save"], option, value)
        self.assertEqual([path.name for path in self.folder.iterdir()], [self.small], "nothing was written")

    def test_of_list_and_validate(self):
        for command, options in ((["list", "cases", self.small], OF_LIST), (["validate", self.small], OF_VALIDATE)):
            for option in options:
                for value in BAD if option in ("--filter", "--exclude") else BAD[::3]:  # test_of_run has them all
                    with self.subTest(command=command[0], option=option, value=str(value)[:40]):
                        self.expect(command, option, value)

    def test_of_exec_and_doctor(self):
        for command in (["exec"], ["doctor"]):
            for option in ("--device", "--lib-dir", "--te-lib") + (("--jobs", "--timeout", "--memory", "--repeat", "--inject")
                                                                   if command == ["exec"] else ()):
                for value in BAD[::3]:
                    with self.subTest(command=command[0], option=option, value=str(value)[:40]):
                        self.expect(command, option, value)

    def test_numbers_after_an_equals_sign(self):
        for value in BAD:
            if isinstance(value, str):
                with self.subTest(value=value[:40]):
                    done = self.run_cli("run", self.small, "--no-save", "--fail-fast=" + value, code=2)
                    self.assertRegex(done.stderr, "^error: .*--fail-fast")

    def test_empty_values_are_refused_by_all_options(self):
        """Takes the options from the help, so that none is forgotten."""
        for command in ("run", "list", "validate", "explain", "exec", "doctor"):
            page = self.run_cli(command, "--help", code=0).stdout
            options = re.findall(r"(?m)^  (?:-\w, |    )(--[a-z-]+) [A-Za-z|]+", page)
            self.assertGreater(len(options), 1)
            for option in options:
                for arguments in ([option, ""], [option + "="]):
                    with self.subTest(command=command, arguments=arguments):
                        message = self.run_cli(command, *arguments, code=2).stderr
                        self.assertRegex(message, f"error: option {option} needs a value")
        self.assertIn("needs a value", self.run_cli("run", self.small, "--quiet=", code=2).stderr)
        self.assertIn("option --filter needs a value", self.run_cli("run", self.small, "-k", "", code=2).stderr)

    def test_empty_arguments(self):
        for arguments in (["run", ""], ["run", self.small, ""], ["validate", ""], ["list", ""], ["list", "cases", ""],
                          ["explain", ""], ["schema", ""], ["completion", ""]):
            with self.subTest(arguments):
                self.assertIn("an argument is empty", self.run_cli(*arguments, code=2).stderr)

    def test_empty_variables_count_as_unset(self):
        env = {name: "" for name in ("TE_NUMCHECK_DEVICE", "TE_NUMCHECK_LIB_DIR", "TE_NUMCHECK_TE_LIB", "TE_NUMCHECK_JOBS",
                                     "TE_NUMCHECK_COLOR")}
        self.run_cli("run", self.small, *SIM, "--no-save", code=0, env=env)
        self.run_cli("validate", self.small, code=0, env=env)

    def test_options_that_take_one_value(self):
        for option, value in (("--sample", "1"), ("--shard", "1/2"), ("--jobs", "1"), ("--timeout", "9s"), ("--out", "o"),
                              ("--budget", "9s"), ("--memory", "1GiB"), ("--repeat", "2"), ("--device", "sim:sm_90"),
                              ("--max-cases", "9"), ("--failed-in", "r.json"), ("--resume", "o"), ("--inject", "bit_flip")):
            with self.subTest(option):
                message = self.run_cli("run", self.small, option, value, option, value, code=2).stderr
                self.assertEqual(message, f"error: option {option} is given 2 times; it takes one value\n")

    def test_values_at_the_bounds(self):
        self.run_cli("run", self.small, *SIM, "--no-save", "--timeout", "24h", "--budget", "8760h", "--memory", "1TiB",
                     "--jobs", "2", "--repeat", "1", "--max-cases", "10000000", "--sample", "18446744073709551615", code=0)
        for option, value in (("--max-cases", "10000001"), ("--timeout", "24.1h"), ("--budget", "8761h"), ("--jobs", "65"),
                              ("--memory", "2PiB")):
            with self.subTest(option):
                self.assertIn(option, self.run_cli("run", self.small, *SIM, "--no-save", option, value, code=2).stderr)


class TooLarge(CliTest):
    def test_plans_whose_exclude_drops_everything(self):
        plan = self.plan(case={"exclude": [{"mode": "fp32"}]})
        for arguments in (["validate", plan], ["validate", "-q", plan]):
            done = self.run_cli(*arguments, code=4)
            self.assertIn('plan: no case is left to run: "exclude" drops all', done.stderr)
            self.assertNotIn("is valid", done.stdout)
        self.run_cli("run", plan, *SIM, code=4)
        self.run_cli("list", "cases", plan, code=4)

    def test_cases_that_do_not_fit_are_refused_before_they_are_created(self):
        axis = {"from": 1, "to": 215, "step": 1}
        plan = self.plan(case={"params": {"m": axis, "n": axis, "k": axis}, "tags": [f"{'x' * 60}{i}" for i in range(32)]})  # 9 938 375
        with open("/proc/meminfo", encoding="ascii") as meminfo:
            total = int(re.search(r"MemTotal: +(\d+) kB", meminfo.read())[1]) << 10
        if total > 40 << 30:
            self.skipTest("this machine has the memory")
        done = self.run_cli("validate", plan, "--max-cases", "10000000", code=2)
        self.assertRegex(done.stderr, r"the plan has 9938375 cases, which take about 3[78]\.\d GiB of memory; the limit is ")
        self.assertIn("m 215 x n 215 x k 215", done.stderr)


class WorkingFolder(CliTest):
    def test_no_library_in_the_working_folder_is_loaded(self):
        fake = os.environ.get("TE_FAKE_LIBRARY", "")
        if not os.path.exists(fake):
            self.skipTest("no stand-in for TransformerEngine's library was built")
        shutil.copy(fake, self.folder / "libtransformer_engine.so")
        packages = self.folder / "env" / "lib" / "python3.11" / "site-packages" / "transformer_engine"
        packages.mkdir(parents=True)
        shutil.copy(fake, packages / "libtransformer_engine.so")
        (self.folder / "env" / "bin").mkdir()
        (self.folder / "env" / "bin" / "python3").touch()
        here = os.path.realpath(self.folder)
        for name, value in (("PYTHONPATH", "."), ("PYTHONPATH", ":"), ("PYTHONPATH", "env/lib/python3.11/site-packages"),
                            ("VIRTUAL_ENV", "env"), ("CONDA_PREFIX", "./env"), ("PATH", "env/bin:" + os.environ["PATH"])):
            with self.subTest(name=name, value=value):
                done = self.run_cli("doctor", *SIM, env={"HOME": "/nonexistent", name: value})
                self.assertNotIn(here, done.stdout + done.stderr)
                self.assertNotRegex(done.stdout, r"\((\./|env/|libtransformer)")
                self.assertIn(f'its entry "{value.split(":")[0]}" is relative', done.stdout)
        named = self.run_cli("doctor", *SIM, "--te-lib", "libtransformer_engine.so", env={"HOME": "/nonexistent"})
        self.assertIn(f"{here}/libtransformer_engine.so", named.stdout, "a path that the user names may be relative")


if __name__ == "__main__":
    unittest.main()
