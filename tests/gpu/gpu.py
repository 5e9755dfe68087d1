"""Whether there is a GPU that te-numcheck can use."""

import json
import os
import pathlib
import subprocess
import sys

PROGRAM = os.environ["TE_NUMCHECK"]
PLANS = pathlib.Path(os.environ["TE_NUMCHECK_SOURCE"], "configs/plans")


def obstacle():
    """Why the program cannot use cuda:0, in its own words; empty if it lists cuda:0."""
    listed = subprocess.run([PROGRAM, "list", "devices", "--json"], capture_output=True, text=True, check=True)
    if any(device["name"] == "cuda:0" for device in json.loads(listed.stdout)):
        return ""
    asked = [PROGRAM, "run", PLANS / "quick.json", "--device", "cuda:0", "--no-save", "--color", "never"]
    answer = subprocess.run(asked, capture_output=True, text=True).stderr
    return answer.strip().removeprefix("error: ") or "cuda:0 is not listed"


def skip_without_gpu():
    """Without a GPU, ends the script with the words by which CTest recognises a skipped test."""
    if reason := obstacle():
        print(f"no usable GPU: {reason}")
        sys.exit(0)
