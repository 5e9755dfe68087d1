#!/usr/bin/env python3
"""What diagnose says of right results: random clean cases of every op (ops/) run on the simulated device, and it is given the
tensors that they leave. None may be called wrong, and none undecided if its run passed.

clean_diagnoses.py PROGRAM [--cases N] [--seed N] [--ops OP ...] [--gemm-cases PROGRAM] [--jobs N] [--most-undecided SHARE]
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

import families
from diagnosis_table import belongs, run_in
from drawing import DrawnBy

BATCH = 50
DEVICE = "sim:sm_90"


def drawn(op, clean, options):
    """Clean cases of the op; those of gemm are drawn by a program."""
    if not isinstance(clean, DrawnBy):
        return list(clean.cases(op, "sim", options.cases, options.seed, False, False))
    if not options.gemm_cases:
        return []
    command = [options.gemm_cases, "sim", str(options.cases), str(options.seed)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def verdicts(program, cases):
    """(status of the run, verdict of the diagnosis, identifier, what fails) of each case that left tensors."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "plan.json").write_text(json.dumps({"version": 1, "cases": cases}))
        done = run_in(folder, program, "run", "plan.json", "--device", DEVICE, "--no-save", "--keep-tensors", "kept", "--json",
                      "report.json")
        if not (folder / "report.json").exists():
            raise RuntimeError(done.stderr)
        report = json.loads((folder / "report.json").read_text())["cases"]
        files = sorted((folder / "kept").iterdir()) if (folder / "kept").exists() else []
        found = []
        for file in files:
            case = next(case for case in report if belongs(file, case))
            done = run_in(folder, program, "diagnose", "--tensors", file, "--device", DEVICE, "--json", "-")
            if done.returncode not in (0, 1, 4):
                found.append((case["status"], "refused", case["id"], done.stderr.strip()[-300:]))
                continue
            said = json.loads(done.stdout)
            found.append((case["status"], said["verdict"], f"{case['id']} seed {case['seed']}", said["failing"]))
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--cases", type=int, default=100, help="of each op")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ops", nargs="+", help="all, with gemm only where --gemm-cases is given")
    parser.add_argument("--gemm-cases", help="the program gemm_cases")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--most-undecided", type=float, default=0.0, help="of the cases whose run passes")
    options = parser.parse_args()
    total, bad = collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for op, clean in families.clean_cases().items():
            if options.ops and op not in options.ops:
                continue
            cases = drawn(op, clean, options)
            batches = [cases[first : first + BATCH] for first in range(0, len(cases), BATCH)]
            counts = collections.Counter()
            for found in pool.map(lambda batch: verdicts(options.program.resolve(), batch), batches):
                for status, verdict, identifier, failing in found:
                    counts[verdict if verdict in ("wrong", "refused") else f"{verdict} ({status})"] += 1
                    if verdict in ("wrong", "refused") or (verdict != "correct" and status == "pass"):
                        bad.append(f"{verdict}: {identifier}: {failing}")
            print(f"{op:20}{', '.join(f'{number} {kind}' for kind, number in sorted(counts.items()))}", flush=True)
            total += counts
    print(f"{'all':20}{', '.join(f'{number} {kind}' for kind, number in sorted(total.items()))}")
    print("\n".join(bad[:40]))
    passed = total["correct (pass)"] + total["undecided (pass)"]
    fails = total["wrong"] or total["refused"] or not passed or total["undecided (pass)"] > options.most_undecided * passed
    sys.exit(1 if fails else 0)


if __name__ == "__main__":
    main()
