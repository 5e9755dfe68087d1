"""te-numcheck diagnose: products of which one operand was Hadamard-transformed, as that of NVFP4's recipe; computed with NumPy."""

import json
import unittest

try:
    import numpy as np
except ImportError:
    np = None

from support import CliTest
from test_diagnose import safetensors

SIGNS = [1, 1, 1, -1, 1, -1, -1, -1, -1, -1, -1, 1, -1, 1, -1, -1]


def transformed(x):
    """Rows, 16 elements at a time."""
    hadamard = np.array([[(-1) ** bin(j & k).count("1") for j in range(16)] for k in range(16)])
    return (x.reshape(-1, 16) * SIGNS @ hadamard.T / 4).reshape(x.shape)


@unittest.skipIf(np is None, "python3-numpy is not installed")
class DiagnoseHadamard(CliTest):
    def diagnosed(self, a, b, d, *arguments, code=1):
        stored = {port: ("F32", list(x.shape), x.astype(np.float32).ravel().tolist()) for port, x in (("a", a), ("b", b), ("d", d))}
        safetensors(self.folder / "t.safetensors", stored)
        done = self.run_cli("diagnose", "gemm", "--tensors", "t.safetensors", "--json", "-", *arguments, code=code)
        return json.loads(done.stdout)

    def test_the_operand_that_was_transformed_is_named(self):
        rng = np.random.default_rng(5)
        x, w = (rng.standard_normal((rows, 64)).astype(np.float32).astype(float) for rows in (40, 56))  # A B^T
        for arguments, stored in (([], lambda a, b: (a, b.T)), (["--param", "trans_b=true"], lambda a, b: (a, b)),
                                  (["--param", "trans_a=true"], lambda a, b: (a.T, b.T))):
            a, b = stored(x, w)
            with self.subTest(arguments):
                whole = transformed(x) @ transformed(w).T
                self.assertEqual(self.diagnosed(a, b, whole, *arguments, code=0)["verdict"], "correct", "that of both is that of neither")
                for name, d in (("a", transformed(x) @ w.T), ("b", x @ transformed(w).T)):
                    causes = self.diagnosed(a, b, d, *arguments)["causes"]
                    self.assertEqual([cause["name"] for cause in causes][:1], [f"{name}_hadamard_transformed"])

    def test_a_product_of_another_length_has_no_such_cause(self):
        rng = np.random.default_rng(6)
        a, b = rng.standard_normal((40, 60)), rng.standard_normal((60, 56))
        causes = self.diagnosed(a, b, a @ b + rng.standard_normal((40, 56)))["causes"]
        self.assertFalse([cause for cause in causes if "hadamard" in cause["name"]])


if __name__ == "__main__":
    unittest.main()
