"""Text from plans, reports, file names, arguments and variables is escaped before a terminal or CI service sees it."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import hostile  # noqa: E402
from support import CLEAN, PROGRAM, TIMEOUT_S, CliTest  # noqa: E402

SIM = ["--device", "sim:sm_90"]
NAME = hostile.TEXT.replace("/", "")


class Hostile(CliTest):
    def check(self, *arguments, code, env=None, stdin=None, colour=False):
        """Runs the program, checks both streams and returns them as text."""
        for actions in (False, True):
            done = subprocess.run([PROGRAM, *arguments], cwd=self.folder, capture_output=True, timeout=TIMEOUT_S,
                                  env={**CLEAN, **({"GITHUB_ACTIONS": "true"} if actions else {}), **(env or {})},
                                  input=b"" if stdin is None else stdin)
            streams = [stream.decode("utf-8", "surrogateescape") for stream in (done.stdout, done.stderr)]
            self.assertEqual(done.returncode, code, streams)
            for stream in streams:
                self.assertEqual(hostile.faults(stream, colour, actions), [])
        return streams

    def hostile_plan(self, **fields):
        """A valid plan with hostile text wherever a plan allows it: names may contain anything but C0 controls."""
        case = {"mode": ["fp32", "bf16"], "xfail": [{"match": {"mode": "fp32"}, "reason": "::error::" + hostile.TEXT}],
                **fields.pop("case", {})}
        path = self.folder / self.plan(description=hostile.TEXT, case=case, **fields)
        path.write_text(json.dumps({**json.loads(path.read_text()), "name": "::error::\x7f\x9b2J\u202e\u200b ##[error]"}))
        return path.name

    def test_a_plan_in_every_view(self):
        plan = self.hostile_plan()
        for verbosity in ([], ["-v"], ["-vv"], ["-q"], ["--wide", "-vv"]):
            self.check("run", plan, *SIM, "--no-save", *verbosity, code=1)
        self.check("run", plan, *SIM, "--no-save", "--color", "always", "-vv", code=1, colour=True)
        out, _ = self.check("run", plan, *SIM, "--json", "-", code=1)
        report = json.loads(out)
        self.assertIn(hostile.TEXT, report["cases"][0]["reason"])
        self.check("validate", plan, code=0)
        out, _ = self.check("list", "cases", plan, code=0)
        self.check("explain", out.split("\n")[1].split()[0], plan, code=0)
        self.check("list", "cases", plan, "--json", code=0)
        self.assertTrue(self.check("run", plan, "--tag", "x", code=2)[1].startswith("error: --tag x: no case"))

    def test_what_xfail_says_is_shown_in_one_line(self):
        plan = self.hostile_plan(case={"mode": "fp32"})
        out, _ = self.check("run", plan, *SIM, "--inject", "missing_k_tail", "--no-save", code=4)
        self.assertRegex(out, r"(?m)^ {12}.*:error::x\\x1b\[2J.*\\n::error::injected")

    def test_mistakes_of_a_plan(self):
        text = hostile.TEXT
        for fields in ({"case": {"mode": text}}, {"case": {text: 1}}, {text: text}, {"extends": [text]},
                       {"case": {"tags": [text]}}, {"case": {"environment": [{"NVIDIA_TF32_OVERRIDE": text}]}},
                       {"case": {"environment": [{text: "1"}]}}, {"case": {"params": {"m": text, "n": 1, "k": 1}}},
                       {"case": {"xfail": [{"match": {"mode": "bf16"}, "reason": text, "expires": text}]}}):
            with self.subTest(fields):
                self.check("validate", self.plan(**fields), code=2)
        raw = self.folder / "raw.json"
        for content in ("{" + text, '{"version": 1, "' + text + '": 1}', "\x1b[31m", '{"version": "\u202e" x}'):
            raw.write_text(content)
            self.check("validate", "raw.json", code=2)
        raw.write_bytes(b'{"version": 1, \xff\xfe}')
        self.check("validate", "raw.json", code=2)

    def test_names_of_files(self):
        for name in (NAME, "$(touch pwned) ';&.json", "-rf.json", "::error::x", b"\xff\x1b\xc0.json"):
            with self.subTest(name):
                os.rename(self.folder / self.plan(), os.fsencode(self.folder) + b"/" + os.fsencode(name))
                path = b"./" + os.fsencode(name)
                self.check("validate", path, code=0)
                self.check("run", path, *SIM, "--no-save", "-v", code=0)
                self.check("run", path, *SIM, "--no-save", "--inject", "missing_k_tail", "--color", "always", code=1,
                           colour=True)
                self.check("validate", path, "--max-cases", "0", code=2)
                self.check("run", path, *SIM, "--json", b"nowhere" + os.fsencode(name) + b"/x", code=2)
                self.check("run", path, *SIM, "--no-save", "--keep-tensors", b"kept" + os.fsencode(name), code=0)
                out = subprocess.run([PROGRAM, "run", path, *SIM, "--out", b"out" + os.fsencode(name)], cwd=self.folder,
                                     env=CLEAN, capture_output=True, timeout=TIMEOUT_S).stdout
                self.assertEqual(hostile.faults(out.decode("utf-8", "surrogateescape")), [])
        for name in (NAME + "z", b"\xff\x1b"):
            self.check("validate", name, code=2)
            self.check("run", name, code=2)

    def test_the_command_that_repeats_a_case_is_for_a_shell(self):
        """What the console says after "run again", given to a shell, runs that plan."""
        for name in ("$(touch pwned) ';&.json", "new\nline\x1b.json", "-x.json", "it's.json"):
            with self.subTest(name):
                os.rename(self.folder / self.plan(), self.folder / name)
                out, _ = self.check("run", "./" + name, *SIM, "--no-save", "--inject", "missing_k_tail", code=1)
                (command,) = [line.split("run again: te-numcheck ")[1] for line in out.split("\n") if "run again" in line]
                done = subprocess.run(["bash", "-c", f'"$0" {command} --no-save', PROGRAM], cwd=self.folder, env=CLEAN,
                                      capture_output=True, timeout=TIMEOUT_S)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertFalse((self.folder / "pwned").exists())

    def test_arguments(self):
        plan, text = self.plan(), hostile.TEXT
        for arguments in ([text], ["run", "--" + text], ["list", text], ["explain", text], ["completion", text],
                          ["doctor", text], ["schema", text], ["explain", "a/" + text]):
            self.check(*arguments, code=2)
        for option in ("--op", "--mode", "--backend", "--tag", "--case", "--failed-in", "--sample", "--shard", "--device",
                       "--lib-dir", "--te-lib", "--jobs", "--timeout", "--memory", "--repeat", "--inject", "--budget",
                       "--resume", "--max-cases", "--color", "--progress"):
            with self.subTest(option):
                self.check("run", plan, option, text, code=2)
        self.check("run", plan, "--filter", text + "(", code=2)
        self.check("run", plan, "--json", "nowhere/" + text, code=2)

    def test_a_report(self):
        plan = self.plan()
        for report in ({"schema": "te-numcheck/report", "schema_version": hostile.TEXT, "cases": []},
                       {"schema": hostile.TEXT}, {"schema": "te-numcheck/report", "schema_version": "1.0.0", "cases": [7]}):
            (self.folder / "report.json").write_text(json.dumps(report))
            self.check("run", plan, "--failed-in", "report.json", code=2)
        (self.folder / "report.json").write_text("\x1b[31m{")
        self.check("run", plan, "--failed-in", "report.json", code=2)

    def test_variables(self):
        plan = self.plan()
        env = {"CUBLAS_WORKSPACE_CONFIG": hostile.TEXT, "NVTE_" + "X\u202e\x1b": hostile.TEXT}
        self.check("run", plan, *SIM, "--no-save", code=0, env=env)
        self.check("run", plan, *SIM, "--json", "-", code=0, env=env)
        # The exit code depends on the libraries of this machine; --device names one that always exists.
        done = subprocess.run([PROGRAM, "doctor", *SIM], cwd=self.folder, env={**CLEAN, **env}, capture_output=True,
                              timeout=TIMEOUT_S)
        out = done.stdout.decode("utf-8", "surrogateescape")
        self.assertIn("\\n::error::injected", out)
        self.assertEqual(hostile.faults(out), [])
        for name in ("TE_NUMCHECK_DEVICE", "TE_NUMCHECK_COLOR", "TE_NUMCHECK_JOBS", "TE_NUMCHECK_TE_LIB"):
            with self.subTest(name):
                self.check("run", plan, code=2, env={name: hostile.TEXT})

    def test_lines_that_exec_reads(self):
        for line in (hostile.TEXT, json.dumps({"op": hostile.TEXT}), json.dumps({hostile.TEXT: 1}), "\x1b", "[" * 40):
            self.check("exec", *SIM, code=2, stdin=line.encode() + b"\n")
        case = {"op": "gemm", "params": {"m": 4, "n": 4, "k": 4}, "mode": "fp32", "backend": "sim"}
        for extra in ({}, {"environment": {"NVIDIA_TF32_OVERRIDE": hostile.TEXT}}, {"backend": hostile.TEXT}):
            line = json.dumps({**case, **extra}).encode()
            out, _ = self.check("exec", *SIM, code=2 if extra else 0, stdin=line + b"\n")
            self.assertEqual(out == "", bool(extra))

    def test_help_version_and_completions_stay_as_they_are(self):
        for arguments in (["--help"], ["--version"], ["completion", "bash"], ["completion", "zsh"], ["completion", "fish"],
                          ["schema"], ["explain", "gemm"], ["list", "variables"]):
            self.check(*arguments, code=0)


if __name__ == "__main__":
    unittest.main()
