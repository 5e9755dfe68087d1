"""Whether there is a GPU that te-numcheck can use."""

import json
import os
import pathlib
import subprocess
import sys

PROGRAM = os.environ["TE_NUMCHECK"]
PLANS = pathlib.Path(os.environ["TE_NUMCHECK_SOURCE"], "configs/plans")


def has_device_node():
    """Whether the system has an NVIDIA GPU. If so, a program that cannot use it is a failure and not a skipped test."""
    return any(map(os.path.exists, ("/dev/nvidia0", "/dev/dxg"))) or any(pathlib.Path("/dev").glob("nvidia[0-9]*"))


def obstacle():
    """Why the program cannot use cuda:0, in its own words; empty if it lists cuda:0."""
    listed = subprocess.run([PROGRAM, "list", "devices", "--json"], capture_output=True, text=True, check=True)
    if any(device["name"] == "cuda:0" for device in json.loads(listed.stdout)):
        return ""
    command = [PROGRAM, "run", PLANS / "quick.json", "--device", "cuda:0", "--no-save", "--color", "never"]
    answer = subprocess.run(command, capture_output=True, text=True).stderr
    return answer.strip().removeprefix("error: ") or "cuda:0 is not listed"


def skip_without_gpu():
    """Ends the script with the words by which CTest knows a skipped test, or as a failure."""
    reason = obstacle()
    if reason and has_device_node():
        sys.exit(f"this system has a GPU, but te-numcheck cannot use it: {reason}")
    if reason:
        print(f"no usable GPU: {reason}")
        sys.exit(0)
