"""te-numcheck diagnose: tensors are found by their names, and where they are not, it says what the files have instead."""

import json
import math
import random
import unittest

from support import CliTest
from test_diagnose import K, M, N, f32, normal, product, safetensors, tf32


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
        said = self.refused("--tensors", "one.safetensors", "--against", "two.safetensors", "--map", "b=w,d=y")
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
