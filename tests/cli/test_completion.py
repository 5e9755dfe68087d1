"""Completion, by typing a Tab into real shells. What they complete is passed to a stand-in that writes its arguments down;
only its questions for values go to the program."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
import unittest

from support import CLEAN, PROGRAM, CliTest


class Shells(CliTest):
    def setUp(self):
        super().setUp()
        self.case_plan = self.plan(case={"mode": ["fp32", "bf16"], "tags": ["smoke", "slow"]})
        self.digest = self.run_cli("list", "cases", self.case_plan, "--mode", "bf16", code=0).stdout.split()[2]
        (self.folder / "my folder").mkdir()
        shutil.copy(self.folder / self.case_plan, self.folder / "my folder" / "a plan.json")
        self.bin = self.folder / ".bin"
        self.bin.mkdir()
        program = self.bin / "te-numcheck"
        program.write_text(f'#!/bin/sh\n[ "$1" = completion ] && exec {PROGRAM} "$@"\nprintf "<%s>" "$@" > "{self.folder}/.typed"\n')
        program.chmod(0o755)

    def typed(self, arguments, lines):
        """Types each line, which ends in a Tab and a line break, into the shell; returns what the stand-in was given."""
        env = {**CLEAN, "PATH": f"{self.bin}:{os.environ['PATH']}", "PS1": "READY> ", "TERM": "dumb", "HOME": str(self.folder),
               "INPUTRC": "/dev/null", "ZDOTDIR": str(self.folder / ".bin"), "HISTFILE": ""}
        main, side = pty.openpty()
        child = subprocess.Popen(arguments, cwd=self.folder, env=env, stdin=side, stdout=side, stderr=side,
                                 start_new_session=True)
        os.close(side)
        self.addCleanup(child.kill)
        self.screen = self.read(main, "READY> ", 20)
        results = []
        for line in lines:
            typed = self.folder / ".typed"
            typed.unlink(missing_ok=True)
            os.write(main, line.encode())
            deadline = time.monotonic() + 20
            while not typed.exists() and time.monotonic() < deadline:
                self.screen += self.read(main, None, 0.05)
            time.sleep(0.05)
            results.append(typed.read_text() if typed.exists() else f"nothing after {line!r}: {self.screen[-600:]}")
        os.write(main, b"exit\n")
        os.close(main)
        child.wait(timeout=20)
        return results

    @staticmethod
    def read(main, until, seconds):
        text = ""
        deadline = time.monotonic() + seconds
        while (until is None or until not in text) and time.monotonic() < deadline:
            if select.select([main], [], [], 0.05)[0]:
                try:
                    text += os.read(main, 65536).decode("utf-8", "replace")
                except OSError:
                    break
        return text

    def expected(self):
        """Lines to type, with the arguments that come of them."""
        return [
            ("te-numcheck val\t\n", "<validate>"),
            ("te-numcheck run --dev\t\n", "<run><--device>"),
            ("te-numcheck run --device sim:sm_8\t9\n", None),
            ("te-numcheck run --op layernorm_f\t\n", "<run><--op><layernorm_fwd>"),
            ("te-numcheck run --op=layernorm_f\t\n", "<run><--op=layernorm_fwd>"),
            ("te-numcheck run --op=gemm,layernorm_f\t\n", "<run><--op=gemm,layernorm_fwd>"),
            ("te-numcheck run --mode bf16,fp8_h\t\n", "<run><--mode><bf16,fp8_hybrid>"),
            ("te-numcheck run --device=sim:sm_10\t\n", "<run><--device=sim:sm_100>"),
            ("te-numcheck run --device sim:sm_10\t\n", "<run><--device><sim:sm_100>"),
            ("te-numcheck run --inject swapped_r\t\n", "<run><--inject><swapped_rows>"),
            ("te-numcheck run --color=alw\t\n", "<run><--color=always>"),
            ("te-numcheck run plan.json --tag smo\t\n", "<run><plan.json><--tag><smoke>"),
            ("te-numcheck run plan.json --tag=smo\t\n", "<run><plan.json><--tag=smoke>"),
            (f"te-numcheck run plan.json --case {self.digest[:5]}\t\n", f"<run><plan.json><--case><{self.digest}>"),
            (f"te-numcheck run plan.json --case={self.digest[:5]}\t\n", f"<run><plan.json><--case={self.digest}>"),
            ("te-numcheck run te_lin\t\n", "<run><te_linear_override>"),
            ("te-numcheck run pla\t\n", "<run><plan.json>"),
            ("te-numcheck explain rmsnorm_f\t\n", "<explain><rmsnorm_fwd>"),
            ("te-numcheck schema pl\t\n", "<schema><plan>"),
            ("te-numcheck list faults rmsnorm_f\t\n", "<list><faults><rmsnorm_fwd>"),
            ("te-numcheck completion zs\t\n", None),
            ("te-numcheck run my\\ folder/a\t\n", "<run><my folder/a plan.json>"),
            ("te-numcheck run --json=my\\ folder/a\t\n", "<run><--json=my folder/a plan.json>"),
            ("te-numcheck run --json my\\ folder/a\t\n", "<run><--json><my folder/a plan.json>"),
            ("te-numcheck run --out my\tx\n", "<run><--out><my folder/x>"),
        ]

    def check(self, arguments):
        lines = [(line, result) for line, result in self.expected() if result is not None]
        for (line, expected), got in zip(lines, self.typed(arguments, [line for line, _ in lines])):
            with self.subTest(line):
                self.assertEqual(got, expected)

    def test_bash(self):
        (self.bin / "rc").write_text('. <(te-numcheck completion bash)\nbind "set bell-style none"\nPS1="READY> "\n')
        self.check(["bash", "--noprofile", "--rcfile", str(self.bin / "rc"), "-i"])

    @unittest.skipUnless(shutil.which("zsh"), "no zsh here")
    def test_zsh(self):
        (self.bin / ".zshrc").write_text("autoload -Uz compinit\ncompinit -u -D\n. <(te-numcheck completion zsh)\n"
                                         "unsetopt beep\nsetopt no_prompt_cr\nPS1='READY> '\n")
        self.check(["zsh", "-i"])

    @unittest.skipUnless(shutil.which("zsh"), "no zsh here")
    def test_zsh_finds_the_script_by_its_name(self):
        (self.bin / "_te-numcheck").write_text(self.run_cli("completion", "zsh", code=0).stdout)
        (self.bin / ".zshrc").write_text(f"fpath=({self.bin} $fpath)\nautoload -Uz compinit\ncompinit -u -D\n"
                                         "setopt no_prompt_cr\nPS1='READY> '\n")
        self.assertEqual(self.typed(["zsh", "-i"], ["te-numcheck run --op layernorm_f\t\n"]), ["<run><--op><layernorm_fwd>"])

    @unittest.skipUnless(shutil.which("fish"), "no fish here")
    def test_fish(self):
        script = self.bin / "te.fish"
        script.write_text(self.run_cli("completion", "fish", code=0).stdout)
        env = {**CLEAN, "PATH": f"{self.bin}:{os.environ['PATH']}", "HOME": str(self.folder)}
        for line, expected in self.expected():
            if expected is None or "\tx" in line:
                continue
            with self.subTest(line):
                line = line.split("\t")[0]
                done = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C $argv[1]", line], env=env,
                                      cwd=self.folder, capture_output=True, timeout=60, text=True)
                offered = [entry.split("\t")[0] for entry in done.stdout.splitlines()]
                wanted = re.findall("<([^>]*)>", expected)[-1]
                self.assertIn(wanted.replace(" ", "\\ "), [entry.replace("\\ ", " ").replace(" ", "\\ ") for entry in offered],
                              done.stderr)

    def test_what_the_scripts_ask(self):
        ask = lambda *words, code=0: self.run_cli("completion", "--values", *words, code=code).stdout.splitlines()  # noqa: E731
        self.assertIn("quick", ask("plan", "--", "run"))
        self.assertIn("quick", ask("plan", "--", "list", "cases"))
        for topic in ("faults", "modes", "backends"):
            self.assertIn("gemm", ask("plan", "--", "list", topic))
            self.assertNotIn("quick", ask("plan", "--", "list", topic))
        self.assertEqual(ask("tag", "--", "run", self.case_plan, "--tag"), ["slow", "smoke"])
        self.assertEqual(len(ask("case", "--", "run", self.case_plan)), 2)
        self.assertEqual(ask("tag", "--", "run"), [])
        self.assertEqual(ask("nothing", "--", "run", self.case_plan), [])
        (self.folder / "broken.json").write_text("{")
        self.assertEqual(ask("tag", "--", "run", "broken.json", "nothere.json"), [])
        hostile = self.plan("hostile.json", case={"tags": ["$(touch gone)", "`touch gone`", "a b", "x\ny", "é", "'"]})
        self.assertNotIn("x", ask("tag", "--", "run", hostile))

    def test_tags_are_not_commands(self):
        plan = self.plan("hostile.json", case={"tags": ["$(touch gone)", "`touch gone`", "zz;touch gone"]})
        (self.bin / "rc").write_text('. <(te-numcheck completion bash)\nPS1="READY> "\n')
        self.typed(["bash", "--noprofile", "--rcfile", str(self.bin / "rc"), "-i"], [f"te-numcheck run {plan} --tag '\t\t'\n"])
        self.assertFalse((self.folder / "gone").exists())


if __name__ == "__main__":
    unittest.main()
