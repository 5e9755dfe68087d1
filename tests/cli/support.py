"""Runs te-numcheck for the command line tests and compares its output with golden files.

Environment: TE_NUMCHECK (the program), TE_NUMCHECK_SOURCE (the source tree). TE_NUMCHECK_UPDATE_GOLDEN=1 rewrites the
golden files instead of comparing."""

import ctypes
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["TE_NUMCHECK"]
SOURCE = pathlib.Path(os.environ["TE_NUMCHECK_SOURCE"])
GOLDEN = pathlib.Path(__file__).parent / "golden"

# Settings of the developer's shell must not change what is tested.
CLEAN = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("TE_NUMCHECK", "NVIDIA_", "CUBLAS", "CUDNN", "NVTE_", "OPENBLAS_", "GTEST_", "SLURM_", "GITHUB_"))
    and name not in ("NO_COLOR", "CLICOLOR_FORCE", "JOB_COMPLETION_INDEX", "CI_NODE_INDEX", "CI_NODE_TOTAL")
}
CLEAN["LC_ALL"] = "C.UTF-8"  # views draw an ellipsis and middle dots
TIMEOUT_S = 120


def has_nvidia_driver():
    """Whether the program would find traces of a driver, working or not. If so, --device auto does not simulate."""
    traces = ("/dev/nvidiactl", "/dev/nvidia0", "/proc/driver/nvidia/version", "/usr/lib/wsl/lib/libcuda.so.1")
    if any(map(os.path.exists, traces)):
        return True
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def sanitise(text):
    """Replaces what differs between runs and machines."""
    text = re.sub(r"te-numcheck \d+\.\d+\.\d+ \([^)\n]*\)", "te-numcheck VERSION (REVISION)", text)
    # Left in the environment because a BLAS may need them on this machine, but they do not belong in golden files.
    text = re.sub(r"^environment( +OPENBLAS_\w+=\S+)+\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\d{8}-\d{6}(-\d+)?", "TIME", text)
    text = re.sub(r"\b\d+(\.\d+)? (us|ms|s|min)\b( \d+ s\b)?", "DURATION", text)
    return text


class CliTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self._folder = tempfile.TemporaryDirectory(prefix="te-numcheck-cli-")
        self.folder = pathlib.Path(self._folder.name)
        self.addCleanup(self._folder.cleanup)

    def run_cli(self, *arguments, code=None, env=None, stdin=None, timeout=TIMEOUT_S):
        """Runs in a folder of its own; checks the exit code if one is given."""
        done = subprocess.run(
            [PROGRAM, *map(str, arguments)],
            cwd=self.folder,
            env={**CLEAN, **(env or {})},
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
        )
        done.stdout = done.stdout.decode("utf-8")
        done.stderr = done.stderr.decode("utf-8", "replace")
        if code is not None:
            self.assertEqual(done.returncode, code, f"{arguments}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}")
        return done

    def plan(self, name="plan.json", **fields):
        """Writes a plan of small gemm cases; fields override the default ones."""
        case = {"op": "gemm", "mode": "fp32", "backend": "sim", "params": {"m": 16, "n": 16, "k": 32}}
        case.update(fields.pop("case", {}))
        document = {"version": 1, "name": name.removesuffix(".json"), "seed": 5, "cases": [case], **fields}
        path = self.folder / name
        path.write_text(json.dumps(document))
        return name

    def report(self, path="out/report.json"):
        return json.loads((self.folder / path).read_text())

    @staticmethod
    def counted(report):
        """The report with a summary of the cases that it has after a change."""
        statuses = [case["status"] for case in report["cases"]]
        counts = {status: statuses.count(status) for status in report["summary"]}
        return {**report, "summary": {**counts, "cases": len(statuses)}}

    @staticmethod
    def without_times(report):
        """The report without what differs between two runs of the same plan."""
        for case in report["cases"]:
            del case["time_s"]
            for run in case["runs"]:
                del run["device_s"]
        for key in ("time_s", "started"):
            del report[key]
        del report["tool"]["argv"]
        return report

    def expect_golden(self, name, text):
        path = GOLDEN / name
        if os.environ.get("TE_NUMCHECK_UPDATE_GOLDEN") == "1":
            path.write_text(sanitise(text))
            return
        self.assertTrue(path.exists(), f"{path} is missing; TE_NUMCHECK_UPDATE_GOLDEN=1 writes it")
        self.assertEqual(path.read_text(), sanitise(text))
