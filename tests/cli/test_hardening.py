"""How the program was linked, and that it runs no library from the working folder."""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

import elf
from support import CLEAN, PROGRAM, CliTest

BUILD = pathlib.Path(PROGRAM).resolve().parent.parent
CACHE = (BUILD / "CMakeCache.txt").read_text() if (BUILD / "CMakeCache.txt").exists() else ""
SANITIZED = "-fsanitize" in CACHE
UNOPTIMISED = "CMAKE_BUILD_TYPE:STRING=Debug" in CACHE
# Libraries that te-numcheck links dynamically or opens by name. The planted ones lack the symbols of the real ones.
PLANTED = ["libxxhash.so.0", "libfmt.so.9", "libfmt.so.10", "libopenblas.so.0", "libcuda.so.1", "libcublasLt.so.13",
           "libcublasLt.so.12", "libcudnn.so.9", "libnvidia-ml.so.1", "libstdc++.so.6", "libgcc_s.so.1", "libm.so.6"]


def executables():
    """The program, and every test and tool in the build folder."""
    found = [pathlib.Path(PROGRAM)]
    for path in sorted((BUILD / "tests").iterdir()) if (BUILD / "tests").is_dir() else []:
        if path.is_file() and os.access(path, os.X_OK) and elf.is_elf(path):
            found.append(path)
    return found


class RunPath(CliTest):
    def test_no_entry_depends_on_the_working_folder(self):
        for path in executables():
            entries = elf.Elf(path).run_paths()
            bad = [entry for entry in entries if not entry.startswith(("/", "$ORIGIN/", "${ORIGIN}/")) and entry != "$ORIGIN"]
            self.assertEqual(bad, [], f"{path}: {entries}")

    def test_libraries_of_the_working_folder_are_not_run(self):
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            self.skipTest("there is no C compiler to build the planted library with")
        (self.folder / "planted.c").write_text(
            '#include <fcntl.h>\n__attribute__((constructor)) static void act(void) { open("%s/loaded", O_CREAT | O_WRONLY, 0600); }\n'
            % self.folder)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", "planted.so", "planted.c"], cwd=self.folder, check=True)
        # The trap works: if told to look in the working folder, the loader runs the planted library.
        shutil.copy(self.folder / "planted.so", self.folder / "libcuda.so.1")
        trap = subprocess.run([PROGRAM, "doctor"], cwd=self.folder, capture_output=True, stdin=subprocess.DEVNULL,
                              env={**CLEAN, "LD_LIBRARY_PATH": "."}, timeout=60)
        self.assertTrue((self.folder / "loaded").exists(), trap.stderr)
        (self.folder / "loaded").unlink()
        for name in PLANTED:
            shutil.copy(self.folder / "planted.so", self.folder / name)
        plan = self.plan()
        clean = {name: value for name, value in CLEAN.items() if name not in ("LD_LIBRARY_PATH", "PYTHONPATH")}
        run = ["run", plan, "--device", "sim:sm_90", "--out", "out"]
        for command, codes in ((["--version"], [0]), (["doctor"], [0, 3]), (["list", "devices"], [0]), (run, [0])):
            done = subprocess.run([PROGRAM, *command], cwd=self.folder, env=clean, stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=60)
            self.assertFalse((self.folder / "loaded").exists(), f"{command} ran a library of the working folder")
            # A planted library without the symbols of the real one keeps the program from starting: 127.
            self.assertIn(done.returncode, codes, f"{command}: {done.stderr.decode()}")


class Flags(unittest.TestCase):
    def setUp(self):
        self.elf = elf.Elf(PROGRAM)

    def test_addresses_are_random_and_tables_read_only(self):
        self.assertEqual(self.elf.type, elf.ET_DYN)
        self.assertTrue(self.elf.has_relro())
        self.assertTrue(self.elf.binds_now())

    def test_stack_is_not_executable(self):
        flags = self.elf.stack_flags()
        self.assertEqual(len(flags), 1)
        self.assertEqual(flags[0] & elf.PF_X, 0)

    def test_stack_is_guarded_and_the_c_library_checks_sizes(self):
        names = self.elf.undefined()
        self.assertTrue(any(name.startswith("__stack_chk_fail") for name in names))
        if SANITIZED or UNOPTIMISED:
            self.skipTest("a build with sanitizers or without optimisation does without _FORTIFY_SOURCE")
        self.assertTrue([name for name in names if name.startswith("__") and name.endswith("_chk")])

    def test_every_source_is_compiled_with_the_checks(self):
        """A static library's symbols would satisfy the test above; here every source of ours must have the flags."""
        commands = BUILD / "compile_commands.json"
        if not commands.exists():
            self.skipTest("the build folder has no compile_commands.json")
        wanted = {"-fstack-protector-strong", "-D_GLIBCXX_ASSERTIONS"}
        wanted |= set() if SANITIZED or UNOPTIMISED else {"-D_FORTIFY_SOURCE=2"}
        sources = [entry for entry in json.loads(commands.read_text()) if entry["file"].endswith(".cpp")]
        self.assertGreater(len(sources), 100)
        for entry in sources:
            self.assertEqual(wanted - set(entry["command"].split()), set(), entry["file"])


if __name__ == "__main__":
    unittest.main()
