#!/usr/bin/env python3
"""What diagnose says of every planted fault of the tables in ops/:

    right         the first cause is the fault, or a name under which it is known
    in its class  another cause explains the tensors as well, and the fault is named beside it
    not explained diagnose says so
    wrong         it names something else
    not planted   the fault changes nothing in such a case, or nothing that the gates see

of each case, with each seed (those of the tables, or others) and in each of up to two shapes: that of the table, and a smaller
one. With --every, faults that can be planted in an op, but not in a case of its table, are planted in a plain case of it.

diagnosis_table.py PROGRAM [--families F ...] [--faults F ...] [--seeds N ...] [--shapes N ...] [--every] [--jobs N] [--list FILE]
    [--within SECONDS] [--least SHARE] [--most-wrong SHARE]
"""

import argparse
import collections
import concurrent.futures
import json
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

import families
from faults import accounted

# Other names under which diagnose knows a fault: what it finds first, or cannot tell from it.
# Where an FP8 output is not written, it holds the NaN that the format has.
ALSO = {
    "bit_flip": "some_elements_wrong", "swapped_rows": "rows_moved|some_elements_wrong", "all_nan": "elements_all_NaN",
    "all_seven": r"elements_all_[-+.\de]+", "rounded_scores": "scores_stored_in_.*",
    "all_zero": "elements_all_0|alpha=0|last_row_stale", "unwritten_tile": "not_written|elements_all_NaN",
    "nan_written": "some_elements_wrong|elements_all_NaN", "stale_tile": r"some_elements_wrong|\w+_(partly|stored)_reversed",
    "signs_flipped": "(output_scaled|alpha|scale)=-.*|._negated|elements_all_-1", "inf_written": "some_elements_wrong|elements_all_inf",
    "element_zero": "some_elements_wrong|elements_all_0", "element_negated": "some_elements_wrong",
    "neighbour_copied": "some_elements_wrong", "last_row_stale": "some_elements_wrong|elements_all_0",
    "race": "runs_differ|some_elements_wrong", "write_past_end": "written_outside", "workspace_overrun": "written_outside",
    "negative_zero": "some_elements_wrong|elements_all_-0",
    "missing_k_tail": "terms_left_out", "missing_k_tail_8": "terms_left_out", "missing_k_stage": "terms_left_out",
    "doubled_split_head": "terms_added_twice", "duplicated_k_block": "terms_added_twice", "stale_k_tail": "terms_replaced",
    "unreduced_split_k": "terms_left_out", "transposed_a": "a_transposed", "scale_half": "(alpha|.*_scaled)=0.5",
    "scale_1_01": "(alpha|.*_scaled)=1.01", "bias_missing": "bias=false|bias_as_zeros", "beta_ignored": "beta=0",
    "tf32_silently": "(operands|inputs|products)_in_tf32", "tf32_truncated_inputs": "operands_truncated_to_tf32",
    "bf16_inputs": "(operands|inputs)_in_bf16", "bf16_output_in_fp32": "(output|x)_in_bf16",
    "tf32_output_in_fp32": "output_in_(tf32|fp16)", "double_rounded_output": "output_through_fp16|x_in_(fp16|tf32)",
    "truncated_output": "output_truncated", "output_scale_1_01": ".*_scaled=1.01",
    "bf16_statistics": "statistics_in_bf16",
    "draws_used_twice": "draws_reused", "key_pairs_alike": "draws_reused",
    "last_element_missing": "last_element_left_out", "previous_row_statistics": "statistics_of_row_before|rsigma_of_row_before",
    "beta_missing": "beta_as_zeros", "gamma_order_swapped": "gamma_order=(hf|te)", "softmax_scale_missing": "x_negated",
    "wrong_pairs": "interleaved=(true|false)", "bf16_angles": "freqs_in_bf16",
    "tf32_angles": "freqs_in_tf32", "top_left_mask": "mask=.*", "softcap_missing": "softcap=0",
    "product_rounded": "product_rounded_before_.*", "sum_rounded": "sum_rounded_before_.*",
    "softmax_scale_fp32": "scale_rounding=ideal", "softmax_scale_rounded": r"scale=0\.1(298828125|300\d+)",
    "tanh_for_erf": "kind=gelu", "erf_for_tanh": "kind=gelu_erf", "sum_of_dy": "fused=none", "factor_2_missing": "output_scaled=0.5",
    "clamp_missing": "limit=.*", "share_half": "dropout=.*", "window_too_wide": "window_(left|right)=.*",
    "lse_in_log2": "output_scaled=1.44.*", "max_logit_before_bias": "bias=none", "empty_sequence_unwritten": "not_written",
    "padding_in_amax": "amax_too_large", "keys_beyond_in_amax": "amax_too_large",
    "queries_beyond_in_amax": "amax_too_large", "sum_of_rounded": "rounded_first",
    "probs_ignored": "probs(_as_ones|=false)", "mean_of_experts": "mean_for_sum", "one_expert_less": "topk=.*",
    "softmax_elsewhere": "score=.*", "scaling_ignored": "scaling=1", "bf16_scores": "output_in_bf16", "share_half": "p=0.125",
    "dropout_scale_missing": "output_scaled=.*", "nothing_dropped": "p=0",
    "last_row_repeated": "(rows|columns)_moved",
    "map_shifted": "rows_moved", "token_major_map": "rows_moved", "dropped_overwrite": "rows_moved",
    "scale_missing": "p=0|output_scaled=.*", "scale_by_p": "output_scaled=3|p=0.75", "scale_after_cast": "x_in_fp8_e4m3",
    "wrong_amax": "stale_amax|signed_maximum", "scaled_amax": "amax_too_large", "subnormal_codes_flushed": "subnormals_flushed",
    "scale_inv_is_scale": "scale_unchanged", "codes_not_transposed": "x_transposed|.*_stored_transposed",
    "scale_inverted": "output_scaled=.*|q_scale_inv_inverted", "next_position": "freqs_of_(next_row|row_before)",
    "opposite_sign": "rotated_back|freqs_negated", "tf32x3_in_core": "three_(bf16|tf32)_products",
    "transposed_output": ".*_stored_transposed", "denormals_flushed": "subnormals_flushed",
    "fp16_detour_fp8_output": "output_through_fp16", "fp16_detour": "x_in_(fp16|tf32)", "scale_double": ".*_scaled=2",
    "block_scale_floor": "rounding=floor", "block_scale_up": "rounding=up", "epsilon_ignored": "epsilon=0",
    "last_row_missed": "x_of_row_before",  # the maximum is the same
    "power_of_two_ignored": "power_of_two=off|power_of_two=false", "rowwise_scales_columnwise": "columnwise_of_rowwise_scales",
    "scales_transposed": ".*_(stored_)?transposed|scale_layout=(compact|gemm_ready)",
    "lines_for_squares": "block_shape=1x16", "halves_swapped": "columns_moved", "global_amax_ignored": "output_scaled=.*",
    "product_rounded_twice": "output_(in|through)_bf16", "padding_written": "written_outside",
    # One scale of many, which a neighbour may have; and what powers of two leave as it is.
    "block_scale_off": "some_elements_wrong|rows_moved",
    "fp16_accumulation": "accumulated_in_fp16", "gamma_not_centred": "zero_centered_gamma=false", "add_missing": "add(_as_zeros|=false)",
    "lone_deviation": "nan_dropped",
    "delta_missing": "row_sums_missing", "sink_missing": "softmax=vanilla", "dq_not_zeroed": "output_scaled=2",
    "key_tile_dropped": "last_keys_left_out=.*", "projection_missing": "x_as_zeros", "bias_after_scale": "bias=(post|pre)_scale",
    "most_recent_for_max": "algorithm=most_recent", "other_format": "format=fp8_e[45]m[23]",
    "idle_mistaken": "kernel=(single|after_reduction)", "reduction_ignored": "amaxes_and_reduced_exchanged|reduced_as_zeros",
}

# What they do shows beside the outputs: the case must run again.
BESIDE = ("race", "write_past_end", "workspace_overrun", "input_overwritten", "padding_written")

# The program says itself what these do, outputs are not wrong, or they are of a size that must be given.
NOT_OUTPUTS = {"late_refusal", "nan_payload", "illegal_address"}


def is_nameable(fault):
    return fault not in NOT_OUTPUTS and not fault.startswith("perturb_")


# Numbers that diagnose must find, within a hundredth: the parameter, and what the fault makes of it.
NUMBERS = {
    "epsilon_x10": ("epsilon", lambda params: 10 * params.get("epsilon", 1e-5)),
    "softmax_scale_missing": ("scale", lambda params: 1),
    "softmax_scale_1_01": ("scale", lambda params: 1.01 * params.get("scale", 1)),
    "scale_by_d": ("scale", lambda params: 1 / params["d"]),
}


def has_number(fault, params, name):
    parameter, number = NUMBERS.get(fault, ("", None))
    found, equals, value = name.partition("=")
    return bool(equals) and found == parameter and abs(float(value.split()[0]) / number(params) - 1) < 0.01


def is_named(row, cause):
    if cause["name"] == row.fault or row.named and row.named in (cause["name"], cause["cause"]):
        return True
    return (re.fullmatch(ALSO.get(row.fault, "$^"), cause["name"]) is not None
            or has_number(row.fault, row.case.get("params", {}), cause["name"]))


def outcome(row, found):
    right = [is_named(row, cause) for cause in found["causes"]]
    if not right:
        return "not explained"
    return "right" if right[0] else "in its class" if any(right) else "wrong"


def run_in(folder, *arguments):
    processor = own_processor()
    return subprocess.run([str(a) for a in arguments], cwd=folder, capture_output=True, text=True, timeout=600,
                          preexec_fn=lambda: os.sched_setaffinity(0, {processor}))


PROCESSORS = sorted(os.sched_getaffinity(0))
PLACES = {}  # of jobs, by thread


def own_processor():
    """Each job has a processor of its own: a program starts a thread for every one that it may use."""
    return PROCESSORS[PLACES.setdefault(threading.get_ident(), len(PLACES)) % len(PROCESSORS)]


SIZES = ("m", "n", "k", "rows", "cols", "hidden", "sq", "sk", "d", "dv", "seq", "dim", "tokens")


def smaller(size):
    """Three quarters of it, with the same alignment up to 32."""
    alignment = min(size & -size, 32)
    return size if size < 32 else max(size * 3 // 4 // alignment, 1) * alignment


def reshaped(case, shape):
    if shape == 0:
        return case
    params = case.get("params", {})
    return {**case, "params": {name: smaller(value) if name in SIZES else value for name, value in params.items()}}


def unplanted(program, rows):
    """Rows for the faults of each op that none of the rows plants, in the first case without special inputs."""
    done = run_in(".", program, "list", "faults", "--json")
    plain = {}
    for row in rows:
        if "seed" not in row.case and row.case.get("inputs", {}).get("distribution", "normal") == "normal":
            plain.setdefault(row.case["op"], row)
    planted = {(row.case["op"], row.fault) for row in rows}
    return [families.Row(fault["name"], row.case, [], device=row.device) for fault in json.loads(done.stdout)
            for op, row in plain.items()
            if op in fault["ops"] and is_nameable(fault["name"]) and (op, fault["name"]) not in planted]


def diagnose_group(program, device, fault, rows, seed):
    """(row, result, names, closest) of each case that the fault is planted in."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cases = {json.dumps(row.case, sort_keys=True): row for row in rows}
        if seed is not None:
            cases = {key: row for key, row in cases.items() if "seed" not in row.case}
        if not cases:
            return []
        planned = [{**accounted(row.case), **({} if seed is None else {"seed": seed})} for row in cases.values()]
        (folder / "plan.json").write_text(json.dumps({"version": 1, "cases": planned}))
        done = run_in(folder, program, "run", "plan.json", "--device", device, "--no-save", "--inject", fault, "--keep-tensors", "kept",
                      "--json", "report.json")
        if done.returncode not in (0, 1, 4) or not (folder / "report.json").exists():
            return [(row, "not run", [done.stderr[-300:]], []) for row in cases.values()]
        report = json.loads((folder / "report.json").read_text())["cases"]
        results = []
        for row, case in zip(cases.values(), report):
            files = [file for file in sorted((folder / "kept").iterdir()) if belongs(file, case)]
            if case["status"] != "fail" or not files:
                results.append((row, "not planted", [case["status"], case.get("reason", "")], []))
                continue
            tensors = ["--case", case["id"], "report.json"] if fault in BESIDE else ["--tensors", files[0]]
            done = run_in(folder, program, "diagnose", *tensors, "--device", device, "--json", "-")
            if done.returncode not in (0, 1, 4):
                results.append((row, "refused", [done.stderr.strip()[-300:]], []))
                continue
            found = json.loads(done.stdout)
            closest = [(one["name"], round(one["share"], 4), one["failing"]) for one in found["excluded"][:3]]
            names = [cause["name"] for cause in found["causes"]]
            if found["verdict"] not in ("wrong", "misbehaved"):
                results.append((row, found["verdict"], names, closest))
            else:
                results.append((row, outcome(row, found), names, [found["failing"], *closest]))
        return results


def belongs(file, case):
    """Whether the file holds the tensors of a run of the case."""
    with open(file, "rb") as stream:
        header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
    return header.get("__metadata__", {}).get("case") == case["id"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--families", nargs="*", default=[])
    parser.add_argument("--faults", nargs="*", default=[])
    parser.add_argument("--seeds", nargs="*", type=int, default=[None])
    parser.add_argument("--shapes", nargs="*", type=int, choices=(0, 1), default=[0])
    parser.add_argument("--every", action="store_true", help="faults that no table plants in an op, too")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--list", type=argparse.FileType("w"), default=sys.stderr, help="what is not right, a line each")
    parser.add_argument("--within", type=float, default=math.inf, help="stop after so many seconds: of all, in random order, the "
                        "table has what is done by then")
    parser.add_argument("--least", type=float, default=0, help="exit code 1 if a smaller share is named, or a fault is called correct")
    parser.add_argument("--most-wrong", type=float, default=1, help="exit code 1 if a larger share is called something else")
    options = parser.parse_args()
    groups = collections.defaultdict(list)
    for family in options.families or families.names():
        rows = families.rows(family)
        for row in [*rows, *(unplanted(options.program.resolve(), rows) if options.every else [])]:
            for shape in options.shapes:
                if not options.faults or row.fault in options.faults:
                    groups[family, row.device, row.fault, shape].append(row._replace(case=reshaped(row.case, shape)))
    counts = collections.defaultdict(collections.Counter)
    jobs = [(group, seed) for group in groups for seed in options.seeds]
    if options.within < math.inf:
        random.Random(1).shuffle(jobs)
    end, left = time.monotonic() + options.within, 0

    def until_the_end(*job):
        return diagnose_group(*job) if time.monotonic() < end else None

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = {pool.submit(until_the_end, options.program.resolve(), group[1], group[2], groups[group], seed):
                (group[0], group[2], seed) for group, seed in jobs}
        for done in concurrent.futures.as_completed(work):
            family, fault, seed = work[done]
            results = done.result()
            left += results is None
            for row, result, names, closest in results or []:
                counts[row.case["op"]][result] += 1
                if result not in ("right", "not planted"):
                    print(f"{result}: {row.case['op']} {row.case['mode']} {fault} seed {seed}: {names}; {closest}; "
                          f"{json.dumps(row.case.get('params'))}", file=options.list, flush=True)
    kinds = ["right", "in its class", "not explained", "wrong", "correct", "undecided", "refused", "not run", "not planted"]
    print(f"| op | {' | '.join(kinds)} |")
    for op in sorted(counts):
        print(f"| {op} | {' | '.join(str(counts[op][kind]) for kind in kinds)} |")
    total = sum(counts.values(), collections.Counter())
    print(f"| all | {' | '.join(str(total[kind]) for kind in kinds)} |")
    if left:
        print(f"there was no time for {left} of {len(jobs)} groups of cases")
    judged = sum(total.values()) - total["not planted"]
    named = total["right"] + total["in its class"]
    fails = (not judged or total["correct"] or total["not run"] or named < options.least * judged
             or total["wrong"] > options.most_wrong * judged)
    sys.exit(1 if fails else 0)


if __name__ == "__main__":
    main()
