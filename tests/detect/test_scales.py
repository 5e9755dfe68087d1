"""The smallest fault that is caught does not depend on the scale of the inputs: variances are kept as roots, so that nothing
underflows or overflows before the format of the output does. Inputs are drawn at sigma and at sigma times a power of two, by
which all results of a formula that is homogeneous in them are multiplied exactly, and so are their errors."""

import pathlib
import sys
import unittest

import sensitivity

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "cli"))
from support import PROGRAM  # noqa: E402

DEVICE = "sim:sm_90"
PARTS = ("all", "noise")
SCALES = (-49, 49)  # powers of two: about 2e-15 and 6e14
SMALL_AND_LARGE = (-15, 15)
NARROW = (-3, 3)  # where inputs are FP16
PARAMETER = "params."
FACTORS = (-15, 15)  # where parameters have limits
WIDER = 1  # steps of SIZES by which thresholds may differ: a factor 1.33

PRODUCT = {"m": 128, "n": 128, "k": 256, "trans_b": True}
ROWS = {"rows": 128, "hidden": 256}
EXACT_ROWS = {**ROWS, "epsilon": 0}  # which would have to be scaled
SCORES = {"batches": 1, "heads": 2, "sq": 128, "sk": 256}
SCALED_SCORES = {**SCORES, "scale": 0.5}
HEADS = {**SCORES, "d": 64}
SCALED_HEADS = {**HEADS, "scale": 0.125}

# Name, op, modes, parameters, by which power of the scale each input is multiplied ("params.": each parameter), scales. Where
# the parameter undoes the scale of the input, as that of scores does, results stay as they are. Not here: gelu of inputs far
# from 1 is x / 2, or x or 0, which the format holds, so that a fault below half an ulp changes nothing; weights of a router
# follow from differences of logits, so that only its factor scales them; the weights that softmax_bwd reads follow from its
# factor; a mask of attention has no numbers.
FORMATS = ("fp32", "bf16")
EIGHT_BITS = ("fp8_e4m3", "fp8_hybrid")
CASES = [
    ("products", "gemm", ("fp32", "tf32", "bf16", "fp8_e4m3"), PRODUCT, {"a": 1, "b": 1}, SCALES),
    ("FP32 products", "gemm", ("bf16", "fp8_e4m3"), {**PRODUCT, "output": "fp32"}, {"a": 1, "b": 1}, SCALES),
    ("FP16 products", "gemm", ("fp16",), PRODUCT, {"a": 1, "b": 1}, NARROW),
    ("FP8 products", "gemm", ("fp8_e4m3",), {**PRODUCT, "output": "fp8_e4m3"}, {"a": 1, "b": 1}, SCALES),
    ("addends", "gemm", FORMATS, {**PRODUCT, "bias": True, "beta": 0.5}, {"a": 1, "b": 1, "c": 2, "bias": 2}, SCALES),
    ("relu", "gemm", ("bf16",), {**PRODUCT, "epilogue": "relu"}, {"a": 1, "b": 1}, SCALES),
    ("rows", "layernorm_fwd", FORMATS, EXACT_ROWS, {"x": 1}, SCALES),
    ("weights", "layernorm_fwd", FORMATS, ROWS, {"gamma": 1, "beta": 1}, SCALES),
    ("rows", "layernorm_bwd", FORMATS, EXACT_ROWS, {"x": 1}, SCALES),
    ("gradients", "layernorm_bwd", FORMATS, ROWS, {"dz": 1}, SCALES),
    ("rows", "rmsnorm_fwd", FORMATS, EXACT_ROWS, {"x": 1}, SCALES),
    ("rows", "rmsnorm_bwd", FORMATS, EXACT_ROWS, {"x": 1}, SCALES),
    ("gradients", "rmsnorm_bwd", FORMATS, ROWS, {"dz": 1}, SCALES),
    ("gradients", "bias_grad", FORMATS, ROWS, {"dy": 1}, SCALES),
    ("fused", "bias_grad", FORMATS, {**ROWS, "fused": "gelu"}, {"dy": 1}, SCALES),
    ("relu", "activation_fwd", FORMATS, {**ROWS, "kind": "relu"}, {"x": 1}, SCALES),
    ("squares", "activation_fwd", FORMATS, {**ROWS, "kind": "srelu"}, {"x": 1}, SCALES),
    ("gradients", "activation_bwd", FORMATS, {**ROWS, "kind": "gelu"}, {"dy": 1}, SCALES),
    ("gradients", "softmax_bwd", FORMATS, SCORES, {"dy": 1}, SCALES),
    ("scores", "softmax_fwd", FORMATS, SCALED_SCORES, {"x": 1, "params.scale": -1}, FACTORS),
    ("factor", "router_topk", FORMATS, {"tokens": 512, "experts": 8, "topk": 2, "scaling": 1}, {"params.scaling": 1}, FACTORS),
    ("scores", "attention_fwd", FORMATS, SCALED_HEADS, {"q": 1, "params.scale": -1}, FACTORS),
    ("values", "attention_fwd", FORMATS, HEADS, {"v": 1}, SCALES),
    ("gradients", "attention_bwd", FORMATS, HEADS, {"do": 1}, SCALES),
    ("both", "attention_bwd", FORMATS, HEADS, {"v": 1, "do": 1}, SCALES),
    ("channels", "rope_fwd", FORMATS, {"seq": 128, "heads": 4, "dim": 64}, {"x": 1}, SCALES),
    ("channels", "rope_bwd", FORMATS, {"seq": 128, "heads": 4, "dim": 64}, {"dy": 1}, SCALES),
    ("parts", "moe_unpermute", FORMATS, {"tokens": 128, "hidden": 256, "topk": 2}, {"x": 1}, SCALES),
    ("casts", "quantize", FORMATS, {"rows": 128, "cols": 256}, {"x": 1}, SCALES),
    ("elements", "dropout_fwd", FORMATS, {"elements": 32768}, {"x": 1}, SCALES),
]


def scaled(row, mode, power):
    _, op, _, params, scaled_by, _ = row
    inputs, params = {"distribution": "normal"}, dict(params)
    for name, degree in scaled_by.items():
        if name.startswith(PARAMETER):
            params[name.removeprefix(PARAMETER)] *= 2.0 ** (degree * power)
        else:
            inputs[name] = {"distribution": "normal", "sigma": 2.0 ** (degree * power)}
    # A seed of its own, as one plan does not have a case twice.
    return {**sensitivity.case(op, mode, inputs, **params), "seed": 1 + CASES.index(row)}


class Scales(unittest.TestCase):
    def test_thresholds_are_the_same_at_every_scale(self):
        rows = [(row, mode) for row in CASES for mode in row[2]]
        near_one = [scaled(row, mode, 0) for row, mode in rows]
        for part in PARTS:
            found = sensitivity.smallest_caught(PROGRAM, near_one, DEVICE, part)
            for power in sorted({power for row in CASES for power in row[5]}):
                chosen = [i for i, (row, _) in enumerate(rows) if power in row[5]]
                cases = [scaled(*rows[i], power) for i in chosen]
                self.check_clean([rows[i] for i in chosen], cases, power)
                self.check_caught([(rows[i], found[i], case) for i, case in zip(chosen, cases)], part, power)

    def test_attention_of_8_bits_is_judged_alike_at_every_scale(self):
        rows = [(row, mode) for row in CASES if row[1].startswith("attention") for mode in EIGHT_BITS]
        near_one = sensitivity.records(PROGRAM, [scaled(row, mode, 0) for row, mode in rows], DEVICE, "")
        for power in SMALL_AND_LARGE:
            results = sensitivity.records(PROGRAM, [scaled(row, mode, power) for row, mode in rows], DEVICE, "")
            for (row, mode), first, result in zip(rows, near_one, results):
                with self.subTest(row[0], op=row[1], mode=mode, scale=f"2^{power}"):
                    self.assertEqual(result["status"], "pass", result["reason"])
                    self.check_alike(first, result)

    def check_alike(self, first, second):
        outputs = [record["runs"][0]["outputs"] for record in (first, second)]
        for port in outputs[0]:
            gates = [{gate["name"]: gate for gate in output[port]["criteria"]} for output in outputs]
            self.assertEqual(gates[0].keys(), gates[1].keys(), port)
            for name, gate in gates[0].items():
                for number in ("measured", "limit"):
                    allowed = 1e-3 * abs(gate[number])
                    self.assertAlmostEqual(gates[1][name][number], gate[number], delta=allowed, msg=f"{port}: {name}, {number}")

    def check_clean(self, rows, cases, power):
        for (row, mode), (status, reason) in zip(rows, sensitivity.run(PROGRAM, cases, DEVICE, "")):
            with self.subTest(row[0], op=row[1], mode=mode, scale=f"2^{power}"):
                self.assertEqual(status, "pass", reason)

    def check_caught(self, chosen, part, power):
        for at in sorted({found for _, found, _ in chosen if found < len(sensitivity.SIZES) - WIDER}):
            together = [(row, case) for row, found, case in chosen if found == at]
            size = sensitivity.SIZES[at + WIDER]
            results = sensitivity.run(PROGRAM, [case for _, case in together], DEVICE, f"perturb_{part}={size:.6g}")
            for ((row, mode), _), (status, _) in zip(together, results):
                with self.subTest(row[0], op=row[1], mode=mode, part=part, size=size, scale=f"2^{power}"):
                    self.assertEqual(status, "fail", f"caught at scale 1 from {sensitivity.SIZES[at]:.2g}")


if __name__ == "__main__":
    unittest.main()
