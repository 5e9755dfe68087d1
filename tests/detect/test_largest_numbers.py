"""Infinity in place of the largest number of a format is wrong where no rounding can have overflowed."""

import json
import math
import struct
import unittest

from faults import PlantsFaults

SIM = "sim:sm_90"
LARGEST = 2.0**128 - 2.0**104
E5M2_LARGEST, E5M2_INFINITY, SIGN = 0x7B, 0x7C, 0x80


def infinite(number):
    return math.copysign(math.inf, number) if abs(number) == LARGEST else number


def infinite_code(code):
    return E5M2_INFINITY | code & SIGN if code & ~SIGN == E5M2_LARGEST else code


def with_infinities(file, port):
    """Replaces the largest numbers of a kept output, FP32 or E5M2, in place; how many there were."""
    contents = file.read_bytes()
    (length,) = struct.unpack("<Q", contents[:8])
    tensor = json.loads(contents[8 : 8 + length])[port]
    begin, end = (offset + 8 + length for offset in tensor["data_offsets"])
    layout, change = (f"<{(end - begin) // 4}f", infinite) if tensor["dtype"] == "F32" else (f"{end - begin}B", infinite_code)
    old = struct.unpack(layout, contents[begin:end])
    new = [change(number) for number in old]
    file.write_bytes(contents[:begin] + struct.pack(layout, *new) + contents[end:])
    return sum(a != b and not math.isnan(a) for a, b in zip(old, new))


class LargestNumbers(PlantsFaults):
    def diagnosed(self, op, port, distribution, mode="fp32", **params):
        """The exit code of diagnose with infinities for the largest numbers, and how many there are."""
        inputs = {"distribution": "normal", **distribution}
        plan = self.plan(cases=[{"op": op, "mode": mode, "backend": "sim", "params": params, "inputs": inputs}])
        self.run_cli("run", plan, "--device", SIM, "--keep-tensors", f"kept_{op}", "--no-save", code=None)
        (file,) = (self.folder / f"kept_{op}").glob("*.safetensors")
        given = ["--mode", mode]
        for name in {"add", "p", "kind", "output", "layout"} & params.keys():
            given += ["--param", f"{name}={str(params[name]).lower()}"]
        self.run_cli("diagnose", op, "--tensors", str(file), *given)
        changed = with_infinities(file, port)
        return self.run_cli("diagnose", op, "--tensors", str(file), *given, code=None).returncode, changed

    def test_a_copy_that_becomes_infinite_is_wrong(self):
        code, changed = self.diagnosed("dropout_fwd", "y", {"distribution": "specials", "fraction": 0.1}, elements=4096, p=0)
        self.assertGreater(changed, 10)
        self.assertEqual(code, 1)

    def test_a_sum_with_next_to_nothing_that_becomes_infinite_is_wrong(self):
        code, changed = self.diagnosed("rmsnorm_bwd", "dx", {"add": {"distribution": "specials", "fraction": 0.1}}, rows=64, hidden=128,
                                       add=True)
        self.assertGreater(changed, 10)
        self.assertEqual(code, 1)

    def test_a_code_that_becomes_infinite_is_wrong(self):
        inputs = {"distribution": "specials", "dy": {"distribution": "rows", "low": -1, "high": 0},
                  "x": {"distribution": "log_uniform", "low": -40, "high": 40}}
        code, changed = self.diagnosed("activation_bwd", "dx_columnwise", inputs, "fp16", kind="reglu", rows=32, hidden=32, output="mxfp8_e5m2",
                                       layout="columnwise")
        self.assertGreater(changed, 10)
        self.assertEqual(code, 1)


if __name__ == "__main__":
    unittest.main()
