"""Delayed scaling replayed: 1000 random courses of 100 steps, special amaxes included, by other code than the program's, written
from TransformerEngine's description of its two kernels. Every bit of every output must agree. On a GPU:

    test_delayed_scaling.py --backend cuda
    test_delayed_scaling.py --backend transformer_engine --te-lib .../libtransformer_engine.so"""

import argparse
import ctypes
import json
import math
import random
import struct
import sys
import unittest

from faults import PlantsFaults
from ops import fp8_recipe

STEPS = 100
CASES, TENSORS = 125, 8  # of a case: 1000 courses
LARGEST = {"fp8_e4m3": 448.0, "fp8_e5m2": 57344.0}
FLT_MAX = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]


def rounded(number):
    """To FP32, nearest even. A quotient of FP32 numbers that is rounded to double first ends as the same FP32 number."""
    return ctypes.c_float(number).value


def power_of_two(exponent):
    return rounded(math.ldexp(1.0, exponent))


def larger(a, b):
    """As fmaxf: NaN only if both are."""
    return b if math.isnan(a) or b > a else a


class Tensor:
    """What the update kernels do to one tensor."""

    def __init__(self, params, history, scale):
        self.params, self.history, self.scale = params, list(history), scale
        self.top = rounded(LARGEST[params["format"]] * power_of_two(-params["margin"]))

    def step(self, amax, reduced):
        self.history[0] = amax
        if self.params["kernel"] == "single":
            self.roll(amax)
            return
        newest = amax if reduced == 0 else reduced
        if newest != 0:
            self.roll(newest)
        else:
            self.rescale(0.0)

    def roll(self, newest):
        window = [*self.history[1:], newest]
        chosen = newest
        if self.params["algorithm"] == "max":
            chosen = 0.0
            for amax in window:
                chosen = larger(chosen, amax)
        self.history = [0.0, *window[1:]]
        self.rescale(chosen)

    def rescale(self, amax):
        if 0 < amax < math.inf:
            self.scale = rounded(self.top / amax)
        if math.isinf(self.scale):
            self.scale = FLT_MAX


def inverse(scale):
    return rounded(1 / scale) if scale else math.inf


def random_case(rng, number, backend):
    kernel = rng.choice(["single", "after_reduction"])
    modules = rng.choice([1, 2, 4])
    course = rng.choice([*fp8_recipe.COURSES, "special", "special"])
    return {
        "op": "fp8_recipe", "mode": "fp32", "backend": backend, "seed": number,
        "params": {"steps": STEPS, "tensors": TENSORS // modules, "modules": modules,
                   "history": rng.choice([1, 2, 3, 8, 17, 31, 64, 130]), "algorithm": rng.choice(["max", "most_recent"]),
                   "margin": rng.choice([0, 0, rng.randint(-4, 4), rng.randint(-160, 160)]),
                   "format": rng.choice(list(LARGEST)), "kernel": kernel, "course": course,
                   "second_rank": kernel == "after_reduction" and rng.random() < 0.5},
        "inputs": {"distribution": rng.choice(["normal", "log_uniform", "constant", "specials"])},
    }


def tensors_of(path):
    """Numbers of a kept run by name, and its parameters."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    params = json.loads(header.pop("__metadata__")["exec"])["params"]
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        if entry["dtype"] == "F32":
            tensors[name] = struct.unpack(f"<{(last - first) // 4}f", data[8 + size + first : 8 + size + last])
    return tensors, params


def replayed(params, tensors):
    """The outputs, by name, in the order of their elements."""
    per_module, length = params["tensors"], params["history"]
    count = params["modules"] * per_module
    reduced = tensors.get("reduced", tensors["amaxes"])
    outputs = {"scales": [0.0] * ((params["steps"] + 1) * count), "scale_invs": [0.0] * (params["steps"] * count),
               "new_history": [0.0] * (length * count)}
    for number in range(count):
        module, column = divmod(number, per_module)
        slots = [(module * length + slot) * per_module + column for slot in range(length)]
        tensor = Tensor(params, (tensors["history"][at] for at in slots), tensors["scale"][number])
        for step in range(params["steps"]):
            at = step * count + number
            outputs["scales"][at], outputs["scale_invs"][at] = tensor.scale, inverse(tensor.scale)
            tensor.step(tensors["amaxes"][at], reduced[at])
        outputs["scales"][params["steps"] * count + number] = tensor.scale
        for slot, at in enumerate(slots):
            outputs["new_history"][at] = tensor.history[slot]
    return outputs


def bits(number):
    """As stored; NaN has many bit patterns and counts as one."""
    return "nan" if math.isnan(number) else struct.pack("<f", number)


class Replay(PlantsFaults):
    backend = "sim"
    options = ("--device", "sim:sm_90")

    def kept_runs(self):
        rng = random.Random(19)
        defaults = {"margin": 0, "second_rank": False}
        cases = [random_case(rng, number, self.backend) for number in range(CASES)]
        plan = self.plan(cases=cases)
        self.run_cli("run", plan, *self.options, "--no-save", "--keep-tensors", "kept", code=0)
        runs = [tensors_of(path) for path in sorted((self.folder / "kept").glob("*.safetensors"))]
        self.assertEqual(len(runs), CASES)
        return [(tensors, {**defaults, **params}) for tensors, params in runs]

    def test_every_bit_of_1000_courses(self):
        kinds = set()
        for tensors, params in self.kept_runs():
            with self.subTest(**params):
                for name, expected in replayed(params, tensors).items():
                    self.assertEqual(list(map(bits, tensors[name])), list(map(bits, expected)), name)
            kinds |= {kind for kind, found in (
                ("zero", 0.0 in tensors["amaxes"]), ("infinity", math.inf in tensors["amaxes"]),
                ("nan", any(map(math.isnan, tensors["amaxes"]))), ("largest scale", FLT_MAX in tensors["scales"]),
                ("subnormal", any(0 < amax < 2.0**-126 for amax in tensors["amaxes"]))) if found}
        self.assertEqual(kinds, {"zero", "infinity", "nan", "largest scale", "subnormal"})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default=Replay.backend)
    parser.add_argument("--te-lib", default="")
    arguments = parser.parse_args()
    if arguments.backend != "sim":
        Replay.backend = arguments.backend
        Replay.options = ("--te-lib", arguments.te_lib) if arguments.te_lib else ()
    unittest.main(argv=sys.argv[:1])


if __name__ == "__main__":
    main()
