"""diagnose: layers as frameworks run them operation by operation, rotary embeddings with other angles, masks that the op has no
word for, quantised layers. Everything is computed here, in Python's doubles."""

import json
import math
import random
import unittest

from support import CliTest
from test_diagnose import bf16_bits, f32, of_bf16, safetensors


def bf16(x):
    return of_bf16(bf16_bits(f32(x)))


def normal(rng, count, sigma=1.0, mean=0.0):
    return [bf16(rng.gauss(mean, sigma)) for _ in range(count)]


class Modules(CliTest):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(11)

    def diagnose(self, op, tensors, *params, kind="BF16", code=1):
        """tensors: {name: (shape, numbers)}, or with a kind of their own in front."""
        stored = {}
        for name, given in tensors.items():
            of, (shape, numbers) = given[0] if len(given) == 3 else kind, given[-2:]
            stored[name] = (of, shape, numbers if of == "F32" else [bf16_bits(f32(x)) for x in numbers])
        safetensors(self.folder / "t.safetensors", stored)
        options = [word for param in params for word in ("--param", param)]
        done = self.run_cli("diagnose", op, "--tensors", "t.safetensors", *options, "--json", "-", code=code)
        return [cause["name"] for cause in json.loads(done.stdout)["causes"]]


class Eager(Modules):
    def test_a_gated_activation_of_two_operations(self):
        rows, hidden = 32, 64
        x = normal(self.rng, rows * 2 * hidden)
        y = []
        for row in range(rows):
            a, b = x[2 * hidden * row :][:hidden], x[2 * hidden * row + hidden :][:hidden]
            y += [bf16(s / (1 + math.exp(-s))) * t for s, t in zip(a, b)]
        tensors = {"x": ([rows, 2 * hidden], x), "y": ([rows, hidden], y)}
        self.assertEqual(self.diagnose("activation_fwd", tensors, "kind=swiglu"), ["activation_rounded_to_bf16"])

    def layernorm(self, row, gamma, beta, spread, element):
        mean = math.fsum(row) / len(row)
        scale = 1 / math.sqrt(spread(row, mean) + 1e-5)
        return [element((v - mean) * scale, g, b) for v, g, b in zip(row, gamma, beta)]

    def norms(self, element, kind="BF16", mean=0.5, spread=lambda row, mean: math.fsum((v - mean) ** 2 for v in row) / len(row)):
        rows, hidden = 48, 96
        of = normal if kind == "BF16" else lambda rng, count, sigma=1.0, mean=0.0: [f32(rng.gauss(mean, sigma)) for _ in range(count)]
        x, gamma, beta = of(self.rng, rows * hidden, 1, mean), of(self.rng, hidden, 0.1, 1), of(self.rng, hidden, 0.1)
        y = [v for r in range(rows) for v in self.layernorm(x[r * hidden :][:hidden], gamma, beta, spread, element)]
        tensors = {"x": ([rows, hidden], x), "gamma": ([hidden], gamma), "beta": ([hidden], beta), "y": ([rows, hidden], y)}
        return self.diagnose("layernorm_fwd", tensors, kind=kind)

    def test_layernorm_that_stores_normalised_rows(self):
        self.assertEqual(self.norms(lambda n, g, b: bf16(n) * g + b), ["normalised_rounded_to_bf16"])
        self.assertEqual(self.norms(lambda n, g, b: bf16(bf16(n) * g) + b), ["normalised_and_product_rounded_to_bf16"])

    def test_layernorm_in_one_pass(self):
        def one_pass(row, mean):
            total = squares = 0.0
            for v in row:
                total, squares = f32(total + v), f32(squares + f32(v * v))
            return f32(f32(squares / len(row)) - f32(f32(total / len(row)) ** 2))

        self.assertEqual(self.norms(lambda n, g, b: n * g + b, "F32", 300, one_pass), ["one_pass_variance"])


class Rotary(Modules):
    SEQ, HEADS, DIM = 48, 2, 32

    def rotated(self, base=10000, factor=1, start=0, rotary=DIM, held=lambda v: v, product=lambda v: v):
        angle = lambda row, pair, of, channels: f32((start + factor * row) * of ** (-2 * pair / channels))
        x = normal(self.rng, self.SEQ * self.HEADS * self.DIM)
        y = list(x)
        for row in range(self.SEQ * self.HEADS):
            for pair in range(rotary // 2):
                theta = angle(row // self.HEADS, pair, base, rotary)
                c, s = held(math.cos(theta)), held(math.sin(theta))
                i = row * self.DIM + pair
                a, b = x[i], x[i + rotary // 2]
                y[i], y[i + rotary // 2] = product(a * c) - product(b * s), product(b * c) + product(a * s)
        freqs = [f32(row * 10000 ** (-2 * (i % (self.DIM // 2)) / self.DIM)) for row in range(self.SEQ) for i in range(self.DIM)]
        tensors = {"x": ([self.SEQ, 1, self.HEADS, self.DIM], x), "freqs": ("F32", [self.SEQ, self.DIM], freqs),
                   "y": ([self.SEQ, 1, self.HEADS, self.DIM], y)}
        return self.diagnose("rope_fwd", tensors, f"seq={self.SEQ}", f"heads={self.HEADS}", f"dim={self.DIM}")

    def test_of_another_base(self):
        self.assertEqual(self.rotated(base=500000), ["freqs_of_base=500000"])

    def test_of_other_positions(self):
        self.assertEqual(self.rotated(factor=0.25), ["positions_scaled=0.25"])
        self.assertEqual(self.rotated(start=7), ["positions_start_at=7"])

    def test_of_a_part_of_the_channels(self):
        self.assertEqual(self.rotated(rotary=self.DIM // 2), ["rotary=16"])

    def test_in_several_operations(self):
        self.assertEqual(self.rotated(held=bf16), ["cosine_and_sine_in_bf16"])
        self.assertEqual(self.rotated(held=bf16, product=bf16), ["rotated_in_bf16"])


class Masks(Modules):
    HEADS, LENGTH, DIM = 2, 40, 16

    def attention(self, sees, *params, shift=0, score=lambda s: s, weight=lambda w: w, bias=lambda h, i, j: 0):
        q, k, v = (normal(self.rng, self.LENGTH * self.HEADS * self.DIM) for _ in range(3))
        at = lambda x, i, h: x[(i * self.HEADS + h) * self.DIM :][: self.DIM]
        o = []
        for i in range(self.LENGTH):
            for h in range(self.HEADS):
                keys = [j for j in range(self.LENGTH) if sees(i, j)]
                dots = [sum(a * b for a, b in zip(at(q, i, h), at(k, j, h))) / math.sqrt(self.DIM) + bias(h, i, j) for j in keys]
                largest = max(map(score, dots), default=0)
                exact = [math.exp(score(s) - largest) for s in dots]
                scores, total = [weight(w) for w in exact], sum(exact) or 1
                values = [at(v, (j + shift) % self.LENGTH, h) for j in keys]
                o += [sum(w * u[c] for w, u in zip(scores, values)) / total for c in range(self.DIM)]
        shape = [1, self.LENGTH, self.HEADS, self.DIM]
        return self.diagnose("attention_fwd", {"q": (shape, q), "k": (shape, k), "v": (shape, v), "o": (shape, o)},
                             "layout=bshd", *params)

    def test_without_the_diagonal(self):
        self.assertEqual(self.attention(lambda i, j: j < i, "mask=causal"), ["own_key_masked"])
        self.assertEqual(self.attention(lambda i, j: j != i), ["own_key_masked"])

    def test_with_a_prefix(self):
        self.assertEqual(self.attention(lambda i, j: j <= i or j < 12, "mask=causal"), ["prefix_unmasked=12"])

    def test_in_chunks(self):
        self.assertEqual(self.attention(lambda i, j: j <= i and i // 16 == j // 16, "mask=causal"), ["chunks=16"])

    def test_with_truncated_weights(self):
        self.LENGTH, self.HEADS = 128, 4  # enough to see 0.2 % in all of them
        causes = self.attention(lambda i, j: True, weight=lambda w: of_bf16(bf16_bits(f32(w), truncate=True)))
        self.assertEqual(causes[0], "weights_truncated_to_bf16")

    def test_with_a_cap_that_is_not_declared(self):
        self.assertEqual(self.attention(lambda i, j: True, score=lambda s: 6 * math.tanh(s / 6)), ["softcap=6"])

    def test_with_another_alibi(self):
        self.HEADS = 3
        slopes = [2**-4, 2**-8, 2**-2]  # of two heads, and the first one of four
        ways = {
            "alibi_geometric": [2 ** (-8 * (h + 1) / 3) for h in range(3)], "alibi_from_zero": [1, *slopes[:2]],
            "alibi_reversed": slopes[::-1], "alibi_of_first_head": slopes[:1] * 3, "alibi_negated": [-s for s in slopes],
            "alibi_before_scale": [s / math.sqrt(self.DIM) for s in slopes],
        }
        for name, way in ways.items():
            causes = self.attention(lambda i, j: j <= i, "mask=causal", "bias=alibi", bias=lambda h, i, j: -way[h] * abs(i - j))
            self.assertEqual(causes[0], name)

    def test_with_values_of_the_position_before(self):
        self.assertEqual(self.attention(lambda i, j: j <= i, "mask=causal", shift=-1), ["v_of_previous_position"])


class Quantised(Modules):
    M, N, K = 48, 40, 64

    def codes(self, x, length):
        """INT8 codes of rows of that length, and their scales."""
        codes, scales = [], []
        for begin in range(0, len(x), length):
            row = x[begin : begin + length]
            scales.append(f32(max(map(abs, row)) / f32(127)))
            codes += [float(round(f32(v / scales[-1]))) for v in row]
        return codes, scales

    def product(self, both, transposed):
        a, w = normal(self.rng, self.M * self.K), normal(self.rng, self.N * self.K)
        (first, rows), (second, columns) = self.codes(a, self.K) if both else (a, [1] * self.M), self.codes(w, self.K)
        dot = lambda i, j: math.fsum(first[i * self.K + t] * second[j * self.K + t] for t in range(self.K))
        d = [dot(i, j) * rows[i] * columns[j] for i in range(self.M) for j in range(self.N)]
        b = w if transposed else [w[j * self.K + t] for t in range(self.K) for j in range(self.N)]
        shape = [self.N, self.K] if transposed else [self.K, self.N]
        tensors = {"a": ([self.M, self.K], a), "b": (shape, b), "d": ([self.M, self.N], d)}
        return self.diagnose("gemm", tensors, f"trans_b={str(transposed).lower()}")

    def test_channel_by_channel(self):
        self.assertEqual(self.product(False, True), ["b_by_channel_in_int8"])
        self.assertEqual(self.product(False, False), ["b_by_channel_in_int8"])
        self.assertEqual(self.product(True, True), ["a_and_b_by_channel_in_int8"])


if __name__ == "__main__":
    unittest.main()
