"""Under tight system limits every command soon ends with a correct result or a message: it never hangs, and no signal
ends it. CTest runs a few steps of each limit, `test_limits.py --full` all of them."""

import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time
import unittest

from support import CLEAN, PROGRAM, CliTest, has_nvidia_driver

FULL = "--full" in sys.argv
LIMIT_S = 15
MIB = 1 << 20
# MiB of address space below which the loader cannot even map the program and its libraries, which no code of ours sees.
FLOOR = os.path.getsize(PROGRAM) // MIB + 14
SIM = ["--device", "sim:sm_90"]
# Not 1, because no numbers may differ, nor 130, because an interrupt would come from a library.
ENDS = {0, 2, 3, 4}
GEMM = {"op": "gemm", "mode": ["fp32", "bf16"], "backend": "sim", "params": {"m": 96, "n": 80, "k": [64, 200]}}
NORM = {"op": "layernorm_fwd", "mode": "bf16", "backend": "sim", "params": {"rows": 64, "hidden": 256}}
# A user ID that nobody else has, because RLIMIT_NPROC counts all threads of a user.
STRANGER = 200_000 + os.getpid() % 100_000


def steps(values):
    """All values, or three that span them."""
    return values if FULL else sorted({values[0], values[len(values) // 3], values[-1]})


def stacks_of(process):
    """Where the threads of a process that does not end are, as far as gdb is there and may look."""
    gdb = shutil.which("gdb")
    if gdb is None:
        return "there is no gdb to say where its threads are"
    done = subprocess.run([gdb, "-p", str(process), "-batch", "-ex", "thread apply all backtrace 12"], capture_output=True, text=True,
                          timeout=60)
    return done.stdout + done.stderr


class Limits(CliTest):
    def setUp(self):
        super().setUp()
        self.plan_name = self.plan(cases=[GEMM, NORM])
        self.program = PROGRAM
        self.number = 0

    def commands(self):
        run = ["run", self.plan_name, *SIM]
        return [["--version"], ["list", "ops"], ["validate", self.plan_name], ["doctor"], run, [*run, "--in-process"]]

    def run_limited(self, what, value, command, user=None, env=None):
        """One command under one limit; returns exit code and stderr."""
        self.number += 1
        out = ["--out", f"out{self.number}"] if command[0] == "run" else []

        def limit():
            resource.setrlimit(what, (value, value))
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)

        name = f"{command} under limit {what} = {value}"
        start = time.monotonic()
        child = subprocess.Popen([self.program, *command, *out], cwd=self.folder, env={**CLEAN, **(env or {})}, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limit, start_new_session=True)
        try:
            stdout, stderr = child.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            stacks = stacks_of(child.pid)
            os.killpg(child.pid, 9)
            child.communicate()
            self.fail(f"{name} does not end\n{stacks}")
        text = stderr.decode(errors="replace")
        if FULL:
            print(f"{name}: {child.returncode} after {time.monotonic() - start:.2f} s {text.strip()[:300]!r}", flush=True)
        self.assertIn(child.returncode, ENDS, f"{name}\n--- stdout\n{stdout.decode()[-2000:]}\n--- stderr\n{text}")
        if child.returncode != 0:
            said = text + stdout.decode(errors="replace")
            self.assertRegex(said, r"(?m)^(te-numcheck: )?error\b|^BAD |ERROR|CRASHED|\berror\b",
                             f"{name}: no message of ours\n{text}")
            self.assertTrue(text.strip() or stdout.strip(), name)
        return child.returncode, text

    def sweep(self, what, values, user=None):
        for value in steps(values):
            for command in self.commands():
                with self.subTest(limit=value, command=command):
                    self.run_limited(what, value, command, user)

    def test_address_space(self):
        first, last = 200 * MIB, 4096 * MIB
        self.sweep(resource.RLIMIT_AS, [first + (last - first) * i // 19 for i in range(20)])

    def test_memory_runs_out_midway(self):
        large = {"op": "layernorm_fwd", "mode": "bf16", "backend": "sim", "params": {"rows": 4096, "hidden": 2048}}
        plan = self.plan("large.json", cases=[{**GEMM, "params": {"m": 1024, "n": 768, "k": 96}}, large])
        for limit in steps([FLOOR, 80, 100, 120, 130, 150, 180, 200, 220, 240, 280, 350, 450, 600]):
            for extra in ([], ["--in-process"]):
                with self.subTest(limit=limit, extra=extra):
                    self.run_limited(resource.RLIMIT_AS, limit * MIB, ["run", plan, *SIM, *extra])

    def test_many_threads_in_little_memory(self):
        """As on a machine with 16 processors: heaps and stacks of threads take address space, too."""
        for limit in range(FLOOR, 260, 20) if not FULL else range(FLOOR, 600, 4):
            for extra in ([], ["--in-process"]):
                with self.subTest(limit=limit, extra=extra):
                    self.run_limited(resource.RLIMIT_AS, limit * MIB, ["run", self.plan_name, *SIM, *extra],
                                     env={"LD_PRELOAD": os.environ["TE_MANY_CPUS"]})

    def test_reference_without_room_for_the_buffers_of_openblas(self):
        def reference(limit):
            done = subprocess.run([PROGRAM, "doctor"], cwd=self.folder, env=CLEAN, capture_output=True, text=True, timeout=60,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
            return re.search(r"reference +(\w+)", done.stdout).group(1)

        if resource.getrlimit(resource.RLIMIT_AS)[1] != resource.RLIM_INFINITY:
            self.skipTest("the address space of this process is limited itself")
        if reference(resource.RLIM_INFINITY) != "OpenBLAS":
            self.skipTest("no OpenBLAS is linked")
        # OpenBLAS would retry forever to get each of its buffers.
        self.assertEqual([reference(512 * MIB), reference(1 << 44)], ["Eigen", "OpenBLAS"])

    def test_threads_of_openblas_are_recorded_as_the_user_set_them(self):
        """The program sets the variable while OpenBLAS initialises itself."""
        for value in (None, "3"):
            env = {} if value is None else {"OPENBLAS_NUM_THREADS": value}
            out = f"threads-{value}"
            self.run_cli("run", self.plan_name, *SIM, "--out", out, code=0, env=env)
            self.assertEqual(self.report(f"{out}/report.json")["environment"].get("OPENBLAS_NUM_THREADS"), value)

    def test_descriptors(self):
        self.sweep(resource.RLIMIT_NOFILE, [8, 9, 10, 11, 12, 13, 14, 16, 20, 24, 32, 48, 64])

    def test_stack(self):
        self.sweep(resource.RLIMIT_STACK, [64 << 10])

    def test_size_of_files(self):
        self.sweep(resource.RLIMIT_FSIZE, [10 << 10])

    def unprivileged_user(self):
        """The user to run as, for limits that do not apply to root."""
        if os.geteuid() != 0:
            return None
        # That user may not be allowed to read the folders above the program's.
        os.chmod(self.folder, 0o777)
        self.program = str(shutil.copy(PROGRAM, self.folder))
        os.chmod(self.program, 0o755)
        if not self.can_run_as(STRANGER):
            self.skipTest("the program cannot be run as another user here")
        return STRANGER

    def test_threads(self):
        self.sweep(resource.RLIMIT_NPROC, list(range(2, 17)), self.unprivileged_user())

    def test_commands_that_compute_nothing_start_no_thread(self):
        """OpenBLAS starts one per processor as soon as it is loaded, and raises SIGINT if it gets none."""
        if b"libopenblas.so" in pathlib.Path(PROGRAM).read_bytes():
            self.skipTest("a shared OpenBLAS starts its threads before the program begins")
        user = self.unprivileged_user()
        for command in self.commands()[:3]:
            code, text = self.run_limited(resource.RLIMIT_NPROC, 1, command, user)
            self.assertEqual((code, text.strip()), (0, ""), command)

    def can_run_as(self, user):
        try:
            done = subprocess.run([self.program, "--version"], cwd=self.folder, env=CLEAN, user=user, group=user,
                                  extra_groups=[], capture_output=True, timeout=60)
        except (OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0

    def test_generous_limits_are_enough(self):
        """The sweep would also pass with a program that always complains."""
        for what, value in ((resource.RLIMIT_AS, 4096 * MIB), (resource.RLIMIT_NOFILE, 64), (resource.RLIMIT_STACK, 64 << 10)):
            for command in self.commands():
                if what == resource.RLIMIT_AS and command == ["doctor"] and has_nvidia_driver():
                    continue  # CUDA's driver needs more, and doctor says so
                code, text = self.run_limited(what, value, command)
                self.assertEqual(code, 0, f"{command} under {what} = {value}\n{text}")


if __name__ == "__main__":
    unittest.main(argv=[argument for argument in sys.argv if argument != "--full"])
