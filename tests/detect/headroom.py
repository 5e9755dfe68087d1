"""How far clean cases stay from the limits: limit / measured of every gate, by the output's format; statistics and amax, which
are FP32 numbers of which there are few, by their names."""

import collections
import math
import statistics

FORMATS = {"fp32": "FP32", "bf16": "16 bits", "fp16": "16 bits", "fp8_e4m3": "8 bits", "fp8_e5m2": "8 bits"}


class Headroom:
    def __init__(self):
        self.found = collections.defaultdict(list)

    def add(self, result):
        """Takes the record of a case; only what passed is clean."""
        if result["status"] != "pass":
            return
        for run in result["runs"]:
            for name, output in run["outputs"].items():
                for gate in output["criteria"]:
                    self.add_gate(named(name) or FORMATS.get(output["dtype"]), gate)

    def add_gate(self, output, gate):
        limit, measured = float(gate["limit"]), float(gate["measured"])
        if 0 < limit < math.inf and output:
            self.found[gate["name"], output].append(limit / measured if measured > 0 else math.inf)

    def table(self):
        """Gates in the order of their names; 0 measured counts as no end of headroom."""
        yield "| gate | output | outputs | smallest | median |"
        yield "|---|---|--:|--:|--:|"
        for (name, output), values in sorted(self.found.items()):
            yield f"| {name} | {output} | {len(values)} | {written(min(values))} | {written(statistics.median(values))} |"


def named(output):
    return "amax" if output.endswith("amax") else output if output in ("mu", "rsigma") else None


def written(headroom):
    return "∞" if math.isinf(headroom) else f"{headroom:.2f}" if headroom < 10 else f"{headroom:.3g}"
