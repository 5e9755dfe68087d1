#!/usr/bin/env python3
"""False alarms: random clean cases of every op, none of which may fail any gate. Those of gemm are drawn by the program
gemm_cases, which is built with the tests.

    sweep_ops.py --program build/app/te-numcheck --cases 10000 --backend sim --device sim:sm_90
    sweep_ops.py --program build/app/te-numcheck --cases 10000 --backend cuda transformer_engine -- --te-lib PATH
    sweep_ops.py --program build/app/te-numcheck --cases 500 --borders --backend cuda

Prints a line per op and backend, and every case that is neither passed, inconclusive (one element, a masked row: nothing
that could be wrong) nor unsupported by the backend. A library's product may also end as a warning: something was
rounded to the output's format too early, as the library declares or its bits show. Exit code 1 if there is such a case, or an op that passed nothing."""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from op_cases import PARAMS, draw_cases  # noqa: E402

HARMLESS = ("pass", "inconclusive", "unsupported")
LIBRARIES = ("cublaslt", "transformer_engine")
BATCH = 5000


def run_batch(program, cases, options):
    """Results of the cases as the report has them."""
    with tempfile.TemporaryDirectory(prefix="te-numcheck-sweep-") as folder:
        plan, report = pathlib.Path(folder, "plan.json"), pathlib.Path(folder, "report.json")
        plan.write_text(json.dumps({"version": 1, "name": "sweep", "cases": cases}))
        command = [program, "run", str(plan), "--json", str(report), "--no-save", "--progress", "never", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if not report.exists():
            sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return json.loads(report.read_text())["cases"]


def cases_of(op, backend, arguments):
    if op != "gemm":
        return draw_cases(op, backend, arguments.cases, arguments.seed, arguments.borders)
    command = [arguments.gemm_cases, backend, str(arguments.cases), str(arguments.seed)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def sweep(program, op, backend, arguments, options):
    """Counts by status, reasons of what is unsupported, and the cases that must not be."""
    statuses, reasons, wrong = collections.Counter(), collections.Counter(), []
    cases = cases_of(op, backend, arguments)
    harmless = (*HARMLESS, "warn") if op == "gemm" and backend in LIBRARIES else HARMLESS
    for first in range(0, len(cases), BATCH):
        for result in run_batch(program, cases[first : first + BATCH], options):
            statuses[result["status"]] += 1
            if result["status"] == "unsupported":
                reasons[result.get("reason", "")] += 1
            elif result["status"] not in harmless:
                wrong.append(result)
    return statuses, reasons, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--cases", type=int, default=1000, help="per op and backend")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ops", nargs="+", help="all, with gemm only where --gemm-cases is given and --borders is not")
    parser.add_argument("--gemm-cases", help="the program gemm_cases")
    parser.add_argument("--backend", nargs="+", default=["sim"])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--borders", action="store_true", help="shapes at 2^k - 1, 2^k and 2^k + 1")
    parser.add_argument("--wrong", type=pathlib.Path, help="append the report's entries of wrong cases, a line each")
    parser.add_argument("options", nargs="*", help="further options of te-numcheck run, after --")
    arguments = parser.parse_args()
    options = ["--device", arguments.device, *arguments.options]
    every = [*PARAMS, "gemm"] if arguments.gemm_cases and not arguments.borders else list(PARAMS)
    for op in arguments.ops or []:
        if op != "gemm" and op not in PARAMS:
            parser.error(f"unknown op {op}; there are {' '.join([*PARAMS, 'gemm'])}")
        if op == "gemm" and not arguments.gemm_cases:
            parser.error("gemm needs --gemm-cases, the program that draws its cases")
        if op == "gemm" and arguments.borders:
            parser.error("gemm has no --borders")
    bad = False
    for op in arguments.ops or every:
        for backend in arguments.backend:
            statuses, reasons, wrong = sweep(arguments.program, op, backend, arguments, options)
            counts = ", ".join(f"{number} {status}" for status, number in sorted(statuses.items()))
            print(f"{op:16}{backend:20}{counts}", flush=True)
            for reason, number in reasons.most_common(3):
                print(f"    {number} unsupported: {reason}")
            for case in wrong[:20]:
                print(f"    {case['status']} {case['id']} seed {case['seed']}: {case.get('reason', '')}")
            if wrong and arguments.wrong:
                with arguments.wrong.open("a") as file:
                    file.writelines(json.dumps(case) + "\n" for case in wrong)
            bad = bad or bool(wrong) or (statuses["pass"] == 0 and statuses["unsupported"] < arguments.cases)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
