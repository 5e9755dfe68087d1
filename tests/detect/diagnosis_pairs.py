#!/usr/bin/env python3
"""What diagnose says of two causes at once: a fault is planted in a run, and diagnose is given another parameter than the
run had.

    both named   the first cause names the fault and the parameter
    one named    it names one of them
    neither      it names something else, or nothing
    no matter    one of them alone leaves the same outputs, or what both leave passes

diagnose looks for pairs for 5 s, which says little if much else runs: --cpu gives it so many seconds of processor time instead.

diagnosis_pairs.py PROGRAM [--pairs N] [--seed N] [--cpu SECONDS] [--jobs N] [--list FILE] [--least-both SHARE] [--least-one SHARE]
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import random
import re
import signal
import sys
import tempfile

from diagnosis_table import ALSO, has_number, run_in

GEMM = {"m": 96, "n": 80, "k": 256, "bias": True}
NORM = {"rows": 64, "hidden": 256}
SOFTMAX = {"batches": 2, "heads": 2, "sq": 64, "sk": 96, "scale": 0.3}
ATTENTION = {"batches": 2, "heads": 4, "kv_heads": 2, "sq": 64, "sk": 96, "d": 32}
PRODUCT_FAULTS = ["bf16_inputs", "tf32_silently", "missing_k_tail", "duplicated_k_block", "scale_half", "swapped_rows",
                  "signs_flipped", "bf16_output_in_fp32", "stale_k_tail"]
NORM_FAULTS = ["bessel", "bf16_statistics", "last_element_missing", "previous_row_statistics", "output_scale_1_01",
               "signs_flipped", "swapped_rows", "bf16_output_in_fp32"]
# Op, mode, parameters of the run, what diagnose is told instead with the names under which it must find that, and faults.
TABLE = [
    ("gemm", "fp32", GEMM, [({"alpha": 2}, "(alpha|output_scaled)=0.5|.*alpha=1.*"), ({"epilogue": "relu"}, "epilogue=none"),
                            ({"epilogue": "gelu"}, "epilogue=none")], PRODUCT_FAULTS),
    ("gemm", "fp32", {**GEMM, "bias": False, "epilogue": "relu"}, [({"epilogue": "none"}, "epilogue=relu")], PRODUCT_FAULTS),
    ("gemm", "bf16", {**GEMM, "beta": 1}, [({"beta": 0.5}, "beta=1"), ({"alpha": 0.5}, "(alpha|output_scaled)=.*")],
     ["missing_k_tail", "duplicated_k_block", "swapped_rows", "truncated_output", "double_rounded_output"]),
    ("layernorm_fwd", "fp32", {**NORM, "epsilon": 1e-2}, [({"epsilon": 1e-5}, "epsilon=0.01"),
                                                          ({"zero_centered_gamma": True}, "zero_centered_gamma=false")],
     [*NORM_FAULTS, "beta_missing"]),
    ("rmsnorm_fwd", "fp32", {**NORM, "epsilon": 1e-2}, [({"epsilon": 1e-5}, "epsilon=0.01"),
                                                        ({"zero_centered_gamma": True}, "zero_centered_gamma=false")],
     NORM_FAULTS),
    ("rmsnorm_fwd", "bf16", {**NORM, "epsilon": 1}, [({"epsilon": 1e-5}, "epsilon=1")],
     ["truncated_output", "double_rounded_output", "last_element_missing", "previous_row_statistics", "swapped_rows"]),
    ("softmax_fwd", "fp32", SOFTMAX, [({"scale": 0.5}, "scale=0.3"), ({"mask": "causal"}, "mask=none")],
     ["swapped_rows", "signs_flipped", "bf16_output_in_fp32", "bf16_row_sum", "last_column_missing"]),
    ("attention_fwd", "fp32", ATTENTION, [({"scale": 1}, "scale=.*"), ({"mask": "causal"}, "mask=none"), ({"softcap": 5}, "softcap=0|softcap_missing")],
     ["swapped_rows", "signs_flipped", "bf16_output_in_fp32", "head_map_rotated", "key_tile_dropped", "values_transposed"]),
]


def drawn(generator, count):
    """(op, mode, params, told, wanted, fault, seed)"""
    every = [(op, mode, params, told, wanted, fault) for op, mode, params, mistakes, faults in TABLE
             for told, wanted in mistakes for fault in faults]
    chosen = [generator.choice(every) for _ in range(count)]
    return [(*pair, generator.randrange(1 << 30)) for pair in chosen]


def said(program, folder, file, told, seconds):
    """The diagnosis; nothing if it takes longer than so many seconds of processor time."""
    arguments = [part for name, value in told.items() for part in ("--param", f"{name}={json.dumps(value).strip(chr(34))}")]
    limit = ["--effort", "thorough"] if seconds else []
    with_limit = ["prlimit", f"--cpu={seconds}"] if seconds else []
    done = run_in(folder, *with_limit, program, "diagnose", "--tensors", file, *arguments, *limit, "--json", "-")
    if seconds and done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"verdict": "wrong", "causes": []}
    if done.returncode not in (0, 1, 4):
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def outcome(program, pair, seconds):
    op, mode, params, told, wanted, fault, seed = pair
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        case = {"op": op, "mode": mode, "backend": "sim", "params": params, "seed": seed}
        (folder / "plan.json").write_text(json.dumps({"version": 1, "cases": [case]}))
        done = run_in(folder, program, "run", "plan.json", "--device", "sim:sm_90", "--no-save", "--inject", fault, "--keep-tensors",
                      "kept", "--json", "report.json")
        files = sorted((folder / "kept").iterdir()) if (folder / "kept").exists() else []
        if done.returncode != 1 or not files:
            return "no matter", [done.stderr[-200:]]
        found = said(program, folder, files[0], told, seconds)
        names = [cause["name"] for cause in found["causes"]]
        if found["verdict"] != "wrong":
            return "no matter", [found["verdict"]]
    parts = names[0].split(" + ") if names else []
    has_fault = any(part == fault or re.fullmatch(ALSO.get(fault, "$^"), part) or has_number(fault, params, part) for part in parts)
    has_told = any(re.fullmatch(wanted, part) for part in parts)
    return ("both named" if has_fault and has_told else "one named" if has_fault or has_told else "neither"), names


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cpu", type=int, default=0, help="seconds of processor time for a diagnosis [5 s on the clock for pairs]")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--list", type=argparse.FileType("w"), default=sys.stderr, help="what is not named, a line each")
    parser.add_argument("--least-both", type=float, default=0, help="exit code 1 if both are named of a smaller share")
    parser.add_argument("--least-one", type=float, default=0, help="exit code 1 if one of them is")
    options = parser.parse_args()
    pairs = drawn(random.Random(options.seed), options.pairs)
    counts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for pair, (result, names) in zip(pairs, pool.map(lambda pair: outcome(options.program.resolve(), pair, options.cpu), pairs)):
            counts[result] += 1
            if result != "both named":
                op, mode, _, told, _, fault, seed = pair
                print(f"{result}: {op} {mode} {fault} with {told}, seed {seed}: {names}", file=options.list, flush=True)
    judged = sum(counts.values()) - counts["no matter"]
    print(", ".join(f"{counts[kind]} {kind}" for kind in ("both named", "one named", "neither", "no matter")))
    one = counts["both named"] + counts["one named"]
    sys.exit(1 if not judged or counts["both named"] < options.least_both * judged or one < options.least_one * judged else 0)


if __name__ == "__main__":
    main()
