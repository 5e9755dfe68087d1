"""te-numcheck diagnose: somebody's tensors are judged, causes are named, and what does not fit is said."""

import array
import json
import math
import random
import struct
import unittest

from support import CliTest


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def tf32(x):
    """To nearest with 10 bits of fraction, ties to even."""
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    bits = (bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def bf16_bits(x, truncate=False):
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    return (bits if truncate else bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def of_bf16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def normal(rng, count):
    return [f32(rng.gauss(0, 1)) for _ in range(count)]


def safetensors(path, tensors, texts=None):
    """{name: (format, shape, numbers, or codes of 16 or 8 bits)}"""
    header, data = ({"__metadata__": texts} if texts else {}), b""
    for name, (kind, shape, numbers) in tensors.items():
        raw = array.array("f" if kind == "F32" else "B" if kind == "U8" or kind.startswith("F8") else "H", numbers).tobytes()
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def npy(path, shape, numbers):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.array("f", numbers).tobytes())


M, N, K = 40, 33, 60
ROWS, HIDDEN = 32, 96


def product(x, w, change=lambda v: v):
    """x [M, K] times w [N, K] transposed."""
    x, w = [change(v) for v in x], [change(v) for v in w]
    return [f32(math.fsum(x[i * K + t] * w[j * K + t] for t in range(K))) for i in range(M) for j in range(N)]


def layernorm(x, gamma, beta, epsilon):
    y = []
    for r in range(ROWS):
        row = x[r * HIDDEN : (r + 1) * HIDDEN]
        mean = math.fsum(row) / HIDDEN
        scale = 1 / math.sqrt(math.fsum((v - mean) ** 2 for v in row) / HIDDEN + epsilon)
        y += [f32((v - mean) * scale * g + b) for v, g, b in zip(row, gamma, beta)]
    return y


class Diagnose(CliTest):
    @classmethod
    def setUpClass(cls):
        rng = random.Random(3)
        cls.x, cls.w, cls.bias = normal(rng, M * K), normal(rng, N * K), normal(rng, N)
        cls.rows = [f32(0.05 * v) for v in normal(rng, ROWS * HIDDEN)]
        cls.gamma, cls.beta = normal(rng, HIDDEN), normal(rng, HIDDEN)

    def linear(self, y, **more):
        tensors = {"x": ("F32", [M, K], self.x), "w": ("F32", [N, K], self.w), "y": ("F32", [M, N], y)}
        safetensors(self.folder / "t.safetensors", {**tensors, **more})
        names = "a=x,b=w,d=y" + "".join(f",{name}={name}" for name in more)
        return ["diagnose", "gemm", "--tensors", "t.safetensors", "--map", names]

    def norm(self, y, **changes):
        tensors = {"x": ("F32", [ROWS, HIDDEN], self.rows), "gamma": ("F32", [HIDDEN], self.gamma),
                   "beta": ("F32", [HIDDEN], self.beta), "y": y if isinstance(y, tuple) else ("F32", [ROWS, HIDDEN], y)}
        safetensors(self.folder / "t.safetensors", {**tensors, **changes})
        return ["diagnose", "layernorm_fwd", "--tensors", "t.safetensors"]

    def causes(self, arguments, code=1):
        done = self.run_cli(*arguments, "--json", "-", code=code)
        return [cause["name"] for cause in json.loads(done.stdout)["causes"]]

    def test_a_right_result_is_called_correct(self):
        done = self.run_cli(*self.linear(product(self.x, self.w)), code=0)
        self.assertIn("d is correct: every gate passes", done.stdout)
        self.assertIn("trans_b = true", done.stdout)
        done = self.run_cli(*self.norm(layernorm(self.rows, self.gamma, self.beta, 1e-5)), code=0)
        self.assertIn("y is correct", done.stdout)

    def test_operands_in_tf32(self):
        arguments = self.linear(product(self.x, self.w, tf32))
        self.assertEqual(self.causes(arguments), ["operands_in_tf32", "operands_in_tf32_away", "operands_in_fp16"])
        done = self.run_cli(*arguments, code=1)
        self.assertIn("the product ran in TF32", done.stdout)
        self.assertIn("NVIDIA_TF32_OVERRIDE=0", done.stdout)
        self.assertIn("these tensors do not tell it from: operands_in_tf32_away, operands_in_fp16", done.stdout)

    def test_operands_in_bf16(self):
        self.assertEqual(self.causes(self.linear(product(self.x, self.w, lambda v: of_bf16(bf16_bits(v))))), ["operands_in_bf16"])

    def test_a_missing_bias(self):
        self.assertEqual(self.causes(self.linear(product(self.x, self.w), bias=("F32", [N], self.bias))), ["bias=false"])

    def test_a_scale_is_fitted_and_snapped(self):
        y = [f32(v / math.sqrt(128)) for v in product(self.x, self.w)]
        name, value = self.causes(self.linear(y))[0].split("=")
        self.assertEqual(name, "alpha")
        self.assertAlmostEqual(float(value), 1 / math.sqrt(128), delta=1e-16)

    def test_a_tail_of_k_that_is_missing(self):
        short = [v if t % K < K - 4 else 0.0 for t, v in enumerate(self.x)]
        self.assertEqual(self.causes(self.linear(product(short, self.w))), ["terms_left_out"])
        self.assertIn("terms 56 to 59 of every sum are left out", self.run_cli(*self.linear(product(short, self.w)), code=1).stdout)

    def test_another_epsilon(self):
        self.assertEqual(self.causes(self.norm(layernorm(self.rows, self.gamma, self.beta, 1e-3))), ["epsilon=0.001"])

    def test_exchanged_inputs(self):
        y = layernorm(self.rows, self.beta, self.gamma, 1e-5)
        self.assertEqual(self.causes(self.norm(y)), ["gamma_and_beta_exchanged"])

    def test_rows_that_are_exchanged(self):
        y = layernorm(self.rows, self.gamma, self.beta, 1e-5)
        y[3 * HIDDEN : 4 * HIDDEN], y[9 * HIDDEN : 10 * HIDDEN] = y[9 * HIDDEN : 10 * HIDDEN], y[3 * HIDDEN : 4 * HIDDEN]
        self.assertIn("rows 3 and 9 are exchanged", self.run_cli(*self.norm(y), code=1).stdout)

    def test_an_output_that_is_truncated(self):
        x = [bf16_bits(v) for v in self.rows]
        gamma, beta = [bf16_bits(v) for v in self.gamma], [bf16_bits(v) for v in self.beta]
        y = layernorm(*[[of_bf16(bits) for bits in codes] for codes in (x, gamma, beta)], 1e-5)
        inputs = {"x": ("BF16", [ROWS, HIDDEN], x), "gamma": ("BF16", [HIDDEN], gamma), "beta": ("BF16", [HIDDEN], beta)}
        right = self.norm(("BF16", [ROWS, HIDDEN], [bf16_bits(v) for v in y]), **inputs)
        self.run_cli(*right, code=0)
        wrong = self.norm(("BF16", [ROWS, HIDDEN], [bf16_bits(v, True) for v in y]), **inputs)
        self.assertEqual(self.causes(wrong), ["output_truncated"])
        self.assertIn("bit for bit", self.run_cli(*wrong, code=1).stdout)

    def test_what_nothing_explains_is_said(self):
        rng = random.Random(5)
        y = [f32(v * (1 + rng.gauss(0, 1e-3))) for v in product(self.x, self.w)]
        done = self.run_cli(*self.linear(y), code=1)
        self.assertIn("none of what was tried explains it", done.stdout)

    def test_files_of_their_own(self):
        npy(self.folder / "x.npy", [M, K], self.x)
        npy(self.folder / "w.npy", [N, K], self.w)
        npy(self.folder / "y.npy", [M, N], product(self.x, self.w))
        self.run_cli("diagnose", "gemm", "--in", "a=x.npy", "--in", "b=w.npy", "--out", "d=y.npy", code=0)

    def test_tensors_that_run_has_kept(self):
        plan = self.plan(case={"params": {"m": 48, "n": 40, "k": 64, "bias": True}})
        self.run_cli("run", plan, "--device", "sim:sm_90", "--no-save", "--keep-tensors", "kept", "--inject", "bias_missing", code=1)
        (kept,) = (self.folder / "kept").iterdir()
        for op in ([], ["gemm"]):
            self.assertEqual(self.causes(["diagnose", *op, "--tensors", kept]), ["bias=false"])

    def test_a_product_with_itself(self):
        y = [f32(math.fsum(self.x[i * K + t] * self.x[j * K + t] for t in range(K))) for i in range(M) for j in range(M)]
        safetensors(self.folder / "t.safetensors", {"x": ("F32", [M, K], self.x), "y": ("F32", [M, M], y)})
        self.run_cli("diagnose", "gemm", "--tensors", "t.safetensors", "--map", "a=x,b=x,d=y", code=0)

    def test_what_proves_nothing_is_undecided(self):
        safetensors(self.folder / "t.safetensors", {name: ("F32", shape, []) for name, shape in
                                                    {"a": [0, 4], "b": [4, 3], "d": [0, 3]}.items() if name != "b"}
                    | {"b": ("F32", [4, 3], [1.0] * 12)})
        done = self.run_cli("diagnose", "gemm", "--tensors", "t.safetensors", code=4)
        self.assertIn("undecided", done.stdout)
        zeros = {"a": ("F32", [4, 4], [0.0] * 16), "b": ("F32", [4, 4], [1.0] * 16), "d": ("F32", [4, 4], [0.0] * 16)}
        safetensors(self.folder / "t.safetensors", zeros)
        done = self.run_cli("diagnose", "gemm", "--tensors", "t.safetensors", "--json", "-", code=4)
        self.assertEqual(json.loads(done.stdout)["verdict"], "undecided")

    def test_nan_and_infinities_are_no_obstacle(self):
        x = list(self.x)
        x[5], x[3 * K] = math.nan, math.inf
        y = []
        for i in range(M):
            for j in range(N):
                terms = [x[i * K + t] * self.w[j * K + t] for t in range(K)]
                y.append(f32(math.fsum(terms)) if all(map(math.isfinite, terms)) else math.nan if i == 0 else
                         sum(terms))
        tensors = {"a": ("F32", [M, K], x), "b": ("F32", [N, K], self.w), "d": ("F32", [M, N], y)}
        safetensors(self.folder / "t.safetensors", tensors)
        arguments = ["diagnose", "gemm", "--tensors", "t.safetensors"]
        self.run_cli(*arguments, code=0)
        exchanged = y[5 * N : 6 * N], y[8 * N : 9 * N]
        y[8 * N : 9 * N], y[5 * N : 6 * N] = exchanged
        safetensors(self.folder / "t.safetensors", {**tensors, "d": ("F32", [M, N], y)})
        self.assertEqual(self.causes(arguments), ["rows_moved"])
        safetensors(self.folder / "t.safetensors", {**tensors, "d": ("F32", [M, N], [math.nan] * (M * N))})
        self.assertEqual(self.causes(arguments), ["elements_all_NaN"])

    def test_more_than_fits_into_memory_is_refused_before_it_is_read(self):
        rows = 1 << 20
        path = self.folder / "t.safetensors"
        size = 4 * rows * (1 << 20)
        header = {name: {"dtype": "F32", "shape": [rows, 1 << 20], "data_offsets": [i * size, (i + 1) * size]}
                  for i, name in enumerate(("x", "y"))}
        text = json.dumps(header).encode()
        with path.open("wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            try:
                file.truncate(8 + len(text) + 2 * size)
            except OSError:
                self.skipTest("the file system has no sparse files of 8 TiB")
        done = self.run_cli("diagnose", "activation_fwd", "--tensors", path, code=3)
        self.assertIn("of host memory", done.stderr)

    def test_inputs_are_not_replaced(self):
        arguments = self.linear(product(self.x, self.w))
        before = (self.folder / "t.safetensors").read_bytes()
        self.run_cli(*arguments, "--json", "t.safetensors", code=2)
        npy(self.folder / "x.npy", [M, K], self.x)
        self.run_cli("diagnose", "gemm", "--in", "a=x.npy", "--json", "x.npy", code=2)
        self.assertEqual((self.folder / "t.safetensors").read_bytes(), before)
        self.run_cli(*arguments, "--json", "d.json", code=0)
        self.assertEqual(json.loads((self.folder / "d.json").read_text())["verdict"], "correct")
        self.run_cli(*arguments, "--json", "/dev/full", code=3)

    def test_two_causes_are_both_named(self):
        y = product(self.x, self.w, tf32)
        names = self.causes(self.linear(y, bias=("F32", [N], self.bias)))
        self.assertEqual(set(names[0].split(" + ")), {"operands_in_tf32", "bias=false"})
        scaled = [f32(0.125 * v) for v in layernorm(self.rows, self.beta, self.gamma, 1e-5)]
        names = self.causes(self.norm(scaled))
        self.assertEqual(set(names[0].split(" + ")), {"gamma_and_beta_exchanged", "output_scaled=0.125"})

    def test_a_right_result_says_which_tolerance_is_justified(self):
        done = self.run_cli(*self.linear(product(self.x, self.w)), code=0)
        self.assertIn("rtol=1.2e-07, atol=", done.stdout)
        self.assertIn("numpy.testing.assert_allclose", done.stdout)
        done = self.run_cli(*self.linear(product(self.x, self.w)), "--json", "-", code=0)
        tolerance = json.loads(done.stdout)["tolerances"]["d"]
        # Two results that are summed in other orders are within it, and far from outside it.
        other = [f32(sum(f32(v * w) for v, w in zip(self.x[i * K : (i + 1) * K], self.w[j * K : (j + 1) * K])))
                 for i in range(M) for j in range(N)]
        exact = product(self.x, self.w)
        apart = max(abs(a - b) - tolerance["rtol"] * abs(b) for a, b in zip(other, exact))
        self.assertLess(apart, tolerance["atol"])
        self.assertLess(tolerance["atol"], 1e-3)

    def test_two_results_are_held_against_each_other(self):
        arguments = self.linear(product(self.x, self.w))
        safetensors(self.folder / "other.safetensors", {"y": ("F32", [M, N], product(self.x, self.w, tf32))})
        done = self.run_cli(*arguments, "--against", "other.safetensors", code=1)
        self.assertRegex(done.stdout, r"d: \d+ of 1320 elements differ")
        self.assertLess(done.stdout.index("d is correct"), done.stdout.index("the product ran in TF32"))
        done = self.run_cli(*arguments, "--against", "other.safetensors", "--json", "-", code=1)
        found = json.loads(done.stdout)
        self.assertEqual([found["first"]["verdict"], found["second"]["verdict"]], ["correct", "wrong"])
        self.assertEqual(found["apart"][0]["output"], "d")
        safetensors(self.folder / "none.safetensors", {"z": ("F32", [1], [1.0])})
        self.refuses(*arguments, "--against", "none.safetensors", says="--against: none.safetensors has no y (output d); it has z (1)")

    def test_a_case_of_a_report_is_run_again(self):
        plan = self.plan(case={"params": {"m": 48, "n": 40, "k": 64, "bias": True}})
        self.run_cli("run", plan, "--device", "sim:sm_90", "--no-save", "--json", "report.json", "--inject", "bias_missing", code=1)
        (case,) = json.loads((self.folder / "report.json").read_text())["cases"]
        self.assertEqual(self.causes(["diagnose", "--case", case["id"], "report.json"]), ["bias=false"])
        self.assertEqual(self.causes(["diagnose", "--case", case["digest"][:8], "report.json"]), ["bias=false"])
        self.refuses("diagnose", "--case", "gemm/m=1", "report.json", says="--case")
        self.refuses("diagnose", "--case", case["id"], says="--case needs the report")
        self.refuses("diagnose", "--case", case["id"], "report.json", "--mode", "fp32", says="leave out the other options")

    def test_a_run_says_why_it_failed(self):
        plan = self.plan(case={"params": {"m": 48, "n": 40, "k": 64, "bias": True}})
        arguments = ["run", plan, "--device", "sim:sm_90", "--no-save", "--json", "report.json", "--inject", "bias_missing"]

        def causes():
            (case,) = json.loads((self.folder / "report.json").read_text())["cases"]
            return [finding.get("cause") for output in case["runs"][0]["outputs"].values() for finding in output["findings"]]

        done = self.run_cli(*arguments, "--diagnose", "failed", "--junit", "junit.xml", "--markdown", "summary.md", code=1)
        self.assertTrue(any(cause and "bias = false, not true" in cause for cause in causes()), causes())
        for text in (done.stdout, (self.folder / "junit.xml").read_text(), (self.folder / "summary.md").read_text()):
            self.assertIn("bias = false, not true", text)
        self.run_cli(*arguments, "--diagnose", "never", code=1)
        self.assertFalse(any(causes()))
        self.run_cli(*arguments, code=1)  # not on a terminal
        self.assertFalse(any(causes()))
        self.assertIn("value of --diagnose", self.run_cli(*arguments, "--diagnose", "some", code=2).stderr)

    def test_overflow_explains_nothing(self):
        x = [500.0 if i % K == 3 else v for i, v in enumerate(self.x)]
        rng = random.Random(5)
        y = [f32(v * (1 + rng.gauss(0, 1e-3))) for v in product(x, self.w)]
        tensors = {"a": ("F32", [M, K], x), "b": ("F32", [N, K], self.w), "d": ("F32", [M, N], y)}
        safetensors(self.folder / "t.safetensors", tensors)
        self.assertEqual(self.causes(["diagnose", "gemm", "--tensors", "t.safetensors"]), [])

    def test_what_is_done_to_the_product_is_not_a_missing_product(self):
        def causes_of(f):
            return self.causes(self.linear([f32(f(v)) for v in product(self.x, self.w)]))

        self.assertEqual(causes_of(lambda v: v / (1 + math.exp(-v))), ["fused_silu"])
        self.assertEqual(causes_of(lambda v: v * math.tanh(math.log1p(math.exp(v)))), [])

    def test_one_number_explains_nothing(self):
        safetensors(self.folder / "t.safetensors", {"a": ("F32", [1, 4], [1.0, 2.0, 3.0, 4.0]), "b": ("F32", [4, 1], [1.0] * 4),
                                                    "d": ("F32", [1, 1], [7.5])})
        self.assertEqual(self.causes(["diagnose", "gemm", "--tensors", "t.safetensors"]), [])

    def test_zeros_among_unscaled_numbers_are_not_dropout(self):
        rng = random.Random(8)
        y = [v if rng.random() < 0.9 else 0.0 for v in product(self.x, self.w)]
        self.assertNotIn("dropped_out", self.causes(self.linear(y)))

    def test_results_of_other_shapes_are_not_compared(self):
        arguments = self.linear(product(self.x, self.w))
        half = {"x": ("F32", [M // 2, K], self.x[: M // 2 * K]), "y": ("F32", [M // 2, N], product(self.x, self.w)[: M // 2 * N])}
        safetensors(self.folder / "half.safetensors", half)
        self.refuses(*arguments, "--against", "half.safetensors", says="different shapes")

    def test_kept_tensors_are_limited(self):
        plan = self.plan(cases=[{"op": "gemm", "mode": "fp32", "backend": "sim", "params": {"m": m, "n": 40, "k": 64, "bias": True}}
                                for m in (32, 48, 64)])
        arguments = ["run", plan, "--device", "sim:sm_90", "--no-save", "--keep-tensors", "kept"]
        self.run_cli(*arguments, "--keep-only", "failed", code=0)
        self.assertEqual(list((self.folder / "kept").iterdir()), [])
        done = self.run_cli(*arguments, "--keep-bytes", "50KiB", code=0)
        self.assertEqual(len(list((self.folder / "kept").iterdir())), 1)
        self.assertIn("the tensors of 2 runs were not kept, because --keep-bytes was reached", done.stderr)
        self.assertIn("value of --keep-only", self.run_cli(*arguments, "--keep-only", "some", code=2).stderr)
        self.assertIn("name its folder, too", self.run_cli(*arguments[:5], "--keep-only", "failed", code=2).stderr)

    def test_the_op_that_was_not_applied(self):
        self.assertEqual(self.causes(self.norm(list(self.rows))), ["x_unchanged"])
        y = [f32(a + b) for a, b in zip(layernorm(self.rows, self.gamma, self.beta, 1e-5), self.rows)]
        self.assertEqual(self.causes(self.norm(y)), ["x_added"])
        rng = random.Random(8)
        y = [f32(v / 0.75) if rng.random() < 0.75 else 0.0 for v in layernorm(self.rows, self.gamma, self.beta, 1e-5)]
        self.assertEqual(self.causes(self.norm(y))[0], "dropped_out")

    def refuses(self, *arguments, says):
        done = self.run_cli(*arguments, code=2)
        self.assertIn(says, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_what_does_not_fit_is_refused_with_a_sentence(self):
        good = self.linear(product(self.x, self.w))
        self.refuses("diagnose", says="needs the op")
        self.refuses("diagnose", "gemm", says="diagnose needs the op's tensors")
        self.refuses("diagnose", "gem", *good[2:], says="did you mean gemm")
        self.refuses(*good[:4], "--map", "a=x,b=w,d=z", says="none of the files has a tensor of that name")
        self.refuses(*good[:4], "--map", "a=x,b", says="NAME=VALUE")
        self.refuses(*good[:4], "--map", "a=x,b=w,q=y", says='gemm has no tensor "q"')
        self.refuses(*good[:4], "--map", "a=w,b=y,d=x", says="these tensors do not fit gemm")
        self.refuses(*good[:4], "--map", "a=x,b=w", says="nothing to judge")
        self.refuses(*good[:4], "--map", "a=x,d=y", says="gemm needs the tensor b")
        self.refuses(*good, "--mode", "bf17", says="gemm has no mode bf17")
        self.refuses(*good, "--mode", "bf16", says="not bf16")
        self.refuses(*good, "--param", "alpha=much", says="--param alpha: a number")
        self.refuses(*good, "--param", "alpha=1e99", says="alpha")
        self.refuses(*good, "--param", "gamma=1", says="gamma")
        self.refuses(*good, "--param", "alpha=1", "--param", "alpha=2", says="--param names alpha twice")
        self.refuses(*good, "--dtype", "a=bf17", says="unknown format")
        self.refuses(*good, "--dtype", "a=bf16", says="a")
        self.refuses(*good, "--dtype", "z=bf16", says="no tensor is given for z")
        self.refuses(*good, "--device", "cuda:0", says="diagnose runs nothing on a device")
        self.refuses(*good[:4], "--map", "a=x,a=w,d=y", says="--map names a twice")
        self.refuses(*good, "--in", "a=t.safetensors", says="holds 3 tensors")
        (self.folder / "broken.safetensors").write_bytes(b"\xff" * 40)
        self.assertIn("broken.safetensors", self.run_cli("diagnose", "gemm", "--tensors", "broken.safetensors").stderr)

    def test_a_kept_case_that_is_none(self):
        for text in ("{", "[" * 1000, '{"op": "gemm"}'):
            safetensors(self.folder / "k.safetensors", {"a": ("F32", [1, 1], [1.0])}, {"exec": text})
            self.assertEqual(self.run_cli("diagnose", "--tensors", "k.safetensors").returncode, 2, text)


if __name__ == "__main__":
    unittest.main()
