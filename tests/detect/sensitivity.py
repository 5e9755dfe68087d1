#!/usr/bin/env python3
"""How small a fault the checks see: for every case, the smallest relative fault that makes it fail, found by bisection with
the faults perturb_* of a simulated device. Prints two Markdown tables: of the first output, and of mu, rsigma and amax.

    sensitivity.py --program build/app/te-numcheck
    sensitivity.py --program build/app/te-numcheck --quick --parts all row

A fault counts as caught if the case fails with it, and with every larger one that bisection meets. What is listed is caught
with the inputs of every one of several seeds. "–": not even a fault of 100 % is caught (the values may be zero). Exit code 1
if a case does not pass without a fault."""

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

PARTS = ["all", "noise", "row", "tile", "element"]
STEPS_PER_DECADE = 8
SMALLEST, LARGEST = -9, 0  # powers of ten
SIZES = [10 ** (SMALLEST + i / STEPS_PER_DECADE) for i in range((LARGEST - SMALLEST) * STEPS_PER_DECADE + 1)]
UNTOUCHED = ("pass", "inconclusive", "warn")


def case(op, mode, inputs=None, **params):
    return {"op": op, "mode": mode, "backend": "sim", "params": params, "inputs": inputs or {"distribution": "normal"},
            "algorithms": "heuristic"}


def gemm(mode, k, **params):
    return case("gemm", mode, m=128, n=128, k=k, trans_b=True, **params)


def products(lengths):
    for k in lengths:
        for mode in ("fp32", "tf32", "fp32_fast16bf", "bf16", "fp16", "fp16_acc16"):
            yield f"`gemm` {mode}, k = {k}", gemm(mode, k)
        yield f"`gemm` bf16 → FP32, k = {k}", gemm("bf16", k, output="fp32")
        for accumulate in ("split", "fast"):
            for output in ("bf16", "fp32", "fp8_e4m3"):
                yield (f"`gemm` fp8_e4m3 {accumulate} → {output.split('_')[0].upper()}, k = {k}",
                       gemm("fp8_e4m3", k, accumulate=accumulate, output=output))


ROWS = {"rows": 128, "hidden": 256}
SCORES = {"batches": 1, "heads": 2, "sq": 128, "sk": 256}
OTHERS = [
    *((op, ROWS) for op in ("layernorm_fwd", "layernorm_bwd", "rmsnorm_fwd", "rmsnorm_bwd", "bias_grad")),
    *((op, {**ROWS, "kind": "gelu"}) for op in ("activation_fwd", "activation_bwd")),
    *((op, SCORES) for op in ("softmax_fwd", "softmax_bwd")),
    *((op, {**SCORES, "d": 64}) for op in ("attention_fwd", "attention_bwd")),
    *((op, {"seq": 128, "heads": 4, "dim": 64}) for op in ("rope_fwd", "rope_bwd")),
    ("moe_unpermute", {"tokens": 128, "hidden": 256, "topk": 2}),
    ("router_topk", {"tokens": 512, "experts": 8, "topk": 2}),
    ("quantize", {"rows": 128, "cols": 256}),
    ("dropout_fwd", {"elements": 32768}),
]


def others():
    for op, params in OTHERS:
        for mode in ("fp32", "bf16"):
            yield f"`{op}` {mode}", case(op, mode, **params)
    yield "`attention_fwd` fp8_e4m3", case("attention_fwd", "fp8_e4m3", **SCORES, d=64)
    yield "`attention_bwd` fp8_hybrid", case("attention_bwd", "fp8_hybrid", **SCORES, d=64)
    yield "`rmsnorm_fwd` fp32, hf", case("rmsnorm_fwd", "fp32", rows=128, hidden=4096, gamma_order="hf")


def named():
    """Outputs besides the first one: the fault's part, the case's name, and the case."""
    for op in ("layernorm_fwd", "rmsnorm_fwd"):
        for mode in ("fp32", "bf16"):
            for part in ("mu", "rsigma") if op == "layernorm_fwd" else ("rsigma",):
                yield part, f"`{op}` {mode}", case(op, mode, **ROWS)
    for op in ("layernorm_fwd", "rmsnorm_fwd", "activation_fwd"):
        kind = {"kind": "gelu"} if op == "activation_fwd" else {}
        yield "amax", f"`{op}` bf16 → FP8", case(op, "bf16", **ROWS, **kind, output="fp8_e4m3")
    for name, product in products([1024, 4096]):
        if product["params"].get("output") == "fp8_e4m3":
            yield "amax", name, product


def records(program, cases, device, fault):
    """What the report has of the cases with the fault."""
    with tempfile.TemporaryDirectory(prefix="te-numcheck-sensitivity-") as folder:
        plan, report = pathlib.Path(folder, "plan.json"), pathlib.Path(folder, "report.json")
        plan.write_text(json.dumps({"version": 1, "name": "sensitivity", "cases": cases}))
        command = [program, "run", str(plan), "--json", str(report), "--no-save", "--progress", "never", "--repeat", "1",
                   "--device", device, *(["--inject", fault] if fault else [])]
        done = subprocess.run(command, capture_output=True, text=True)
        if not report.exists():
            sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        results = json.loads(report.read_text())["cases"]
    if len(results) != len(cases):
        sys.exit(f"{len(cases)} cases gave {len(results)} results")
    return results


def run(program, cases, device, fault):
    """Status and reason of the cases with the fault."""
    return [(result["status"], result["reason"]) for result in records(program, cases, device, fault)]


def smallest_caught(program, cases, device, part):
    """By case, the index in SIZES of the smallest fault that is caught; len(SIZES) if none is."""
    low, high = [0] * len(cases), [len(SIZES)] * len(cases)
    while True:
        groups = collections.defaultdict(list)
        for i in range(len(cases)):
            if low[i] < high[i]:
                groups[(low[i] + high[i]) // 2].append(i)
        if not groups:
            return low
        for at, members in sorted(groups.items()):
            fault = f"perturb_{part}={SIZES[at]:.6g}"
            for i, (status, reason) in zip(members, run(program, [cases[i] for i in members], device, fault)):
                if status == "fail":
                    high[i] = at
                elif status in UNTOUCHED:
                    low[i] = at + 1
                else:
                    sys.exit(f"{cases[i]} with {fault}: {status}: {reason}")


def largest_of_seeds(program, cases, device, part, seeds):
    """The same for the worst of the seeds 1, 2, ... for each case."""
    found = smallest_caught(program, [{**case, "seed": seed} for seed in range(1, seeds + 1) for case in cases], device, part)
    return [max(found[i :: len(cases)]) for i in range(len(cases))]


def written(index):
    return "–" if index == len(SIZES) else f"{SIZES[index]:.1e}".replace("e-0", "e-")


def table(names, parts, columns):
    yield "| case | " + " | ".join(parts) + " |"
    yield "|---|" + "--:|" * len(parts)
    for i, name in enumerate(names):
        yield f"| {name} | " + " | ".join(written(column[i]) for column in columns) + " |"


def named_table(program, device, seeds, only):
    chosen = [(part, name, one) for part, name, one in named() if only in name]
    yield "| output | case | smallest |"
    yield "|---|---|--:|"
    for wanted in dict.fromkeys(part for part, _, _ in chosen):
        names, cases = zip(*[(name, one) for part, name, one in chosen if part == wanted])
        found = largest_of_seeds(program, cases, device, wanted, seeds)
        yield from (f"| {wanted} | {name} | {written(index)} |" for name, index in zip(names, found))


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--device", default="sim:sm_90")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--seeds", type=int, default=3, help="how many inputs of each case")
    parser.add_argument("--quick", action="store_true", help="a few short cases: whether this works, not a table to keep")
    return parser.parse_args()


def main():
    arguments = parse()
    chosen = [*products([256])][:2] if arguments.quick else [*products([1024, 4096]), *others()]
    chosen = [(name, one) for name, one in chosen if arguments.only in name]
    if not chosen:
        sys.exit(f"no case has a name with \"{arguments.only}\"")
    names, cases = zip(*chosen)
    for seed in range(1, arguments.seeds + 1):
        seeded = [{**case, "seed": seed} for case in cases]
        for name, (status, reason) in zip(names, run(arguments.program, seeded, arguments.device, "")):
            if status != "pass":
                sys.exit(f"{name}, seed {seed}, without a fault: {status}: {reason}")
    columns = [largest_of_seeds(arguments.program, cases, arguments.device, part, arguments.seeds)
               for part in arguments.parts]
    print("\n".join(table(names, arguments.parts, columns)))
    if arguments.parts == PARTS and not arguments.quick:
        print()
        print("\n".join(named_table(arguments.program, arguments.device, arguments.seeds, arguments.only)))


if __name__ == "__main__":
    main()
