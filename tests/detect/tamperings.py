#!/usr/bin/env python3
"""Random tamperings with right results, all of which must be caught: values (all, noise, a row, a tile, an element) at
twice the smallest fault that CONTRIBUTING's table has for the case, signs, NaN, infinities, zeros, poison, a constant, bits,
neighbours, exchanged rows and stale tiles. Every tampering has inputs of its own seed.

    tamperings.py --program build/app/te-numcheck --table CONTRIBUTING.md --count 500 --seed 1

Prints a line per case of the table, and every tampering that was not caught. Exit code 1 if there is one, or if a case fails
without being tampered with. A single number that is less far off than twice the table's smallest fault of an element, as a
neighbour's value may be, or the largest FP8 number for what is beyond it, is counted by itself: no test is asked to see it."""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import sensitivity

WHOLE = ["signs_flipped", "element_negated", "nan_written", "all_nan", "inf_written", "element_zero", "all_zero", "all_seven",
         "neighbour_copied", "unwritten_tile", "bit_flip", "swapped_rows", "stale_tile"]
BATCH = 100  # tamperings of a run
FORMATS = {"F32": (23, 8), "BF16": (7, 8), "F16": (10, 5), "F8_E4M3": (3, 4), "F8_E5M2": (2, 5)}  # bits of fraction and exponent
# No second row or tile.
WITHOUT = {"router_topk": ["swapped_rows"], "dropout_fwd": ["swapped_rows", "stale_tile"], "bias_grad": ["swapped_rows"]}


def thresholds(table):
    """By case, the smallest faults by part, as CONTRIBUTING lists them."""
    rows = re.findall(r"^\| (`[^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", table, re.MULTILINE)
    return {name: dict(zip(sensitivity.PARTS, map(float, sizes))) for name, *sizes in rows if "–" not in sizes}


def unit_of(case):
    """Unit roundoff of the first output."""
    mode, output = case["mode"], case["params"].get("output", "default")
    if case["op"] == "quantize" or output.startswith("fp8"):
        return 2.0**-4
    if output == "fp32" or (output == "default" and mode in ("fp32", "tf32", "fp32_fast16bf")):
        return 2.0**-24
    return 2.0**-11 if mode.startswith("fp16") else 2.0**-8


def seen_through_rounding(case, part):
    """A relative change d of N numbers moves them by 0.72 d / 2u ulps on average, and only those next to a tie are stored as
    another number: of this d, 16, so that none is once in e^16 cases. A single number moves by an ulp or more."""
    sizes = case["params"]
    columns = next((sizes[name] for name in ("hidden", "cols", "n", "sk", "d", "dim", "experts") if name in sizes), 256)
    rows = 1 if case["op"] == "bias_grad" else 128
    elements = {"row": columns, "tile": min(columns, 64) * min(rows, 64), "element": 1}.get(part, columns * rows)
    unit = unit_of(case)
    if elements == 1:
        return 3 * unit
    # BF16 numbers lie on sixteenths of an FP8 ulp: what moves them by less than half a sixteenth only breaks ties.
    least = 2.0**-8 if case["op"] == "quantize" and case["mode"] == "bf16" else 0
    return max(least, 16 * 2 * unit / 0.72 / elements)


def faults_of(case, smallest, factor):
    values = [f"perturb_{part}={factor * max(size, seen_through_rounding(case, part) / 2):.6g}"
              for part, size in smallest.items()]
    return values + [fault for fault in WHOLE if fault not in WITHOUT.get(case["op"], [])]


def tamperings(names, cases, table, arguments):
    """By fault, the cases in which it is planted, with seeds of their own: `--count` for each case."""
    rng = random.Random(arguments.seed)
    planned = {}
    for name, case in zip(names, cases):
        faults = faults_of(case, table[name], arguments.factor)
        first = rng.randrange(len(faults))
        for i in range(first, first + arguments.count):
            planned.setdefault(faults[i % len(faults)], []).append((name, {**case, "seed": rng.randint(0, 2**32)}))
    return planned


def is_unchanged(record):
    return bool(record["runs"]) and all(run.get("fault_changed_nothing", False) for run in record["runs"])


def number_of(bits, dtype):
    """Of a stored number; its format is named as in safetensors."""
    fraction_bits, exponent_bits = FORMATS[dtype]
    bias = (1 << (exponent_bits - 1)) - 1
    exponent, fraction = bits >> fraction_bits & ((1 << exponent_bits) - 1), bits & ((1 << fraction_bits) - 1)
    is_special = bits & 127 == 127 if dtype == "F8_E4M3" else exponent == (1 << exponent_bits) - 1
    if is_special:
        return float("nan")
    magnitude = (fraction + (1 << fraction_bits if exponent else 0)) * 2.0 ** (max(exponent, 1) - bias - fraction_bits)
    return -magnitude if bits >> (fraction_bits + exponent_bits) else magnitude


def stored_numbers(program, case, device, fault):
    """What inputs and outputs have in memory, with their formats. Inputs are there twice alike."""
    with tempfile.TemporaryDirectory(prefix="te-numcheck-tamperings-") as folder:
        plan = pathlib.Path(folder, "plan.json")
        plan.write_text(json.dumps({"version": 1, "name": "one", "cases": [case]}))
        command = [program, "run", plan, "--keep-tensors", f"{folder}/kept", "--keep-only", "all", "--no-save", "--progress",
                   "never", "--repeat", "1", "--device", device, *(["--inject", fault] if fault else [])]
        subprocess.run(command, capture_output=True, check=False)
        (kept,) = pathlib.Path(folder, "kept").glob("*.safetensors")
        data = kept.read_bytes()
    size = int.from_bytes(data[:8], "little")
    numbers = []
    for name, tensor in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__" and not name.startswith("expected_") and tensor["dtype"] in FORMATS:
            first, last = tensor["data_offsets"]
            bytes_each = (1 + sum(FORMATS[tensor["dtype"]])) // 8
            stored = data[8 + size + first : 8 + size + last]
            numbers += [(int.from_bytes(stored[at : at + bytes_each], "little"), tensor["dtype"])
                        for at in range(0, len(stored), bytes_each)]
    return numbers


def is_smaller_than_asked(program, case, device, fault, smallest):
    """True if a single number differs, and by less than twice the smallest fault of an element."""
    both = zip(*(stored_numbers(program, case, device, planted) for planted in ("", fault)))
    pairs = [(right, wrong) for right, wrong in both if right != wrong]
    if len(pairs) != 1:
        return False
    right, wrong = (number_of(*stored) for stored in pairs[0])
    return abs(wrong - right) < 2 * smallest * abs(right)


def passed(program, device, planned, jobs):
    """Of every tampering that was not caught, the case's name, the case, the fault, what it was, and whether every bit is as
    without it: numbers that an FP8 output cannot hold become its largest one, however large they are."""
    def missed(fault, tampered):
        records = sensitivity.records(program, [case for _, case in tampered], device, fault)
        return [(name, case, fault, f"{name} with {fault}, seed {case['seed']}: {record['status']}: {record['reason']}",
                 is_unchanged(record))
                for (name, case), record in zip(tampered, records) if record["status"] != "fail"]

    batches = [(fault, tampered[first : first + BATCH]) for fault, tampered in planned.items()
               for first in range(0, len(tampered), BATCH)]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for found in pool.map(lambda batch: missed(*batch), batches):
            yield from found


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--table", type=pathlib.Path, required=True, help="CONTRIBUTING.md")
    parser.add_argument("--device", default="sim:sm_90")
    parser.add_argument("--count", type=int, default=500, help="tamperings of each case")
    parser.add_argument("--factor", type=float, default=2, help="of the table's smallest faults")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    return parser.parse_args()


def main():
    arguments = parse()
    table = thresholds(arguments.table.read_text())
    chosen = [*sensitivity.products([1024]), *sensitivity.others()]
    names, cases = zip(*[(name, case) for name, case in chosen if arguments.only in name])
    if unlisted := set(names) - set(table):
        sys.exit(f"{arguments.table} lists no smallest faults of {', '.join(sorted(unlisted))}")
    clean = sensitivity.run(arguments.program, cases, arguments.device, "")
    wrong = [(name, f"{name} without a fault: {status}: {reason}") for name, (status, reason) in zip(names, clean)
             if status != "pass"]
    unchanged, small = collections.Counter(), collections.Counter()
    planned = tamperings(names, cases, table, arguments)
    for name, case, fault, words, has_same_bits in passed(arguments.program, arguments.device, planned, arguments.jobs):
        if has_same_bits:
            unchanged[name] += 1
        elif is_smaller_than_asked(arguments.program, case, arguments.device, fault, table[name]["element"]):
            small[name] += 1
        else:
            wrong.append((name, words))
    for name in names:
        missed = sum(other == name for other, _ in wrong)
        print(f"{name:44}{arguments.count:6} tampered, {unchanged[name]} of them without changing a bit, {small[name]} by less "
              f"than twice the smallest fault, {missed} missed")
    print("\n".join(words for _, words in wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
