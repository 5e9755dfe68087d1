"""te-numcheck diagnose: scales of FP8 tensors that were left out, applied twice, inverted, exchanged or stale, scales of softmax in
16 bits, and what nothing explains; computed with NumPy."""

import json
import unittest

try:
    import numpy as np
except ImportError:
    np = None

from support import CliTest
from test_diagnose import bf16_bits, of_bf16, safetensors


class Fp8:
    """Rounding to nearest even and saturation, by a table of all numbers."""

    def __init__(self, kind, fraction, bias, largest):
        self.kind, self.largest = kind, largest
        codes = np.arange(128)
        exponent, mantissa = codes >> fraction, (codes & ((1 << fraction) - 1)) / (1 << fraction)
        values = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), (1 + mantissa) * 2.0 ** (exponent.astype(float) - bias))
        self.values = values[values <= largest]

    def codes(self, x):
        x = np.asarray(x, np.float32).astype(float)
        below = np.clip(np.searchsorted(self.values, np.abs(x), side="right") - 1, 0, len(self.values) - 2)
        low, high = np.abs(x) - self.values[below], self.values[below + 1] - np.abs(x)
        up = (high < low) | ((high == low) & (below % 2 == 1))
        return (below + up) | np.where(np.signbit(x), 128, 0)

    def numbers(self, codes):
        return np.where(codes >= 128, -1, 1) * self.values[codes & 127]


@unittest.skipIf(np is None, "python3-numpy is not installed")
class DiagnoseScales(CliTest):
    def setUp(self):
        super().setUp()
        self.rng = np.random.default_rng(17)
        self.e4m3, self.e5m2 = Fp8("F8_E4M3", 3, 7, 448.0), Fp8("F8_E5M2", 2, 15, 57344.0)

    def draw(self, *shape, scale=1.0):
        return (scale * self.rng.standard_normal(shape)).astype(np.float32)

    def found(self, op, *arguments, code=1, **tensors):
        """Tensors: (format, codes), or numbers of FP32."""
        stored = {}
        for port, x in tensors.items():
            kind, numbers = x if isinstance(x, tuple) else ("F32", np.asarray(x, np.float32))
            stored[port] = (kind, list(numbers.shape) or [1, 1], numbers.ravel().tolist())
        safetensors(self.folder / "t.safetensors", stored)
        done = self.run_cli("diagnose", op, "--tensors", "t.safetensors", "--json", "-", *arguments, code=code)
        return json.loads(done.stdout)

    def first(self, *arguments, **tensors):
        return [cause["name"] for cause in self.found(*arguments, **tensors)["causes"]][:1]

    def quantised(self, form, factor, inverse_too=False, **changes):
        x = self.draw(48, 72)
        amax = np.abs(x).max()
        scale = np.float32(form.largest) / amax
        other = np.float32(changes.pop("scale", np.float32(factor) * scale))
        inverse = np.float32(1) / (other if inverse_too else scale)
        return {"x": x, "scale": scale, "q": (form.kind, form.codes(x * other)), "amax": amax, "scale_inv": inverse, **changes}

    def test_codes_of_another_scale(self):
        for form in (self.e4m3, self.e5m2):
            arguments = ["quantize", "--param", f"format={form.kind.lower().replace('f8', 'fp8')}"]
            self.assertEqual(self.found(*arguments, code=0, **self.quantised(form, 1))["verdict"], "correct")
            for factor in (2, 0.5, 1.1, 1.01):
                for inverse_too in (False, True):
                    with self.subTest(form=form.kind, factor=factor, inverse_too=inverse_too):
                        tensors = self.quantised(form, factor, inverse_too)
                        if inverse_too:
                            self.assertEqual(self.first(*arguments, **tensors), ["scale_of_scale_inv"])
                            tensors.pop("scale_inv")
                        self.assertEqual(self.first(*arguments, **tensors), [f"scale_scaled={factor}"])

    def test_codes_of_a_stale_amax(self):
        found = self.found("quantize", **self.quantised(self.e4m3, 1 / 0.83))
        name, factor = found["causes"][0]["name"].split("=")
        self.assertEqual(name, "scale_scaled")
        self.assertAlmostEqual(float(factor), 1 / 0.83, places=4)
        tensors = self.quantised(self.e4m3, 1 / 0.83)
        tensors["amax"] = tensors["amax"] * np.float32(0.83)
        self.assertEqual(self.first("quantize", **tensors), ["scale_of_amax"])

    def test_codes_of_an_inverse_a_square_and_a_power_of_two(self):
        for number, name in ((lambda s: 1 / s, "inverted"), (lambda s: s * s, "applied_twice"),
                             (lambda s: np.exp2(np.floor(np.log2(s))), "rounded_to_power_of_2")):
            tensors = self.quantised(self.e4m3, 1)
            scale = tensors["scale"] / np.float32(16)
            tensors.update(scale=scale, scale_inv=np.float32(1) / scale,
                           q=("F8_E4M3", self.e4m3.codes(tensors["x"] * number(scale).astype(np.float32))))
            self.assertEqual(self.first("quantize", **tensors), [f"scale_{name}"])

    def test_codes_of_a_lower_scale_are_not_truncated(self):
        tensors = self.quantised(self.e5m2, 0.92, x=(np.arange(4000, dtype=np.float32) % 977 - 488).reshape(80, 50) / 64)
        amax = np.abs(tensors["x"]).max()
        scale = np.float32(57344) / amax
        tensors.update(scale=scale, scale_inv=np.float32(1) / scale, amax=amax,
                       q=("F8_E5M2", self.e5m2.codes(tensors["x"] * (np.float32(0.92) * scale))))
        names = [cause["name"] for cause in self.found("quantize", "--param", "format=fp8_e5m2", **tensors)["causes"]]
        self.assertEqual(names[0], "scale_scaled=0.92")
        self.assertNotIn("output_truncated", names)

    def test_a_scale_that_nobody_gave(self):
        tensors = self.quantised(self.e4m3, 1.1)
        self.assertEqual(self.first("quantize", x=tensors["x"], q=tensors["q"]), ["scale_scaled=1.1"])

    def test_a_scale_that_is_a_number_of_its_own(self):
        self.assertEqual(self.first("quantize", **self.quantised(self.e4m3, 1, scale=64)), ["scale_rounded_to_power_of_2"])
        self.assertEqual(self.first("quantize", **self.quantised(self.e4m3, 1, scale=100)), ["scale=100"])

    def test_dequantised_by_another_scale(self):
        q = self.e4m3.codes(100 * self.draw(48, 72))
        inverse = np.float32(0.013791)
        for number, name in ((inverse * np.float32(1.1), "q_scale_inv_scaled=1.1"), (inverse * np.float32(2), "q_scale_inv_scaled=2"),
                             (inverse * inverse, "q_scale_inv_applied_twice"), (1 / inverse, "q_scale_inv_inverted"),
                             (inverse * np.float32(0.83), "q_scale_inv_scaled=0.83")):
            y = self.e4m3.numbers(q).astype(np.float32) * np.float32(number)
            tensors = {"q": ("F8_E4M3", q), "q_scale_inv": inverse}
            self.assertEqual(self.first("dequantize", **tensors, y=y), [name])
            y = np.array([[bf16_bits(float(v)) for v in row] for row in y])
            self.assertEqual(self.first("dequantize", **tensors, y=("BF16", y)), [name])

    def product(self, second, factor, a_scale_inv=0.013, b_scale_inv=0.0007, **changes):
        """FP8 operands, and a factor of the product of their values."""
        a, b = self.e4m3.codes(self.draw(64, 96, scale=60)), second.codes(self.draw(80, 96, scale=60))
        inverses = np.float32(a_scale_inv), np.float32(b_scale_inv)
        z = float(inverses[0]) * float(inverses[1]) * (self.e4m3.numbers(a) @ second.numbers(b).T)
        return {"a": ("F8_E4M3", a), "b": (second.kind, b), "a_scale_inv": inverses[0], "b_scale_inv": inverses[1],
                "d": (factor(*map(float, inverses)) if callable(factor) else factor) * z, **changes}

    def test_descales_of_a_product(self):
        for second, mode in ((self.e4m3, "fp8_e4m3"), (self.e5m2, "fp8_hybrid")):
            arguments = ["gemm", "--mode", mode, "--param", "trans_b=true", "--param", "output=fp32"]
            self.assertEqual(self.found(*arguments, code=0, **self.product(second, 1))["verdict"], "correct")
            for factor, name in ((lambda a, b: 1 / a, "a_scale_inv_left_out"), (lambda a, b: 1 / b, "b_scale_inv_left_out"),
                                 (lambda a, b: a, "a_scale_inv_applied_twice"), (lambda a, b: b, "b_scale_inv_applied_twice"),
                                 (lambda a, b: 1 / b / b, "b_scale_inv_inverted"), (lambda a, b: b / a, "a_scale_inv_is_b_scale_inv"),
                                 (lambda a, b: 1 / a / b, "a_scale_inv_and_b_scale_inv_left_out")):
                with self.subTest(mode=mode, name=name):
                    found = self.found(*arguments, **self.product(second, factor))
                    self.assertEqual(found["causes"][0]["name"], name)
                    # alpha is in its class, or leaves more of the error.
                    worse = [one["name"] for one in found["excluded"] if one.get("failing", "").startswith("it leaves")]
                    names = [cause["name"] for cause in found["causes"]] + worse
                    self.assertTrue(any(other.startswith("alpha=") for other in names), names)
            names = [cause["name"] for cause in self.found(*arguments, **self.product(second, 0.3))["causes"]]
            self.assertEqual(names[0], "alpha=0.3")
            self.assertFalse(any("scale_inv" in name for name in names), names)

    def test_the_scale_of_a_product_in_fp8(self):
        arguments = ["gemm", "--mode", "fp8_e4m3", "--param", "trans_b=true", "--param", "output=fp8_e4m3"]
        tensors = self.product(self.e4m3, 1)
        z, amax = tensors["d"], np.abs(tensors["d"]).max()
        scale = np.float32(448) / np.float32(amax)
        for number, name, code in ((scale, None, 0), (1, "d_scale_left_out", 1), (float(scale) ** 2, "d_scale_applied_twice", 1),
                                   (1 / scale, "d_scale_inverted", 1), (scale / 2, "d_scale_scaled=0.5", 1)):
            with self.subTest(name=name):
                tensors.update(d=("F8_E4M3", self.e4m3.codes(z * float(number))), d_scale=scale, d_amax=amax)
                causes = self.found(*arguments, code=code, **tensors)["causes"]
                self.assertEqual([cause["name"] for cause in causes][:1], [name] if name else [])

    def test_alpha_that_a_right_amax_refutes(self):
        tensors = self.product(self.e4m3, 1, a_scale_inv=1, b_scale_inv=1)
        z, amax = tensors["d"], np.abs(tensors["d"]).max()
        scale = np.float32(448) / np.float32(amax)
        tensors.update(d=("F8_E4M3", self.e4m3.codes(z * float(scale) * 0.7)), d_scale=scale, d_amax=amax)
        found = self.found("gemm", "--mode", "fp8_e4m3", "--param", "trans_b=true", "--param", "output=fp8_e4m3", **tensors)
        self.assertEqual(found["causes"][0]["name"], "d_scale_scaled=0.7")
        self.assertIn("alpha=0.7", [one["name"] for one in found["excluded"]])

    def softmax(self, x, scale):
        t = np.array(scale, np.float64) * x
        e = np.exp(t - t.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def test_scales_of_softmax_in_16_bits(self):
        x = np.vectorize(lambda v: of_bf16(bf16_bits(float(v))))(self.draw(6, 40, 64, scale=2))
        bf16 = lambda numbers: ("BF16", np.vectorize(lambda v: bf16_bits(float(v)))(numbers))
        fp16 = lambda numbers: ("F16", np.asarray(numbers, np.float16).view(np.uint16))
        for stored, rounded in ((bf16, lambda v: of_bf16(bf16_bits(v))), (fp16, np.float16)):
            for declared in (1, 0.125):
                for scale in (0.3, 0.7, 3.0, 5.0, 0.04):
                    for is_rounded in (True, False):
                        with self.subTest(declared=declared, scale=scale, is_rounded=is_rounded):
                            y = self.softmax(x, rounded(scale) if is_rounded else scale)
                            found = self.first("softmax_fwd", "--param", f"scale={declared}", x=stored(x), y=stored(y))
                            self.assertEqual([name.split(" ")[0] for name in found], [f"scale={scale:g}"])
                    y, dy = np.asarray(self.softmax(x, declared), np.float16), np.asarray(x[:, ::-1], np.float16)
                    if stored is bf16:
                        y = np.vectorize(lambda v: of_bf16(bf16_bits(float(v))))(y)
                    dx = scale * y.astype(float) * (dy - (dy * y.astype(float)).sum(-1, keepdims=True))
                    with self.subTest("backward", declared=declared, scale=scale):
                        found = self.first("softmax_bwd", "--param", f"scale={declared}", y=stored(y), dy=stored(dy), dx=stored(dx))
                        self.assertEqual(found, [f"scale={scale:g}"])

    def test_temperatures_of_softmax(self):
        """Scores are divided by them in FP32, and gates of FP32 outputs see what seven digits of a scale leave."""
        x = self.draw(48, 256)
        for temperature in (0.6, 0.7, 0.3, 0.07, 1.3):
            with self.subTest(temperature=temperature):
                y = self.softmax((x.astype(np.float32) / np.float32(temperature)).astype(float), 1)
                tensors = {name: ("F32", value.astype(np.float32)) for name, value in (("x", x), ("y", y))}
                found = self.found("softmax_fwd", **tensors)["causes"]
                self.assertEqual([cause["name"] for cause in found], [f"scale={1 / temperature!r}"])
                self.assertIn(f"it is 1 / {temperature}", found[0]["cause"])
        y = self.softmax(x, 0.8397288817)
        tensors = {name: ("F32", value.astype(np.float32)) for name, value in (("x", x), ("y", y))}
        (name,) = self.first("softmax_fwd", **tensors)
        self.assertAlmostEqual(float(name.removeprefix("scale=")), 0.8397288817, delta=1e-7)

    def test_a_factor_near_0_is_not_the_closest(self):
        a, b = self.draw(48, 40), self.draw(56, 40)
        for noise in (1e-3, 1e-9):
            safetensors(self.folder / "t.safetensors", {
                name: ("F32", list(x.shape), x.ravel().tolist()) for name, x in
                {"a": a, "b": b, "d": self.draw(48, 56, scale=noise)}.items()})
            arguments = ["diagnose", "gemm", "--tensors", "t.safetensors", "--param", "trans_b=true"]
            said = " ".join(self.run_cli(*arguments, code=1).stdout.split())
            self.assertIn("none of what was tried explains it", said)
            self.assertNotIn("alpha=", said)


if __name__ == "__main__":
    unittest.main()
