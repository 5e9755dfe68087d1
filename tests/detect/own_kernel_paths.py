#!/usr/bin/env python3
"""Prints the plan that takes every path through the own kernels, with few rows: warps and blocks, whole and ragged rows,
registers and several passes. The cases are the PATHS of the files in ops/.

    tests/detect/own_kernel_paths.py > paths.json
    compute-sanitizer te-numcheck run paths.json --in-process"""

import json
import sys

import families


def plan():
    cases = [case for name in families.names() for case in families.load(name).PATHS]
    return {"version": 1, "name": "own_kernel_paths", "seed": 20250101,
            "defaults": {"backend": "cuda", "mode": ["fp32", "bf16"]}, "cases": cases}


if __name__ == "__main__":
    json.dump(plan(), sys.stdout, indent=1)
    print()
