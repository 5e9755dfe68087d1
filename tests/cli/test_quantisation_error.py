"""The error of FP8 and FP4 casts of normal numbers, by recipe, is that of the formats and of their scales: a simulated device's codes and
scales, dequantised here, against x. The published numbers are from four million samples."""

import array
import json
import math
import unittest

from support import CliTest

ROWS, COLS = 512, 1024
WITHIN = 0.01

# (parameters, relative RMS error)
PUBLISHED = [
    ({}, 2.648e-2),
    ({"format": "fp8_e5m2"}, 5.258e-2),
    ({"recipe": "block_1x128", "power_of_two": "off"}, 2.575e-2),
    ({"recipe": "mxfp8"}, 2.654e-2),
    ({"recipe": "mxfp8", "rounding": "floor"}, 2.933e-2),
    ({"recipe": "nvfp4", "format": "fp4_e2m1"}, 9.50e-2),
]


def number_of(code, fraction, bias):
    """Of an FP8 code without infinities and NaN. Source: OCP OFP8 1.0."""
    exponent, mantissa = (code & 127) >> fraction, (code & ((1 << fraction) - 1)) / (1 << fraction)
    magnitude = mantissa * 2.0 ** (1 - bias) if exponent == 0 else (1 + mantissa) * 2.0 ** (exponent - bias)
    return -magnitude if code > 127 else magnitude


E4M3 = [number_of(code, 3, 7) for code in range(256)]
E5M2 = [number_of(code, 2, 15) for code in range(256)]
E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
E2M1 += [-number for number in E2M1]
NUMBERS = {"fp8_e4m3": E4M3, "fp8_e5m2": E5M2, "fp4_e2m1": E2M1}


def tensors_of(path):
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return {name: data[start + begin:start + end] for name, (begin, end) in
            ((name, entry["data_offsets"]) for name, entry in header.items())}


def scale_of(params, tensors):
    """(row, column) -> scale."""
    recipe, scales = params.get("recipe", "tensor"), tensors["scale_inv"]
    if recipe == "nvfp4":
        (amax,) = array.array("f", tensors["global_amax"])
        return lambda row, column: E4M3[scales[row * (COLS // 16) + column // 16]] * amax / 2688
    if recipe == "mxfp8":
        return lambda row, column: 2.0 ** (scales[row * (COLS // 32) + column // 32] - 127)
    numbers = array.array("f", scales)
    if recipe == "block_1x128":
        return lambda row, column: numbers[column // 128 * ROWS + row]
    return lambda row, column: numbers[0]


def relative_error(params, tensors):
    x, codes = array.array("f", tensors["x"]), tensors["q"]
    numbers = NUMBERS[params.get("format", "fp8_e4m3")]
    if numbers is E2M1:
        codes = [half for byte in codes for half in (byte & 15, byte >> 4)]
    scale = scale_of(params, tensors)
    error = size = 0.0
    for row in range(ROWS):
        for first in range(0, COLS, 16):
            factor = scale(row, first)
            for at in range(row * COLS + first, row * COLS + first + 16):
                error += (numbers[codes[at]] * factor - x[at]) ** 2
                size += x[at] ** 2
    return math.sqrt(error / size)


class QuantisationError(CliTest):
    def test_it_is_the_published_one(self):
        case = {"op": "quantize", "mode": "fp32", "backend": "sim", "inputs": {"distribution": "normal"}}
        for params, published in PUBLISHED:
            with self.subTest(**params):
                plan = self.plan(cases=[{**case, "params": {"rows": ROWS, "cols": COLS, **params}}])
                folder = "-".join(map(str, params.values())) or "tensor"
                self.run_cli("run", plan, "--device", "sim:sm_90", "--no-save", "--keep-tensors", folder, "--json",
                             "report.json", code=0)
                (kept,) = (self.folder / folder).glob("*.safetensors")
                error = relative_error(params, tensors_of(kept))
                self.assertLessEqual(abs(error / published - 1), WITHIN, f"{error:.4e}, published {published:.4e}")
                self.assertAlmostEqual(self.recorded("sqnr"), -20 * math.log10(error), 6)
                self.assertGreater(self.recorded("mse"), 0)

    def recorded(self, name):
        """A statistic of the codes in the report."""
        (case,) = json.loads((self.folder / "report.json").read_text())["cases"]
        (found,) = (each for each in case["runs"][0]["outputs"]["q"]["findings"] if each["name"] == name)
        return found["measured"]


class StatisticLimits(CliTest):
    """A plan may limit what casts lose. Scale 1 loses nearly all of numbers of 1e-5."""

    def judged(self, code, statistics, **inputs):
        case = {"op": "quantize", "mode": "fp32", "backend": "sim", "params": {"rows": 64, "cols": 256, "scale": 1},
                "inputs": {"distribution": "normal", **inputs}, "tolerance": {"statistics": statistics}}
        self.run_cli("run", self.plan(cases=[case]), "--device", "sim:sm_90", "--json", "report.json", "--no-save", code=code)
        return json.loads((self.folder / "report.json").read_text())["cases"][0]

    def test_within_limits(self):
        self.assertEqual(self.judged(0, {"sqnr": {"least": 25}, "underflow": {"most": 0.01}})["status"], "pass")

    def test_too_much_is_lost(self):
        for statistics, words in (({"underflow": {"most": 0.01}}, "underflow"), ({"sqnr": {"least": 25}}, "asks for at least 25")):
            with self.subTest(statistics=statistics):
                record = self.judged(1, statistics, sigma=2e-3)
                self.assertEqual(record["status"], "fail")
                self.assertIn(words, record["reason"])

    def test_what_was_not_measured_does_not_pass(self):
        record = self.judged(1, {"dead blocks": {"most": 0.9}})
        self.assertIn("nothing of that name was measured", record["reason"])

    def test_names_and_limits_are_checked(self):
        for op, statistics, words in (("quantize", {"sqn": {"least": 1}}, 'did you mean "sqnr"'),
                                      ("gelu", {"sqnr": {"least": 1}}, "statistic"),
                                      ("quantize", {"sqnr": {}}, "needs a limit"),
                                      ("quantize", {"sqnr": {"least": 25, "most": 20}}, "cannot be at least 25"),
                                      ("quantize", {"sqnr": 25}, "must be an object"),
                                      ("quantize", {"sqnr": {"lest": 1, "most": 2}}, "least")):
            with self.subTest(op=op, statistics=statistics):
                case = {"op": "quantize" if op == "quantize" else "activation_fwd", "mode": "fp32",
                        "params": {"rows": 4, "cols": 4} if op == "quantize" else {"rows": 4, "hidden": 4},
                        "tolerance": {"statistics": statistics}}
                self.assertIn(words, self.run_cli("validate", self.plan(cases=[case]), code=2).stderr)


if __name__ == "__main__":
    unittest.main()
