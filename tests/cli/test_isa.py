"""A verdict does not depend on the instruction set of our own loops: whatever TE_NUMCHECK_ISA names, quick and some cases beside it
have the same criteria on the simulated device."""

import collections
import json
import math
import unittest

from support import CliTest

SETS = ("baseline", "avx2", "avx512")
RELATIVE = 1e-12
SIM = ("--device", "sim:sm_90")

# Rows that are no multiple of any number of lanes, terms that are no multiple of any block, rows that a kernel does not take beside
# those that it does, and gradients that only cancellation makes 0.
ROWS = {"rows": 67, "hidden": 523}
ATTENTION = {"batches": 2, "heads": 4, "kv_heads": 2, "sq": 131, "sk": 197, "d": 40}
CASES = [{"op": op, "mode": mode, "params": params, **more}
         for mode in ("fp32", "bf16")
         for op, params, more in (
             ("layernorm_fwd", ROWS, {}), ("rmsnorm_fwd", ROWS, {}),
             ("softmax_fwd", {"batches": 3, "sq": 37, "sk": 517}, {}),
             ("softmax_fwd", {"heads": 2, "sq": 30, "sk": 111}, {"inputs": {"distribution": "specials"}}),
             ("softmax_bwd", {"sq": 67, "sk": 519}, {}),
             ("activation_fwd", {**ROWS, "kind": "gelu"}, {}), ("activation_bwd", {**ROWS, "kind": "swiglu"}, {}),
             ("gemm", {"m": 65, "n": 33, "k": 193}, {}),
             ("attention_fwd", ATTENTION, {}), ("attention_bwd", ATTENTION, {}),
             ("attention_bwd", {**ATTENTION, "mask": "causal", "dropout": 0.1}, {"inputs": {"distribution": "ties"}}),
             ("attention_bwd", {**ATTENTION, "sq": 17, "sk": 1}, {}))]


def numbers_of(case):
    """What decides, by place: the status, and of every criterion its name, outcome, measured value and limit."""
    yield "status", case["status"]
    yield "reason", case.get("reason")
    for number, run in enumerate(case["runs"]):
        for port, output in run["outputs"].items():
            for place, criterion in enumerate(output["criteria"]):
                for member in ("name", "ok", "measured", "limit"):
                    yield (number, port, place, member), criterion.get(member)


def alike(number, other, limit):
    if not isinstance(number, float) or not isinstance(other, float):
        return number == other
    # A measured value far below its limit may be what is left of a sum: the limit is its size.
    size = limit if isinstance(limit, (int, float)) and math.isfinite(limit) else 0
    return math.isclose(number, other, rel_tol=RELATIVE, abs_tol=RELATIVE * abs(size))


class InstructionSets(CliTest):
    def report(self, plan, isa, *options):
        """None if the processor lacks the set."""
        self.run_cli("run", plan, *SIM, "--no-save", "--json", "report.json", *options, env={"TE_NUMCHECK_ISA": isa})
        report = json.loads((self.folder / "report.json").read_text())
        return report if report["machine"]["host"]["isa"] == isa else None

    def compare(self, plan, *options):
        reports = {isa: report for isa in SETS if (report := self.report(plan, isa, *options)) is not None}
        if len(reports) < 2:
            self.skipTest(f"this processor has {' '.join(reports)} only")
        first = {case["digest"]: dict(numbers_of(case)) for case in reports.pop("baseline")["cases"]}
        compared = collections.Counter()
        for isa, report in reports.items():
            self.assertEqual([case["digest"] for case in report["cases"]], list(first))
            for case in report["cases"]:
                numbers, expected = dict(numbers_of(case)), first[case["digest"]]
                self.assertEqual(numbers.keys(), expected.keys(), f"{case['id']} with {isa}")
                for key, number in numbers.items():
                    limit = expected[(*key[:3], "limit")] if isinstance(key, tuple) else None
                    self.assertTrue(alike(number, expected[key], limit),
                                    f"{case['id']}, {key}: {number} with {isa}, {expected[key]} with the baseline")
                    compared[isa] += isinstance(number, float)
        self.assertGreater(min(compared.values()), 10 * len(first))

    def test_quick(self):
        self.compare("quick")

    def test_what_does_not_fill_vectors(self):
        self.compare(self.plan(cases=[{"backend": "sim", "seed": 5, **case} for case in CASES]))

    def test_inputs_outputs_and_references_have_the_same_bits(self):
        plan = self.plan(cases=[{"backend": "sim", "seed": 5, **case} for case in CASES])
        kept = {}
        for isa in SETS:
            if self.report(plan, isa, "--keep-tensors", isa, "--keep-bytes", "1000000000") is not None:
                files = sorted((self.folder / isa).glob("*.safetensors"))
                self.assertEqual(len(files), len(CASES))
                kept[isa] = {file.name: file.read_bytes() for file in files}
        for isa, files in kept.items():
            for name, content in files.items():
                self.assertTrue(content == kept["baseline"][name], f"{name} with {isa}")

    def test_wrong_results(self):
        for fault in ("perturb_all=1e-3", "nan_written"):
            with self.subTest(fault=fault):
                self.compare(self.plan(cases=[{"backend": "sim", "seed": 5, **case} for case in CASES[:9]]), "--inject", fault)


if __name__ == "__main__":
    unittest.main()
