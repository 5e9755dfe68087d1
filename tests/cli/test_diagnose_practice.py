"""te-numcheck diagnose: what engineers bring, computed with NumPy: mixed formats, masks and windows that nobody declared."""

import json
import unittest

try:
    import numpy as np
except ImportError:
    np = None

from support import CliTest
from test_diagnose import bf16_bits, of_bf16, safetensors


def rounded(x):
    return np.array([of_bf16(bf16_bits(float(v))) for v in x.ravel()]).reshape(x.shape)


@unittest.skipIf(np is None, "python3-numpy is not installed")
class DiagnosePractice(CliTest):
    def setUp(self):
        super().setUp()
        self.rng = np.random.default_rng(5)

    def draw(self, *shape, scale=1.0):
        return (scale * self.rng.standard_normal(shape)).astype(np.float32)

    def file(self, name="t.safetensors", bf16=(), **tensors):
        stored = {port: ("BF16", list(x.shape), [bf16_bits(float(v)) for v in x.ravel()]) if port in bf16
                  else ("F32", list(x.shape), [float(v) for v in x.ravel()]) for port, x in tensors.items()}
        safetensors(self.folder / name, stored)
        return name

    def found(self, op, *arguments, code=1, **tensors):
        arguments = ["diagnose", op, "--tensors", self.file(**tensors), "--json", "-", *arguments]
        return json.loads(self.run_cli(*arguments, code=code).stdout)

    def attended(self, mask):
        """q, k, v and attention of 2 heads of 64 positions, [1, s, h, d]."""
        q, k, v = (self.draw(1, 64, 2, 16) for _ in range(3))
        s = np.einsum("bihc,bjhc->bhij", q.astype(float), k.astype(float)) / 4
        p = np.where(mask, np.exp(s - s.max(-1, keepdims=True)), 0)
        return {"q": q, "k": k, "v": v, "o": np.einsum("bhij,bjhc->bihc", p / p.sum(-1, keepdims=True), v)}

    def test_a_window_that_is_not_declared(self):
        i, j = np.mgrid[:64, :64]
        found = self.found("attention_fwd", "--param", "mask=causal", **self.attended((j <= i) & (j >= i - 16)))
        self.assertEqual(found["causes"][0]["name"], "window_left=16")
        found = self.found("attention_fwd", **self.attended(j <= i + 5))
        self.assertEqual(found["causes"][0]["name"], "window_right=5")

    def test_a_mask_of_which_ones_are_kept(self):
        x, mask = self.draw(2, 48, 40), self.rng.integers(0, 2, (1, 48, 40)).astype(np.float32)
        e = np.where(mask == 1, np.exp(x.astype(float)), 0)
        found = self.found("softmax_fwd", "--param", "mask=arbitrary", "--param", "heads=2", x=x, mask=mask,
                           y=e / e.sum(-1, keepdims=True))
        self.assertIn("mask_inverted", found["causes"][0]["name"])

    def test_a_bias_in_fp32_is_added_as_it_is_to_a_product_of_bf16(self):
        a, b, bias = rounded(self.draw(24, 64)), rounded(self.draw(48, 64)), self.draw(48)
        exact = a.astype(float) @ b.T.astype(float)
        given = {"a": a, "b": b, "bias": bias[None, :], "bf16": ("a", "b", "d")}
        found = self.found("gemm", code=0, d=rounded(exact + bias), **given)
        self.assertEqual((found["verdict"], found["case"]["mode"]), ("correct", "bf16"))
        self.assertTrue(any("bias is in FP32" in note for note in found["notes"]), found["notes"])
        self.found("gemm", d=rounded(exact), **given)

    def test_an_undeclared_bias_beside_operands_in_tf32(self):
        def tf32(x):
            bits = x.view(np.uint32)
            return ((bits + 0xFFF + ((bits >> 13) & 1)) & ~np.uint32(0x1FFF)).view(np.float32)

        a, b, bias = self.draw(64, 128), self.draw(48, 128), self.draw(48)
        d = tf32(a).astype(float) @ tf32(b).T.astype(float) + bias
        causes = [cause["name"] for cause in self.found("gemm", a=a, b=b, d=d)["causes"]]
        self.assertIn("bias_added + operands_in_tf32", causes)

    def test_a_vector_for_each_column_is_no_number_for_each_row(self):
        x, gamma, beta = self.draw(16, 64), self.draw(64), self.draw(64)
        centred = x - x.mean(-1, keepdims=True, dtype=float)
        y = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * gamma + beta
        found = self.found("rmsnorm_fwd", x=x, gamma=gamma[None, :], y=y)
        self.assertEqual(set(found["causes"][0]["name"].split(" + ")), {"bias_added", "layernorm_for_rmsnorm"})

    def test_a_fitted_factor_of_few_elements_needs_no_partner(self):
        a, b = self.draw(3, 7), self.draw(3, 7)
        found = self.found("gemm", a=a, b=b, d=1.37129 * (a.astype(float) @ b.T.astype(float)))
        self.assertEqual(found["causes"], [])

    def test_a_tile_of_zeros_in_attention(self):
        tensors = self.attended(np.ones((64, 64), bool))
        tensors["o"][:, 32:, 1] = 0
        self.assertEqual(self.found("attention_fwd", **tensors)["causes"][0]["name"], "elements_all_0")

    def test_a_bias_that_every_device_adds(self):
        a, b, bias = self.draw(48, 40), self.draw(56, 40), self.draw(56)
        d = a.astype(float) @ b.T.astype(float) + 4 * bias.astype(float)
        found = self.found("gemm", "--param", "trans_b=true", a=a, b=b, bias=bias, d=d)
        self.assertEqual(found["causes"][0]["name"], "bias_added_4_times")

    def test_what_is_a_thousandth_and_what_is_something_else(self):
        a, b = self.draw(48, 40), self.draw(56, 40)
        d = a.astype(float) @ b.T.astype(float)
        found = self.found("gemm", "--param", "trans_b=true", a=a, b=b, d=d / 1024)
        self.assertIn("0.0009765625", found["causes"][0]["name"])
        found = self.found("gemm", "--param", "trans_b=true", a=a, b=b, d=self.draw(48, 56, scale=6))
        names = [one["name"] for one in found["causes"] + found["excluded"]]
        self.assertEqual([name for name in names if name.startswith("output_scaled")], [])

    def test_weights_in_fp32_beside_activations_in_bf16(self):
        x, gamma = rounded(self.draw(16, 64)), 1 + self.draw(64, scale=0.1)
        y = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gamma
        found = self.found("rmsnorm_fwd", bf16=("x", "y"), x=x, gamma=gamma, y=y, code=0)
        self.assertEqual(found["verdict"], "correct")

    def test_a_product_of_16_bits_that_is_stored_in_fp32(self):
        a, b = rounded(self.draw(32, 48)), rounded(self.draw(40, 48))
        found = self.found("gemm", "--param", "trans_b=true", bf16=("a", "b"), a=a, b=b, d=a @ b.T, code=0)
        self.assertEqual(found["verdict"], "correct")

    def test_gelu_by_a_tanh_that_is_an_ulp_off_near_1(self):
        x = np.concatenate([np.linspace(-6, -4, 2048), np.linspace(-4, 4, 2048)]).astype(np.float32).reshape(8, 512)
        one = np.float32(1)
        t = np.tanh(np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x))
        t = np.where(t == -one, np.where(x > -5.4, -np.nextafter(one, np.float32(0)), -one), t).astype(np.float32)
        found = self.found("activation_fwd", x=x, y=np.float32(0.5) * x * (one + t), code=0)
        self.assertEqual(found["verdict"], "correct")

    def test_a_clamp_that_is_missing_is_no_limit_that_is_fitted(self):
        x = self.draw(40, 192, scale=4)
        a, b = x[:, :96].astype(float), x[:, 96:].astype(float)
        found = self.found("activation_fwd", "--param", "kind=clamped_swiglu", x=x, y=a / (1 + np.exp(-1.702 * a)) * (b + 1))
        self.assertEqual(found["causes"][0]["name"], "clamp_missing")

    def test_two_results_of_different_inputs(self):
        a, b = self.draw(32, 40), self.draw(24, 40)
        other = (a * np.float32(1.001)).astype(np.float32)
        for name, x in [("one.safetensors", a), ("two.safetensors", other)]:
            self.file(name, a=x, b=b, d=x.astype(float) @ b.T.astype(float))
        arguments = ["diagnose", "gemm", "--param", "trans_b=true", "--tensors", "one.safetensors", "--against", "two.safetensors"]
        said = self.run_cli(*arguments, code=0).stdout
        self.assertIn("inputs    1280 of 1280 elements of a differ", said)
        self.assertIn("computed from different inputs", " ".join(said.split()))
        found = json.loads(self.run_cli(*arguments, "--json", "-", code=0).stdout)
        self.assertEqual([one["input"] for one in found["inputs_apart"]], ["a"])


if __name__ == "__main__":
    unittest.main()
