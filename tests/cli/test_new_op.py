"""scripts/new_op.py: its stubs compile, nothing is overwritten, mistakes are reported."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TE_NUMCHECK_SOURCE"])
COMPILER = os.environ.get("TE_NUMCHECK_CXX") or shutil.which("c++")


class NewOp(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="te-numcheck-new-op-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def run_script(self, *arguments):
        command = [sys.executable, "-B", SOURCE / "scripts/new_op.py", *arguments, "--root", self.root]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def test_the_stubs_compile(self):
        done = self.run_script("l2norm_fwd", "rows divided by their Euclidean norm")
        self.assertEqual(done.returncode, 0, done.stderr)
        written = [line for line in done.stdout.splitlines() if (self.root / line).is_file() and line]
        self.assertIn("lib/op/l2norm_fwd.hpp", written)
        self.assertIn("reference/l2norm_fwd.cpp", written)
        self.assertIn("{OP(l2norm_fwd), ", done.stdout)
        sources = [name for name in written if name.endswith(".cpp") and "/cuda/" not in name]
        self.assertGreaterEqual(len(sources), 3, written)
        include = [f"-I{root / folder}" for root in (self.root, SOURCE) for folder in ("lib", ".")]
        for name in sources:
            command = [COMPILER, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", *include, self.root / name]
            compiled = subprocess.run(command, capture_output=True, text=True, timeout=120)
            self.assertEqual(compiled.returncode, 0, f"{name}: {compiled.stderr}")
        formatter = shutil.which("clang-format-19")
        if formatter:
            command = [formatter, f"--style=file:{SOURCE / '.clang-format'}", "--dry-run", "--Werror"]
            formatted = subprocess.run([*command, *(self.root / name for name in written)], capture_output=True, text=True)
            self.assertEqual(formatted.returncode, 0, formatted.stderr)

    def test_the_row_that_contributing_shows_is_the_reference(self):
        blocks = (SOURCE / "CONTRIBUTING.md").read_text().split("```cpp\n")[1:]
        reference = (SOURCE / "reference" / "rmsnorm_fwd.cpp").read_text()
        rows = [block.split("```")[0] for block in blocks if "normalise_row" in block]
        self.assertEqual(len(rows), 1)
        self.assertIn(rows[0], reference)

    def test_nothing_is_overwritten(self):
        self.assertEqual(self.run_script("l2norm_fwd", "first").returncode, 0)
        header = self.root / "lib/op/l2norm_fwd.hpp"
        before = header.read_text()
        again = self.run_script("l2norm_fwd", "second")
        self.assertEqual(again.returncode, 2)
        self.assertIn("nothing was written", again.stderr)
        self.assertEqual(header.read_text(), before)

    def test_mistakes_are_reported(self):
        self.assertIn("snake_case", self.run_script("L2Norm", "rows").stderr)
        self.assertIn('"rope_fwd" is an op already', self.run_script("rope_fwd", "rows").stderr)
        self.assertIn('"switch" is a keyword', self.run_script("switch", "rows").stderr)
        self.assertIn("no quotes", self.run_script("l2norm", 'a "row"').stderr)
        self.assertEqual(list(self.root.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
