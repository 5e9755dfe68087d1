#!/usr/bin/env python3
"""False alarms: random clean cases of every op (ops/), none of which may fail any gate. Those of gemm are drawn by the
program gemm_cases, which is built with the tests.

    sweep_ops.py --program build/app/te-numcheck --cases 10000 --backend sim --device sim:sm_90
    sweep_ops.py --program build/app/te-numcheck --cases 10000 --backend cuda transformer_engine -- --te-lib PATH
    sweep_ops.py --program build/app/te-numcheck --cases 500 --borders --backend cuda
    sweep_ops.py --program build/app/te-numcheck --cases 2000 --unusual --device sim:sm_90
    sweep_ops.py --program build/app/te-numcheck --backend cudnn -- --known configs/known_issues.json
    sweep_ops.py --program build/app/te-numcheck --backend cuda cudnn --jobs 32 --gpus 4
    sweep_ops.py --program build/app/te-numcheck --backend cudnn --data 4

Prints a line per op and backend, and every case that is neither passed, inconclusive (one element, a masked row: nothing
that could be wrong) nor unsupported by the backend, nor a known issue of a library that was excused. A library's product may also end as a warning: something was
rounded to the output's format too early, as the library declares or its bits show. Exit code 1 if there is such a case,
or an op that passed nothing."""

import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

import families
from drawing import DrawnBy
from headroom import Headroom

HARMLESS = ("pass", "inconclusive", "unsupported", "xfail")
# Of cases with at most 100 keys and values each: a plan may have 250 000.
BATCH = 2500
SHARED_BATCH = 200  # where several run at a time


def run_batch(program, cases, options, gpu):
    """The report's records of the cases, which run on the GPU of this number, or on whichever the program takes."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": str(gpu)} if gpu is not None else None
    with tempfile.TemporaryDirectory(prefix="te-numcheck-sweep-") as folder:
        plan, report = pathlib.Path(folder, "plan.json"), pathlib.Path(folder, "report.json")
        plan.write_text(json.dumps({"version": 1, "name": "sweep", "cases": cases}))
        command = [program, "run", str(plan), "--json", str(report), "--no-save", "--progress", "never", *options]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if not report.exists():
            raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return json.loads(report.read_text())["cases"]


def drawing_program(clean, arguments):
    """The path given for the drawing program, such as --gemm-cases for gemm_cases."""
    return vars(arguments)[clean.program]


def cases_of(clean, op, backend, arguments):
    if not isinstance(clean, DrawnBy):
        return clean.cases(op, backend, arguments.cases, arguments.seed, arguments.borders, arguments.unusual, arguments.data)
    if arguments.unusual:
        return clean.unusual_cases(op, backend, arguments.cases, arguments.seed)
    command = [drawing_program(clean, arguments), backend, str(arguments.cases), str(arguments.seed)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def obstacle(clean, op, arguments):
    """Why the op's cases cannot be drawn; empty if they can."""
    if not isinstance(clean, DrawnBy) or arguments.unusual:
        return ""
    if arguments.borders or arguments.data > 1:
        return f"{op} has no {'--borders' if arguments.borders else '--data'}"
    option = f"--{clean.program.replace('_', '-')}"
    return "" if drawing_program(clean, arguments) else f"{op} needs {option}, the program that draws its cases"


class Sweep:
    """Cases of one op on one backend: counts by status, the reasons of unsupported cases, and the cases that must not occur."""

    def __init__(self, clean, op, backend):
        self.op, self.backend = op, backend
        self.statuses, self.reasons, self.wrong, self.excused = collections.Counter(), collections.Counter(), [], []
        self.harmless = (*HARMLESS, "warn") if backend in clean.may_warn else HARMLESS

    def add(self, result):
        self.statuses[result["status"]] += 1
        if result["status"] == "unsupported":
            self.reasons[result.get("reason", "")] += 1
        elif result["status"] not in self.harmless:
            self.wrong.append(result)
        elif result["status"] == "xfail":
            self.excused.append(result)

    def proves_something(self):
        return self.statuses["pass"] > 0 or self.statuses["unsupported"] == self.statuses.total()

    def show(self):
        counts = ", ".join(f"{number} {status}" for status, number in sorted(self.statuses.items()))
        print(f"{self.op:20}{self.backend:20}{counts}", flush=True)
        for reason, number in self.reasons.most_common(3):
            print(f"    {number} unsupported: {reason}")
        for case in self.wrong[:20]:
            print(f"    {case['status']} {case['id']} seed {case['seed']}: {case.get('reason', '')}", flush=True)


def batches(clean, op, backend, arguments):
    size = BATCH if arguments.jobs == 1 else SHARED_BATCH
    cases = cases_of(clean, op, backend, arguments)
    return [cases[first : first + size] for first in range(0, len(cases), size)]


def run_and_add(program, batch, options, gpu, sweep, headroom, lock):
    records = run_batch(program, batch, options, gpu)
    with lock:
        for record in records:
            sweep.add(record)
            headroom.add(record)


def swept(ops, arguments, headroom):
    """Every op on every backend, in this order. Batches of all of them share the jobs."""
    options = ["--device", arguments.device, *arguments.options]
    gpus = itertools.cycle(range(arguments.gpus) if arguments.gpus else [None])
    lock = threading.Lock()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        running = []
        for op, clean in ops.items():
            for backend in arguments.backend:
                one = Sweep(clean, op, backend)
                running.append((one, [pool.submit(run_and_add, arguments.program, batch, options, next(gpus), one, headroom, lock)
                                      for batch in batches(clean, op, backend, arguments)]))
        try:
            for one, parts in running:
                for part in parts:
                    part.result()
                yield one
        except RuntimeError as error:
            pool.shutdown(cancel_futures=True)
            sys.exit(str(error))


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
    parser.add_argument("--ops", nargs="+", help="all, with gemm only where --gemm-cases is given, --borders and --data are not")
    parser.add_argument("--families", nargs="+", help="all ops of these files in ops/")
    parser.add_argument("--gemm-cases", help="the program gemm_cases")
    parser.add_argument("--backend", nargs="+", default=["sim"])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--borders", action="store_true", help="shapes at 2^k - 1, 2^k and 2^k + 1")
    parser.add_argument("--unusual", action="store_true", help="sizes, scales and inputs that hardly any plan has")
    parser.add_argument("--data", type=int, default=1, help="inputs of each shape: cuDNN's plans are compiled once for all")
    parser.add_argument("--headroom", action="store_true", help="end with a table of how far clean cases stay from limits")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--gpus", type=int, default=0, help="runs take turns on this many GPUs")
    parser.add_argument("--wrong", type=pathlib.Path, help="append the report's entries of wrong cases, a line each")
    parser.add_argument("--excused", type=pathlib.Path, help="the same of excused cases")
    parser.add_argument("options", nargs="*", help="further options of te-numcheck run, after --")
    arguments = parser.parse_args()
    if arguments.data < 1 or arguments.data > 1 and arguments.unusual:
        parser.error("--data is 1 or more, and 1 with --unusual")
    return arguments, chosen_ops(parser, arguments)


def main():
    arguments, ops = parse()
    bad, headroom = False, Headroom()
    for one in swept(ops, arguments, headroom):
        one.show()
        for cases, path in ((one.wrong, arguments.wrong), (one.excused, arguments.excused)):
            if cases and path:
                with path.open("a") as file:
                    file.writelines(json.dumps(case) + "\n" for case in cases)
        bad = bad or bool(one.wrong) or not one.proves_something()
    if arguments.headroom:
        print("\n".join(headroom.table()))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
