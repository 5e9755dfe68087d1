#!/usr/bin/env python3
"""False alarms: random clean cases of every op (ops/), none of which may fail any gate. Those of gemm are drawn by the
program gemm_cases, which is built with the tests.

    sweep_ops.py --program build/app/te-numcheck --cases 10000 --backend sim --device sim:sm_90
    sweep_ops.py --program build/app/te-numcheck --cases 10000 --backend cuda transformer_engine -- --te-lib PATH
    sweep_ops.py --program build/app/te-numcheck --cases 500 --borders --backend cuda
    sweep_ops.py --program build/app/te-numcheck --cases 2000 --unusual --device sim:sm_90
    sweep_ops.py --program build/app/te-numcheck --backend cudnn -- --known configs/known_issues.json

Prints a line per op and backend, and every case that is neither passed, inconclusive (one element, a masked row: nothing
that could be wrong) nor unsupported by the backend, nor a known issue of a library that was excused. A library's product may also end as a warning: something was
rounded to the output's format too early, as the library declares or its bits show. Exit code 1 if there is such a case,
or an op that passed nothing."""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

import families
from drawing import DrawnBy
from headroom import Headroom

HARMLESS = ("pass", "inconclusive", "unsupported", "xfail")
# Of cases with at most 100 keys and values each: a plan may have 250 000.
BATCH = 2500


def run_batch(program, cases, options):
    """The report's records of the cases."""
    with tempfile.TemporaryDirectory(prefix="te-numcheck-sweep-") as folder:
        plan, report = pathlib.Path(folder, "plan.json"), pathlib.Path(folder, "report.json")
        plan.write_text(json.dumps({"version": 1, "name": "sweep", "cases": cases}))
        command = [program, "run", str(plan), "--json", str(report), "--no-save", "--progress", "never", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if not report.exists():
            sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return json.loads(report.read_text())["cases"]


def drawing_program(clean, arguments):
    """The path given for the drawing program, such as --gemm-cases for gemm_cases."""
    return vars(arguments)[clean.program]


def cases_of(clean, op, backend, arguments):
    if not isinstance(clean, DrawnBy):
        return clean.cases(op, backend, arguments.cases, arguments.seed, arguments.borders, arguments.unusual)
    if arguments.unusual:
        return clean.unusual_cases(op, backend, arguments.cases, arguments.seed)
    command = [drawing_program(clean, arguments), backend, str(arguments.cases), str(arguments.seed)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def obstacle(clean, op, arguments):
    """Why the op's cases cannot be drawn; empty if they can."""
    if not isinstance(clean, DrawnBy) or arguments.unusual:
        return ""
    if arguments.borders:
        return f"{op} has no --borders"
    option = f"--{clean.program.replace('_', '-')}"
    return "" if drawing_program(clean, arguments) else f"{op} needs {option}, the program that draws its cases"


def sweep(clean, op, backend, arguments, options, headroom):
    """Counts by status, the reasons of unsupported cases, and the cases that must not occur."""
    statuses, reasons, wrong = collections.Counter(), collections.Counter(), []
    cases = cases_of(clean, op, backend, arguments)
    harmless = (*HARMLESS, "warn") if backend in clean.may_warn else HARMLESS
    for first in range(0, len(cases), BATCH):
        for result in run_batch(arguments.program, cases[first : first + BATCH], options):
            statuses[result["status"]] += 1
            headroom.add(result)
            if result["status"] == "unsupported":
                reasons[result.get("reason", "")] += 1
            elif result["status"] not in harmless:
                wrong.append(result)
    return statuses, reasons, wrong


def chosen_ops(parser, arguments):
    """By op, how the cases of the chosen ops are drawn."""
    known = families.names()
    for name in set(arguments.families or []) - set(known):
        parser.error(f"unknown family {name}; there are {' '.join(known)}")
    clean = families.clean_cases(arguments.families or known)
    for op in arguments.ops or []:
        if op not in clean:
            parser.error(f"unknown op {op}; there are {' '.join(clean)}")
        if reason := obstacle(clean[op], op, arguments):
            parser.error(reason)
    ops = arguments.ops or [op for op in clean if not obstacle(clean[op], op, arguments)]
    if not ops:
        parser.error("no op is left to sweep")
    return {op: clean[op] for op in ops}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--cases", type=int, default=1000, help="per op and backend")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ops", nargs="+", help="all, with gemm only where --gemm-cases is given and --borders is not")
    parser.add_argument("--families", nargs="+", help="all ops of these files in ops/")
    parser.add_argument("--gemm-cases", help="the program gemm_cases")
    parser.add_argument("--backend", nargs="+", default=["sim"])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--borders", action="store_true", help="shapes at 2^k - 1, 2^k and 2^k + 1")
    parser.add_argument("--unusual", action="store_true", help="sizes, scales and inputs that hardly any plan has")
    parser.add_argument("--headroom", action="store_true", help="end with a table of how far clean cases stay from limits")
    parser.add_argument("--wrong", type=pathlib.Path, help="append the report's entries of wrong cases, a line each")
    parser.add_argument("options", nargs="*", help="further options of te-numcheck run, after --")
    arguments = parser.parse_args()
    return arguments, chosen_ops(parser, arguments)


def main():
    arguments, ops = parse()
    options = ["--device", arguments.device, *arguments.options]
    bad, headroom = False, Headroom()
    for op, clean in ops.items():
        for backend in arguments.backend:
            statuses, reasons, wrong = sweep(clean, op, backend, arguments, options, headroom)
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
    if arguments.headroom:
        print("\n".join(headroom.table()))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
