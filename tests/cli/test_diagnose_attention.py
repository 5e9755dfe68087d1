"""te-numcheck diagnose: attention that computed in other formats than it should, or with lengths that nobody told."""

import json
import unittest

try:
    import numpy as np
except ImportError:
    np = None

from support import CliTest
from test_diagnose_layouts import attention, softmax

B, H, S, D = 2, 2, 72, 32
CAUSAL = ["--param", "layout=bhsd", "--param", "mask=causal"]


def rounded(x, dropped_bits):
    """FP32 numbers without that many bits, to nearest."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    half = np.uint32((1 << (dropped_bits - 1)) - 1) + (bits >> np.uint32(dropped_bits) & np.uint32(1))
    return ((bits + half) >> np.uint32(dropped_bits) << np.uint32(dropped_bits)).view(np.float32)


def tf32(x):
    return rounded(x, 13).astype(np.float64)


def bf16(x):
    return rounded(x, 16).astype(np.float64)


def e4m3(x):
    """Codes of the nearest numbers."""
    codes = np.arange(0x7F)
    numbers = np.where(codes < 8, (codes & 7) / 512, 2.0 ** ((codes >> 3) - 7.0) * (1 + (codes & 7) / 8))
    nearest = np.abs(np.abs(x)[..., None] - numbers).argmin(-1)
    return (nearest | np.where(np.signbit(x), 0x80, 0)).astype(np.uint8), np.copysign(numbers[nearest], x)


@unittest.skipIf(np is None, "python3-numpy is not installed")
class DiagnoseAttention(CliTest):
    def setUp(self):
        super().setUp()
        self.rng = np.random.default_rng(11)

    def operands(self, cast=lambda x: x.astype(np.float32).astype(np.float64)):
        return {name: cast(self.rng.standard_normal((B, H, S, D))) for name in "qkv"}

    def arguments(self, op, inputs, outputs, *more):
        arguments = ["diagnose", op]
        for option, tensors in (("--in", inputs), ("--out", outputs)):
            for name, values in tensors.items():
                values = values if values.dtype.kind in "iu" else values.astype(np.float32)
                np.save(self.folder / f"{name}.npy", np.ascontiguousarray(values))
                arguments += [option, f"{name}={name}.npy"]
        return [*arguments, *more, *([] if "--effort" in more else ["--effort", "quick"]), "--json", "-"]

    def diagnose(self, op, inputs, outputs, *more, code):
        return json.loads(self.run_cli(*self.arguments(op, inputs, outputs, *more), code=code).stdout)

    def names(self, *found, code=1):
        return [cause["name"] for cause in self.diagnose(*found, code=code)["causes"]]

    def weights(self, scores):
        return softmax(np.where(np.tril(np.ones((S, S), bool)), scores, -np.inf))

    def test_products_in_tf32_are_told(self):
        x = self.operands()
        p = self.weights(tf32(x["q"]) @ tf32(x["k"]).swapaxes(-1, -2) / np.sqrt(D))
        both = {"o": tf32(p) @ tf32(x["v"])}
        self.assertEqual(self.names("attention_fwd", x, both, *CAUSAL), ["products_in_tf32"])
        scores_only = {"o": p @ x["v"]}
        self.assertEqual(self.names("attention_fwd", x, scores_only, *CAUSAL), ["scores_in_tf32"])
        right = {"o": attention(**x, mask="causal", head_map=lambda h: h)["o"]}
        self.assertEqual(self.diagnose("attention_fwd", x, right, *CAUSAL, code=0)["verdict"], "correct")

    def test_gradients_in_tf32_are_told(self):
        x = self.operands()
        do = self.rng.standard_normal((B, H, S, D)).astype(np.float32).astype(np.float64)
        q, k, v, g = (tf32(y) for y in (x["q"], x["k"], x["v"], do))
        p = self.weights(q @ k.swapaxes(-1, -2) / np.sqrt(D))
        ds = p * (g @ v.swapaxes(-1, -2) - (do * (tf32(p) @ v)).sum(-1, keepdims=True))
        dq = {"dq": tf32(ds) @ k / np.sqrt(D)}
        self.assertEqual(self.names("attention_bwd", {**x, "do": do}, dq, *CAUSAL), ["products_in_tf32"])

    def test_a_factor_in_tf32_is_two_causes(self):
        x = self.operands()
        p = self.weights(tf32(x["q"]) @ tf32(x["k"]).swapaxes(-1, -2) / np.sqrt(D))
        first, *others = self.names("attention_fwd", x, {"o": tf32(p) @ tf32(x["v"]) * 1.5}, *CAUSAL, "--effort", "normal")
        self.assertEqual(set(first.split(" + ")), {"output_scaled=1.5", "products_in_tf32"}, others)

    def test_stored_scores_are_told(self):
        x = self.operands(bf16)
        p = self.weights(bf16(4 * bf16(x["q"] @ x["k"].swapaxes(-1, -2)) / np.sqrt(D)))
        o = {"o": bf16(bf16(p) @ x["v"])}
        names = self.names("attention_fwd", x, o, *CAUSAL, "--param", f"scale={4 / np.sqrt(D)}", "--mode", "bf16")
        self.assertIn("scores_stored_in_bf16", names)

    def test_other_windows_than_the_declared_one_are_told(self):
        """One that was ignored, or that began where it should not."""
        x = self.operands()
        do = self.rng.standard_normal((B, H, S, D)).astype(np.float32).astype(np.float64)
        i, j = np.arange(S)[:, None], np.arange(S)[None, :]

        def named(left, right, *declared, gradient=None):
            seen = np.where((j >= i - left) & (j <= i + right), 0, -np.inf)
            out = attention(**x, head_map=lambda h: h, bias=seen, gradient=gradient)
            ports = ({"o": out["o"]}, "attention_fwd", x) if gradient is None else ({"dq": out["dq"]}, "attention_bwd", {**x, "do": do})
            return self.names(ports[1], ports[2], ports[0], "--param", "layout=bhsd", *declared)[0]

        declared = ["--param", "mask=causal", "--param", "window_left=16"]
        for gradient in (None, do):
            with self.subTest(gradient=gradient is not None):
                self.assertEqual(named(S, 0, *declared, gradient=gradient), "window_missing")
                for left in (8, 15, 17, 32, 40):
                    self.assertEqual(named(left, 0, *declared, gradient=gradient), f"window_left={left}")
        both = ["--param", "window_left=16", "--param", "window_right=16"]
        self.assertEqual(named(S, S, *both), "window_missing")
        self.assertEqual(named(S, 16, *both), "window_left=-1")
        self.assertEqual(named(16, S, *both), "window_right=-1")
        self.assertEqual(named(8, 8, *both), "window_left=8 + window_right=8")
        self.assertEqual(named(8, 8, *both, gradient=do), "window_left=8 + window_right=8")
        self.assertEqual(named(21, 11, *both), "window_left=21 + window_right=11")
        self.assertEqual(named(20, 9), "window_left=20 + window_right=9")

    def test_lengths_that_nobody_told_are_found(self):
        x = self.operands(bf16)
        seen = np.arange(S)[None, :] < np.array([S, 33])[:, None]
        bias = np.where(seen, 0, -np.inf)[:, None, None, :]
        o = {"o": bf16(attention(**x, head_map=lambda h: h, bias=bias)["o"])}
        found = self.diagnose("attention_fwd", x, o, "--param", "layout=bhsd", "--mode", "bf16", code=1)
        self.assertEqual(found["causes"][0]["name"], "keys_of_sequences", found)
        self.assertIn(f"{S}, 33 of {S}", found["causes"][0]["cause"])

    def test_scales_of_outputs_that_are_not_given_are_1(self):
        codes, numbers = zip(*(e4m3(x) for x in self.operands().values()))
        o, _ = e4m3(attention(*numbers, head_map=lambda h: h)["o"])
        formats = [argument for name in "qkvo" for argument in ("--dtype", f"{name}=fp8_e4m3")]
        arguments = ["attention_fwd", dict(zip("qkv", codes)), {"o": o}, "--param", "layout=bhsd", "--mode", "fp8_e4m3", *formats]
        found = self.diagnose(*arguments, code=0)
        self.assertTrue(any("taken as 1" in note and "o_scale" in note for note in found["notes"]), found["notes"])
        doubled, _ = e4m3(2 * attention(*numbers, head_map=lambda h: h)["o"])
        arguments[2] = {"o": doubled}
        self.assertIn("output_scaled=2", self.names(*arguments))

    def test_tokens_after_the_last_sequence_are_said(self):
        x = {name: self.rng.standard_normal((40, H, D)) for name in "qkv"}
        starts = np.array([0, 13, 39], np.int32)
        o = np.full((40, H, D), np.nan)
        for first, end in zip(starts, starts[1:]):
            part = {name: value[None, first:end].swapaxes(1, 2).astype(np.float32).astype(np.float64) for name, value in x.items()}
            o[first:end] = attention(**part, head_map=lambda h: h)["o"][0].swapaxes(0, 1)
        thd = ["--param", "layout=thd", "--param", "mask=padding"]
        found = self.diagnose("attention_fwd", {**x, "q_lengths": starts}, {"o": o}, *thd, code=0)
        self.assertIn("1 of the 40 tokens of q and 1 of the 40 tokens of k come after the last sequence: they are not judged",
                      found["notes"])
        falling = {**x, "q_lengths": np.array([0, 30, 20], np.int32)}
        done = self.run_cli(*self.arguments("attention_fwd", falling, {"o": o}, *thd), code=2)
        self.assertIn("q_lengths, which says where sequences begin, falls from 30 to 20 at [2]", done.stderr)

    def test_what_is_missing_is_asked_for_once(self):
        x = self.operands()
        mask = np.ones((B * H, S, S), np.uint8)
        done = self.run_cli(*self.arguments("attention_fwd", {**x, "dropout_mask": mask}, {"o": x["v"]}, "--param", "layout=bhsd"), code=2)
        self.assertIn("dropout_mask is given, and no tensor tells dropout", done.stderr)
        self.assertIn("--param dropout=NUMBER", done.stderr)
        codes = {name: np.zeros((S, H * D), np.uint8) for name in "qkvo"}
        formats = [argument for name in codes for argument in ("--dtype", f"{name}=fp8_e4m3")]
        arguments = ({name: codes[name] for name in "qkv"}, {"o": codes["o"], "lse": np.zeros((H, S), np.float32)})
        done = self.run_cli(*self.arguments("attention_fwd", *arguments, *formats), code=2)
        self.assertRegex(done.stderr, r"\(batches, heads.*: 1 unless --param says otherwise\)")
        del x["v"]
        done = self.run_cli(*self.arguments("attention_fwd", x, {"o": x["q"]}), code=2)
        self.assertEqual(done.stderr.count("v is missing"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
