"""te-numcheck diagnose: lines that are scaled, a bias that nobody gave, blocks that are wrong, means for sums."""

import json
import math
import random
import struct
import unittest

from support import CliTest
from test_diagnose import bf16_bits, f32, normal, of_bf16, safetensors

M, N, K = 48, 40, 33


def product(x, w):
    """x [M, K] times w [N, K] transposed, in doubles."""
    return [math.fsum(x[i * K + t] * w[j * K + t] for t in range(K)) for i in range(M) for j in range(N)]


class DiagnoseLines(CliTest):
    @classmethod
    def setUpClass(cls):
        rng = random.Random(4)
        cls.x, cls.w, cls.bias = normal(rng, M * K), normal(rng, N * K), normal(rng, N)
        cls.y = product(cls.x, cls.w)

    def said(self, y, mode="F32", code=1, x=None, w=None):
        store = (lambda v: v) if mode == "F32" else bf16_bits
        tensors = {"a": (mode, [M, K], [store(v) for v in x or self.x]), "b": (mode, [N, K], [store(v) for v in w or self.w]),
                   "d": (mode, [M, N], [store(v) for v in y])}
        safetensors(self.folder / "t.safetensors", tensors)
        return json.loads(self.run_cli("diagnose", "gemm", "--tensors", "t.safetensors", "--json", "-", code=code).stdout)

    def first(self, *arguments, **options):
        found = self.said(*arguments, **options)
        return found["causes"][0]["name"] if found["causes"] else None

    def in_bf16(self):
        """Operands that BF16 holds, and their product."""
        x, w = ([of_bf16(bf16_bits(v)) for v in values] for values in (self.x, self.w))
        return {"x": x, "w": w}, product(x, w)

    def test_a_bias_that_nobody_gave(self):
        y = [f32(v + self.bias[i % N]) for i, v in enumerate(self.y)]
        found = self.said(y)
        self.assertEqual(found["causes"][0]["name"], "bias_added")
        self.assertIn("a bias that is not among the tensors was added", found["causes"][0]["cause"])
        operands, y = self.in_bf16()
        self.assertEqual(self.first([v + self.bias[i % N] for i, v in enumerate(y)], "BF16", **operands), "bias_added")

    def test_a_given_bias_that_is_used_in_another_way(self):
        """Nobody says then that there is a bias that was not given."""
        def cause(added, *more):
            """Of N rows and columns: what is added to row i, column j."""
            y = [f32(self.y[i * N + j] + added(i, j)) for i in range(N) for j in range(N)]
            safetensors(self.folder / "t.safetensors", {"a": ("F32", [N, K], self.x[: N * K]), "b": ("F32", [N, K], self.w),
                                                        "bias": ("F32", [N], self.bias), "d": ("F32", [N, N], y)})
            arguments = ["diagnose", "gemm", "--tensors", "t.safetensors", "--param", "trans_b=true", "--json", "-"]
            return json.loads(self.run_cli(*arguments, *more, code=1).stdout)["causes"][0]

        bias, other = self.bias, normal(random.Random(9), N)
        self.assertEqual(cause(lambda i, j: 0.25 * bias[j])["name"], "bias_scaled=0.25")
        self.assertEqual(cause(lambda i, j: -0.75 * bias[j])["name"], "bias_scaled=-0.75")
        self.assertEqual(cause(lambda i, j: 3 * bias[j])["name"], "bias_added_3_times")
        self.assertEqual(cause(lambda i, j: bias[j - 2])["name"], "bias_rolled")
        self.assertIn("2 columns before their own", cause(lambda i, j: bias[(j + 2) % N])["cause"])
        self.assertIn(cause(lambda i, j: bias[i])["name"], ("bias=false + bias_on_rows", "bias_missing + bias_on_rows"))
        found = cause(lambda i, j: bias[j] + other[j])
        self.assertEqual(found["name"], "bias_added")
        self.assertRegex(found["cause"], "a number was added to every column of d, .*, besides the bias that is given")
        half = [f32(v / 2) for v in self.y]
        safetensors(self.folder / "t.safetensors", {
            "a": ("F32", [M, K], self.x), "b": ("F32", [N, K], self.w), "bias": ("F32", [N], bias),
            "d": ("F32", [M, N], [f32(v + bias[i % N] / 2) for i, v in enumerate(half)])})
        done = self.run_cli("diagnose", "gemm", "--tensors", "t.safetensors", "--param", "alpha=0.5", code=1)
        self.assertIn("the bias was multiplied by 0.5, which is alpha", done.stdout)

    def test_beta_that_gamma_multiplies(self):
        rng = random.Random(12)
        x, gamma, beta = normal(rng, M * N), [1 + 0.3 * v for v in normal(rng, N)], normal(rng, N)
        gamma = [f32(v) for v in gamma]
        y = []
        for i in range(M):
            row = x[i * N : (i + 1) * N]
            mean = math.fsum(row) / N
            scale = 1 / math.sqrt(math.fsum((v - mean) ** 2 for v in row) / N + 1e-5)
            y += [f32(((v - mean) * scale + b) * g) for v, g, b in zip(row, gamma, beta)]
        safetensors(self.folder / "t.safetensors", {"x": ("F32", [M, N], x), "gamma": ("F32", [N], gamma), "beta": ("F32", [N], beta),
                                                    "y": ("F32", [M, N], y)})
        done = self.run_cli("diagnose", "layernorm_fwd", "--tensors", "t.safetensors", "--json", "-", code=1)
        self.assertEqual(json.loads(done.stdout)["causes"][0]["name"], "beta_times_gamma")

    def test_a_number_for_each_row(self):
        offsets = normal(random.Random(5), M)
        self.assertEqual(self.first([f32(v + offsets[i // N]) for i, v in enumerate(self.y)]), "row_offsets_added")

    def test_noise_is_no_bias(self):
        rng = random.Random(6)
        self.assertEqual(self.said([f32(v + rng.gauss(0, 0.1)) for v in self.y])["causes"], [])

    def test_rows_and_columns_that_are_scaled(self):
        row = [f32(v * (1.02 if i // N == 7 else 1)) for i, v in enumerate(self.y)]
        found = self.said(row)
        self.assertEqual(found["causes"][0]["name"], "rows_scaled=1.02")
        self.assertIn("row 7 is multiplied by 1.02", found["causes"][0]["cause"])
        self.assertEqual(self.first([f32(v * (0.5 if i % N in (3, 4) else 1)) for i, v in enumerate(self.y)]), "columns_scaled=0.5")
        operands, y = self.in_bf16()
        self.assertEqual(self.first([v * (1.02 if i // N == 7 else 1) for i, v in enumerate(y)], "BF16", **operands), "rows_scaled=1.02")

    def test_a_block_that_is_wrong(self):
        rng = random.Random(7)
        def with_noise(rows):
            return [f32(rng.gauss(0, 6)) if i // N < rows and i % N >= 4 else f32(v) for i, v in enumerate(self.y)]

        self.assertEqual(self.first(with_noise(25)), "some_elements_wrong")
        # Where most of it is wrong, that is no cause: nothing explains it.
        for rows in (28, 45):
            found = self.said(with_noise(rows))
            self.assertEqual((found["verdict"], found["causes"]), ("wrong", []), rows)
            self.assertGreater(len(found["excluded"]), 3)

    def test_an_activation_that_is_fused_into_a_product(self):
        """Named, and at once: not after every pair of other causes. ReLU and wrong places are no explanation of it."""
        m, n, k = 96, 80, 64
        rng = random.Random(8)
        a, b = ([of_bf16(bf16_bits(v)) for v in normal(rng, rows * k)] for rows in (m, n))
        sums = [math.fsum(a[i * k + t] * b[j * k + t] for t in range(k)) for i in range(m) for j in range(n)]

        def silu(z):
            return z / (1 + math.exp(-z))

        def named(rows, cols, f, kind="BF16"):
            store = bf16_bits if kind == "BF16" else f32
            d = [f(sums[i * n + j]) for i in range(rows) for j in range(cols)]
            safetensors(self.folder / "t.safetensors", {"a": (kind, [rows, k], [store(v) for v in a[: rows * k]]),
                                                        "b": (kind, [cols, k], [store(v) for v in b[: cols * k]]),
                                                        "d": (kind, [rows, cols], [store(v) for v in d])})
            found = json.loads(self.run_cli("diagnose", "gemm", "--tensors", "t.safetensors", "--param", "trans_b=true", "--json", "-",
                                            code=1).stdout)
            return [cause["name"] for cause in found["causes"]], found["pairs_tried"]

        for kind in ("BF16", "F32"):
            self.assertEqual(named(m, n, silu, kind), (["fused_silu"], 0))
            self.assertEqual(named(m, n, lambda z: z / 2 * math.erfc(-z / math.sqrt(2)), kind)[0], ["fused_gelu_erf"])
            self.assertEqual(named(m, n, math.tanh, kind)[0], ["fused_tanh"])
        self.assertEqual(named(m, 1, silu)[0], ["fused_silu"])
        # A function that nobody knows is not explained by places.
        self.assertEqual(named(1, n, lambda z: z * math.tanh(math.log1p(math.exp(z))), "F32")[0], [])

    def test_sums_that_end_early_under_an_activation(self):
        rng = random.Random(12)
        c = normal(rng, M * N)

        def named(first, last, f, epilogue):
            """f of the sum of some terms, and of c."""
            d = [f32(f(math.fsum(self.x[i * K + t] * self.w[j * K + t] for t in range(first, last)) + c[i * N + j]))
                 for i in range(M) for j in range(N)]
            safetensors(self.folder / "t.safetensors", {"a": ("F32", [M, K], self.x), "b": ("F32", [N, K], self.w),
                                                        "c": ("F32", [M, N], c), "d": ("F32", [M, N], d)})
            done = self.run_cli("diagnose", "gemm", "--tensors", "t.safetensors", "--param", "beta=1", "--param", "trans_b=true", "--param",
                                f"epilogue={epilogue}", "--json", "-", code=1)
            return [(cause["name"], cause["cause"]) for cause in json.loads(done.stdout)["causes"]]

        def gelu(z):
            return z / (1 + math.exp(-2 * math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))

        for f, epilogue in ((lambda z: max(z, 0), "relu"), (gelu, "gelu")):
            self.assertEqual(named(0, 32, f, epilogue), [("terms_left_out", "term 32 of every sum is left out")])
            self.assertEqual(named(0, 16, f, epilogue), [("terms_left_out", "terms 16 to 32 of every sum are left out")])
            self.assertEqual(named(8, K, f, epilogue), [("terms_left_out", "terms 0 to 7 of every sum are left out")])

    def test_an_operand_of_another_product_of_the_batch(self):
        batch, m, n, k = 3, 16, 12, 20
        rng = random.Random(13)
        a, b = normal(rng, batch * m * k), normal(rng, batch * n * k)
        for name, matrix in (("b_of_next_batch", lambda i: (i + 1) % batch), ("b_of_batch_before", lambda i: (i - 1) % batch),
                             ("b_of_first_batch", lambda i: 0)):
            d = [f32(math.fsum(a[(i * m + r) * k + t] * b[(matrix(i) * n + s) * k + t] for t in range(k)))
                 for i in range(batch) for r in range(m) for s in range(n)]
            safetensors(self.folder / "t.safetensors", {"a": ("F32", [batch, m, k], a), "b": ("F32", [batch, n, k], b),
                                                        "d": ("F32", [batch, m, n], d)})
            done = self.run_cli("diagnose", "gemm", "--tensors", "t.safetensors", "--param", "trans_b=true", "--json", "-", code=1)
            self.assertEqual([cause["name"] for cause in json.loads(done.stdout)["causes"]], [name])

    def test_an_output_from_its_end(self):
        self.assertEqual(self.first([f32(v) for v in reversed(self.y)]), "d_stored_reversed")

    def test_a_mean_for_a_sum(self):
        found = self.said([f32(v / (M * N)) for v in self.y])
        self.assertTrue(any("1 / (m n)" in cause["cause"] for cause in found["causes"]), found["causes"])
        dy = normal(random.Random(8), 2500 * 4)
        sums = [math.fsum(dy[r * 4 + c] for r in range(2500)) for c in range(4)]
        safetensors(self.folder / "g.safetensors", {"dy": ("F32", [2500, 4], dy), "dbias": ("F32", [4], [f32(s / 2500) for s in sums])})
        said = self.run_cli("diagnose", "bias_grad", "--tensors", "g.safetensors", code=1).stdout
        self.assertIn("mean_for_sum", said)

    def test_a_scale_that_is_held_in_few_bits(self):
        rng = random.Random(9)
        x, scale = [f32(3 * v) for v in normal(rng, 32 * 48)], of_bf16(bf16_bits(0.13))
        y = []
        for r in range(32):
            e = [math.exp(scale * v) for v in x[48 * r : 48 * r + 48]]
            y += [f32(v / math.fsum(e)) for v in e]
        safetensors(self.folder / "s.safetensors", {"x": ("F32", [32, 48], x), "y": ("F32", [32, 48], y)})
        found = json.loads(self.run_cli("diagnose", "softmax_fwd", "--tensors", "s.safetensors", "--param", "scale=0.13", "--json", "-",
                                        code=1).stdout)
        self.assertEqual(found["causes"][0]["name"], "scale=0.1298828125")
        self.assertIn("it was rounded to BF16", found["causes"][0]["cause"])

    def test_c_that_was_not_read_is_beta_of_0(self):
        case = {"op": "gemm", "mode": "bf16", "backend": "sim", "seed": 1,
                "params": {"m": 96, "n": 80, "k": 64, "beta": 1, "in_place": True}}
        self.run_cli("run", self.plan(cases=[case]), "--device", "sim:sm_90", "--no-save", "--inject", "beta_ignored", "--keep-tensors",
                     "kept", code=1)
        (file,) = (self.folder / "kept").iterdir()
        found = json.loads(self.run_cli("diagnose", "--tensors", file, "--json", "-", code=1).stdout)
        self.assertEqual(found["causes"][0]["name"], "beta=0")

    def test_a_cast_on_the_way_says_nothing_of_the_amax(self):
        case = {"op": "gemm", "mode": "fp8_e4m3", "backend": "sim", "seed": 1,
                "params": {"m": 64, "n": 48, "k": 32, "output": "fp8_e4m3"}}
        self.run_cli("run", self.plan(cases=[case]), "--device", "sim:sm_100", "--no-save", "--inject", "fp16_detour_fp8_output",
                     "--keep-tensors", "kept", code=1)
        (file,) = (self.folder / "kept").iterdir()
        found = json.loads(self.run_cli("diagnose", "--tensors", file, "--device", "sim:sm_100", "--json", "-", code=1).stdout)
        self.assertEqual(found["causes"][0]["name"], "output_through_fp16")

    def test_a_row_of_attention_that_is_scaled(self):
        for mode, factor, named in (("fp8_e4m3", 0.5, "rows_scaled=1.5"), ("bf16", 0.02, "rows_scaled=1.02")):
            with self.subTest(mode=mode):
                case = {"op": "attention_fwd", "mode": mode, "backend": "sim", "seed": 3, "params": {"heads": 2, "sq": 64, "sk": 64, "d": 32}}
                self.run_cli("run", self.plan(cases=[case]), "--device", "sim:sm_90", "--no-save", "--inject", f"perturb_row={factor}",
                             "--keep-tensors", f"kept-{mode}", code=1)
                (file,) = (self.folder / f"kept-{mode}").iterdir()
                found = json.loads(self.run_cli("diagnose", "--tensors", file, "--json", "-", code=1).stdout)
                self.assertEqual([cause["name"] for cause in found["causes"]][:1], [named])

    def test_a_number_that_was_added_to_everything(self):
        found = self.said([v + 0.25 for v in self.y])
        self.assertEqual([cause["name"] for cause in found["causes"]], ["output_offset=0.25"])
        self.assertEqual(found["causes"][0]["cause"], "0.25 was added to every element of d")

    def test_rows_of_one_head_that_are_scaled(self):
        heads, rows, d = 2, 64, 32
        case = {"op": "attention_fwd", "mode": "fp16", "backend": "sim", "seed": 3, "params": {"heads": heads, "sq": rows, "sk": 64, "d": d}}
        self.run_cli("run", self.plan(cases=[case]), "--device", "sim:sm_90", "--no-save", "--keep-tensors", "kept", code=0)
        (file,) = (self.folder / "kept").iterdir()
        content = bytearray(file.read_bytes())
        length = int.from_bytes(content[:8], "little")
        begin, _ = json.loads(content[8:8 + length])["o"]["data_offsets"]
        for wrong, place in (([5], "row 5 of head 1 is"), (range(40, 52), "rows 40 to 51 of head 1 are")):
            with self.subTest(place=place):
                changed = bytearray(content)
                for row in wrong:
                    at = 8 + length + begin + 2 * d * (row * heads + 1)
                    numbers = struct.unpack_from(f"<{d}e", changed, at)
                    struct.pack_into(f"<{d}e", changed, at, *(1.05 * x for x in numbers))
                (self.folder / "changed.safetensors").write_bytes(changed)
                found = json.loads(self.run_cli("diagnose", "--tensors", "changed.safetensors", "--json", "-", code=1).stdout)
                self.assertEqual(found["causes"][0]["name"], "rows_scaled=1.05")
                self.assertIn(place, found["causes"][0]["cause"])

    def test_what_is_wrong_in_one_head_only(self):
        """A head from the run of another case: its cause is named, and the head."""
        batches, heads, rows, d = 2, 2, 64, 32
        for params, named in (({"scale": 0.125}, "scale=0.125"), ({"mask": "causal"}, "mask=causal")):
            contents = []
            for name, own in (("right", {}), ("other", params)):
                folder = f"{name}-{named}"
                case = {"op": "attention_fwd", "mode": "fp16", "backend": "sim", "seed": 3,
                        "params": {"batches": batches, "heads": heads, "sq": rows, "sk": 64, "d": d, **own}}
                self.run_cli("run", self.plan(cases=[case]), "--device", "sim:sm_90", "--no-save", "--keep-tensors", folder, code=0)
                (file,) = (self.folder / folder).iterdir()
                content = file.read_bytes()
                length = int.from_bytes(content[:8], "little")
                header = json.loads(content[8:8 + length])
                contents.append((bytearray(content), lambda port, h=header, n=length: 8 + n + h[port]["data_offsets"][0]))
            (right, place), (other, from_place) = contents
            self.assertEqual(right[place("q"):place("q") + 64], other[from_place("q"):from_place("q") + 64])
            for row in range(rows):
                at = 2 * d * ((rows + row) * heads + 1)  # of sequence 1, head 1
                right[place("o") + at:place("o") + at + 2 * d] = other[from_place("o") + at:from_place("o") + at + 2 * d]
            at, size = 4 * rows * (heads + 1), 4 * rows
            right[place("lse") + at:place("lse") + at + size] = other[from_place("lse") + at:from_place("lse") + at + size]
            (self.folder / "t.safetensors").write_bytes(right)
            found = json.loads(self.run_cli("diagnose", "--tensors", "t.safetensors", "--json", "-", code=1).stdout)
            self.assertEqual(found["causes"][0]["name"], named)
            self.assertIn("head 1 of sequence 1", found["causes"][0]["cause"])

    def test_a_block_of_a_head_that_is_scaled_by_less_than_rounding(self):
        case = {"op": "attention_fwd", "mode": "bf16", "backend": "sim", "seed": 1,
                "params": {"batches": 2, "heads": 4, "sq": 256, "sk": 256, "d": 64}}
        self.run_cli("run", self.plan(cases=[case]), "--device", "sim:sm_90", "--no-save", "--inject", "perturb_tile=0.002",
                     "--keep-tensors", "kept", code=1)
        (file,) = (self.folder / "kept").iterdir()
        found = json.loads(self.run_cli("diagnose", "--tensors", file, "--json", "-", code=1).stdout)
        self.assertRegex(found["causes"][0]["name"], "^block_scaled=1.00[12]")
        self.assertIn("rows 0 to 63 of head 2, matrix 1", found["causes"][0]["cause"])

    def test_inputs_of_an_exact_leg_leave_no_room(self):
        case = {"op": "gemm", "mode": "fp8_e4m3", "backend": "sim", "inputs": {"distribution": "exact"},
                "params": {"m": 64, "n": 48, "k": 768, "trans_b": True, "output": "fp32", "accumulate": "split"}}
        self.run_cli("run", self.plan(cases=[case]), "--device", "sim:sm_90", "--no-save", "--inject", "promotion_512",
                     "--keep-tensors", "kept", code=1)
        (file,) = (self.folder / "kept").iterdir()
        found = json.loads(self.run_cli("diagnose", "--tensors", file, "--json", "-", code=1).stdout)
        self.assertIn("promotion_512", [cause["name"] for cause in found["causes"]])


if __name__ == "__main__":
    unittest.main()
