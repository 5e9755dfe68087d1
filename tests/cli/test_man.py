"""The manual page: complete, and troff that no reader complains about."""

import re
import shutil
import subprocess
import unittest

from support import CLEAN, SOURCE, CliTest

# Calls that read a variable.
READS = re.compile(r'(?:getenv|envname|variable|value_of|environment|read_variable|lookup|number|is_set|absolute_folder|'
                   r'absolute_entries)\(\s*"([A-Z][A-Z0-9_]+)"')
# Tables of variables that are read.
NAMES = re.compile(r'"((?:TE_NUMCHECK|GTEST|SLURM|OMPI|PMI|JOB|CI)_[A-Z0-9_]+)"')


def sources():
    for folder in ("app", "lib", "kernels", "reference"):
        yield from (SOURCE / folder).rglob("*.cpp")


class ManualPage(CliTest):
    def setUp(self):
        super().setUp()
        self.troff = self.run_cli("man", code=0).stdout
        self.plain = self.troff.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")

    def section(self, title):
        return re.search(rf"^\.SH {title}\n(.*?)(?=^\.SH |\Z)", self.plain, re.DOTALL | re.MULTILINE)[1]

    def test_every_command_and_option(self):
        listed = re.search(r"commands:\n(.*?)\n\n", self.run_cli("--help", code=0).stdout, re.DOTALL)[1]
        commands = re.findall(r"^  (\w+)", listed, re.MULTILINE)
        self.assertIn("man", commands)
        common = self.section("COMMON OPTIONS")
        for command in commands:
            section = re.search(rf"^\.SS {command}\n(.*?)(?=^\.S[SH] )", self.plain, re.DOTALL | re.MULTILINE)[1]
            text = self.run_cli(command, "--help", code=0).stdout
            options = re.findall(r"^ +(?:-\w, )?(--[\w-]+)", text, re.MULTILINE)
            self.assertGreater(len(options), 5)
            for option in options:
                self.assertRegex(section + common, rf"\n(-\w, )?{option}\b", f"{command} {option}")
            for example in re.findall(r"^  (te-numcheck .*)", text, re.MULTILINE):
                self.assertIn(example.replace("\\", "\\e").replace("'", "\\(aq").replace('"', "\\(dq").replace("~", "\\(ti"),
                              section)

    def test_every_exit_code(self):
        codes = set(re.findall(r"\.TP\n(\d+)\n", self.section("EXIT STATUS")))
        used = set()
        for source in (SOURCE / "app" / "commands").glob("*.cpp"):
            for found in re.findall(r"\.exit_codes = \{([\d, ]+)\}", source.read_text()):
                used.update(found.replace(" ", "").split(","))
        self.assertGreater(len(used), 5)
        self.assertEqual(codes, used)

    def test_every_variable(self):
        section = self.section("ENVIRONMENT")
        names = set(re.findall(r"^  ([A-Z][A-Z0-9_]+) ", self.run_cli("doctor", "--device", "sim:sm_90", code=0).stdout, re.MULTILINE))
        self.assertIn("NVIDIA_TF32_OVERRIDE", names)
        for source in sources():
            text = source.read_text()
            names.update(READS.findall(text))
            names.update(NAMES.findall(text))
        self.assertIn("TE_NUMCHECK_COLOR", names)
        self.assertIn("CI_NODE_TOTAL", names)
        for name in sorted(names):
            self.assertRegex(section, rf"\b{name}\b", "add it to app/variables.cpp")

    def test_ascii_and_known_requests_only(self):
        self.assertTrue(self.troff.isascii())
        requests = set(re.findall(r"^[.'](\S*)", self.troff, re.MULTILINE))
        self.assertLessEqual(requests, {"TH", "nh", "SH", "SS", "PP", "TP", "RS", "RE", "nf", "fi"})

    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not installed")
    def test_mandoc_has_no_complaint(self):
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=self.troff, capture_output=True, text=True, timeout=60)
        # The date is that of the commit; a tree without git has none.
        complaints = [line for line in done.stdout.splitlines() if "missing date" not in line]
        self.assertEqual(complaints, [])

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_groff_has_no_warning(self):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-rLL=100n"], input=self.troff, capture_output=True, text=True,
                              timeout=60, env={**CLEAN, "LC_ALL": "C.UTF-8"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        text = re.sub(r"\x1b\[[\d;]*m|.\x08", "", done.stdout)
        self.assertIn("te-numcheck run", text)
        self.assertIn("NVIDIA_TF32_OVERRIDE", text)


if __name__ == "__main__":
    unittest.main()
