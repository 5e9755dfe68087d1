"""te-numcheck diagnose: tensors are found by their names, and where they are not, it says what the files have instead."""

import array
import json
import math
import random
import struct
import unittest

from support import CliTest
from test_diagnose import K, M, N, bf16_bits, f32, normal, product, safetensors, tf32


class DiagnoseNames(CliTest):
    def setUp(self):
        super().setUp()
        rng = random.Random(6)
        self.x, self.w = normal(rng, M * K), normal(rng, N * K)
        self.y = product(self.x, self.w)

    def file(self, name, **renamed):
        """x [M, K], w [N, K] and y [M, N], those whose new names are given."""
        tensors = {"x": ("F32", [M, K], self.x), "w": ("F32", [N, K], self.w), "y": ("F32", [M, N], self.y)}
        safetensors(self.folder / name, {new: tensors[old] for old, new in renamed.items()})

    def refused(self, *arguments):
        done = self.run_cli("diagnose", "gemm", *arguments, code=2)
        self.assertEqual(done.stdout, "")
        return " ".join(done.stderr.split())

    def test_a_second_file_without_the_output_is_refused(self):
        self.file("one.safetensors", x="a", w="w", y="y")
        self.file("two.safetensors", x="a", w="w", y="out")
        said = self.refused("--tensors", "one.safetensors", "--against", "two.safetensors", "--map", "a=a,b=w,d=y")
        self.assertIn(f"two.safetensors has no y (output d); it has a ({M} x {K}), w ({N} x {K}), out ({M} x {N})", said)
        self.file("one.safetensors", x="a", w="b", y="d")
        self.file("two.safetensors", x="a", w="b")
        said = self.refused("--tensors", "one.safetensors", "--against", "two.safetensors")
        self.assertIn("two.safetensors has no d; it has a", said)

    def test_of_a_second_file_only_its_own_outputs_are_judged(self):
        rows = [sum(self.x[i * K : (i + 1) * K]) for i in range(M)]
        inputs = {"dz": ("F32", [M, K], self.x), "x": ("F32", [M, K], self.x), "gamma": ("F32", [K], [1.0] * K),
                  "mu": ("F32", [M], [row / K for row in rows]), "rsigma": ("F32", [M], [1.0] * M)}
        outputs = {"dx": ("F32", [M, K], self.x), "dbeta": ("F32", [K], [f32(math.fsum(self.x[c::K])) for c in range(K)])}
        safetensors(self.folder / "one.safetensors", inputs | outputs)
        safetensors(self.folder / "two.safetensors", {"dbeta": outputs["dbeta"]})
        done = self.run_cli("diagnose", "layernorm_bwd", "--effort", "quick", "--tensors", "one.safetensors", "--against",
                            "two.safetensors", "--json", "-")
        found = json.loads(done.stdout)
        self.assertEqual([one["output"] for one in found["apart"]], ["dbeta"])
        self.assertEqual(found["second"]["verdict"], "correct")

    def test_names_that_are_not_those_of_ports_are_listed(self):
        self.file("t.safetensors", x="x", w="weight", y="y")
        have = f"x ({M} x {K}), weight ({N} x {K}), y ({M} x {N})"
        said = self.refused("--tensors", "t.safetensors")
        self.assertIn("none of the tensors has the name of one of gemm's", said)
        self.assertIn(f"the files also hold {have}; --map PORT=NAME,... says which of them is which", said)
        said = self.refused("--tensors", "t.safetensors", "--map", "a=zzz")
        self.assertIn(f"--map a=zzz: none of the files has a tensor of that name; they have {have}", said)
        said = self.refused("--tensors", "t.safetensors", "--map", "b=weight,d=y")
        self.assertIn("gemm needs the tensor a", said)
        self.assertIn(f"the files also hold x ({M} x {K}); --map", said)

    def test_formats_that_no_mode_stores_are_explained(self):
        shapes = {"a": [M, K], "b": [N, K], "d": [M, N]}
        for name, shape in shapes.items():
            numbers, count = getattr(self, {"a": "x", "b": "w", "d": "y"}[name]), math.prod(shape)
            for suffix, code, data in (("raw", "|V2", array.array("H", map(bf16_bits, numbers))), ("double", "<f8", array.array("d", numbers))):
                header = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
                header += " " * (-(len(header) + 11) % 64) + "\n"
                self.assertEqual(len(data), count)
                (self.folder / f"{name}_{suffix}.npy").write_bytes(
                    b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data.tobytes())
        raw = ["--in", "a=a_raw.npy", "--in", "b=b_raw.npy", "--out", "d=d_raw.npy", "--param", "trans_b=true"]
        said = self.refused(*raw)
        self.assertIn("a, b, d are of raw bytes, as NumPy saves BF16 and FP8: say what they hold, such as --dtype a=bf16,b=bf16,d=bf16",
                      said)
        self.assertIn("are of raw bytes", self.refused(*raw, "--mode", "bf16"))
        self.run_cli("diagnose", "gemm", *raw, "--dtype", "a=bf16,b=bf16,d=bf16")
        said = self.refused("--in", "a=a_double.npy", "--in", "b=b_double.npy", "--out", "d=d_double.npy")
        self.assertIn("a, b, d are in FP64, which no mode stores: save them as float32", said)

    def test_one_term_and_one_element_are_said_as_such(self):
        self.y = [f32(y - self.x[i // N * K + 7] * self.w[i % N * K + 7]) for i, y in enumerate(self.y)]
        self.file("t.safetensors", x="a", w="b", y="d")
        done = self.run_cli("diagnose", "gemm", "--tensors", "t.safetensors", code=1)
        self.assertIn("term 7 of every sum is left out", done.stdout)
        safetensors(self.folder / "t.safetensors", {"a": ("F32", [1, 4], [1.0, 2.0, 3.0, 4.0]), "b": ("F32", [4, 1], [1.0] * 4),
                                                    "d": ("F32", [1, 1], [20.0])})
        done = self.run_cli("diagnose", "gemm", "--tensors", "t.safetensors", "--json", "-", code=1)
        self.assertIn("1 element is too few to tell", done.stdout)
        self.assertNotIn("1 elements", done.stdout)

    def test_ports_that_the_map_does_not_name_have_their_own_names(self):
        self.y = product(self.x, self.w, tf32)
        self.file("t.safetensors", x="a", w="w", y="y")
        done = self.run_cli("diagnose", "gemm", "--tensors", "t.safetensors", "--map", "b=w,d=y", "--json", "-", code=1)
        found = json.loads(done.stdout)
        self.assertEqual(found["causes"][0]["name"], "operands_in_tf32")
        # A file of its own comes before a tensor that merely has the port's name.
        self.file("a.safetensors", x="anything")
        self.file("t.safetensors", w="a", y="y")
        safetensors(self.folder / "b.safetensors", {"w": ("F32", [N, K], self.w)})
        self.run_cli("diagnose", "gemm", "--tensors", "t.safetensors", "--map", "d=y", "--in", "a=a.safetensors", "--in",
                     "b=b.safetensors", code=1)


if __name__ == "__main__":
    unittest.main()
