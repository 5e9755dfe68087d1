"""te-numcheck diagnose: tensors with the dimensions that people have them in, attention's in every layout."""

import json
import unittest

try:
    import numpy as np
except ImportError:
    np = None

from support import CliTest

B, H, KV, SQ, SK, D = 2, 4, 2, 24, 40, 16
AXES = {"bshd": (0, 2, 1, 3), "bhsd": (0, 1, 2, 3), "sbhd": (2, 0, 1, 3)}  # of tensors [b, h, s, d]


def softmax(s):
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True)


def visible(sq, sk, mask):
    i, j = np.arange(sq)[:, None], np.arange(sk)[None, :]
    offset = {"none": sk, "causal": 0, "causal_bottom_right": sk - sq}[mask]
    return j <= i + offset


def attention(q, k, v, mask="none", scale=None, head_map=lambda h: h // (H // KV), gradient=None, bias=0):
    """[b, h, s, d] in doubles: o, lse, or, with a gradient of o, dq, dk, dv."""
    scale = 1 / np.sqrt(np.float64(q.shape[-1])) if scale is None else scale
    maps = [head_map(h) for h in range(q.shape[1])]
    keys, values = k[:, maps], v[:, maps]
    s = np.where(visible(q.shape[2], k.shape[2], mask), scale * q @ keys.swapaxes(-1, -2) + bias, -np.inf)
    p = softmax(s)
    o = p @ values
    lse = np.log(np.exp(s - s.max(-1, keepdims=True)).sum(-1)) + s.max(-1)
    if gradient is None:
        return {"o": o, "lse": lse}
    ds = p * (gradient @ values.swapaxes(-1, -2) - (gradient * o).sum(-1, keepdims=True))
    dk, dv = np.zeros_like(k), np.zeros_like(v)
    for h, key_head in enumerate(maps):
        dk[:, key_head] += scale * ds[:, h].swapaxes(-1, -2) @ q[:, h]
        dv[:, key_head] += p[:, h].swapaxes(-1, -2) @ gradient[:, h]
    return {"dq": scale * ds @ keys, "dk": dk, "dv": dv}


@unittest.skipIf(np is None, "python3-numpy is not installed")
class DiagnoseLayouts(CliTest):
    def setUp(self):
        super().setUp()
        self.rng = np.random.default_rng(7)

    def normal(self, *shape):
        return self.rng.standard_normal(shape).astype(np.float32).astype(np.float64)

    def save(self, inputs, outputs):
        arguments = []
        for option, tensors in (("--in", inputs), ("--out", outputs)):
            for name, values in tensors.items():
                values = np.asarray(values)
                np.save(self.folder / f"{name}.npy", np.ascontiguousarray(values if values.dtype.kind == "i" else values.astype(np.float32)))
                arguments += [option, f"{name}={name}.npy"]
        return arguments

    def diagnose(self, op, inputs, outputs, *more, code):
        done = self.run_cli("diagnose", op, *self.save(inputs, outputs), *more, "--effort", "quick", "--json", "-", code=code)
        return json.loads(done.stdout)

    def test_a_window_from_the_other_corner_is_told(self):
        x = self.operands()
        i, j = np.arange(SQ)[:, None], np.arange(SK)[None, :]
        window = np.where((j >= i - 4) & (j <= i + 20), 0, -np.inf)
        found = self.diagnose("attention_fwd", self.in_layout("bhsd", x), {"o": attention(**x, bias=window)["o"]},
                              "--param", "layout=bhsd", "--param", "window_left=4", "--param", "window_right=20", code=1)
        self.assertEqual(found["causes"][0]["name"], "window_from_top_left")

    def operands(self, sq=SQ, sk=SK, h=H, kv=KV, b=B):
        return {"q": self.normal(b, h, sq, D), "k": self.normal(b, kv, sk, D), "v": self.normal(b, kv, sk, D)}

    @staticmethod
    def in_layout(layout, tensors):
        return {name: value if name == "lse" else value.transpose(AXES[layout]) for name, value in tensors.items()}

    def says_layout(self, found, layout):
        self.assertTrue(any(note.startswith(f"layout = {layout}") for note in found["notes"]), found["notes"])

    def causes(self, found):
        self.assertEqual(found["verdict"], "wrong", found)
        return [cause["name"] for cause in found["causes"]]

    def test_right_results_are_correct_in_every_layout(self):
        for layout in AXES:
            for mask in ("none", "causal", "causal_bottom_right"):
                with self.subTest(layout=layout, mask=mask):
                    given = self.operands()
                    right = attention(**given, mask=mask)
                    inputs, outputs = self.in_layout(layout, given), self.in_layout(layout, right)
                    found = self.diagnose("attention_fwd", inputs, outputs, "--param", f"mask={mask}", code=0)
                    self.says_layout(found, layout)

    def test_wrong_results_are_named_in_every_layout(self):
        for layout in AXES:
            with self.subTest(layout=layout):
                given = self.operands()
                inputs = self.in_layout(layout, given)
                wrong = {
                    "scale=1": ("none", attention(**given, scale=1)),
                    "mask=causal": ("causal_bottom_right", attention(**given, mask="causal")),
                    "head_map_rotated": ("none", attention(**given, head_map=lambda h: h % KV)),
                }
                for name, (mask, result) in wrong.items():
                    found = self.diagnose("attention_fwd", inputs, self.in_layout(layout, {"o": result["o"]}), "--param", f"mask={mask}", code=1)
                    self.says_layout(found, layout)
                    self.assertIn(name, self.causes(found))

    def test_gradients_in_every_layout(self):
        for layout in AXES:
            with self.subTest(layout=layout):
                given = self.operands()
                gradient = self.normal(B, H, SQ, D)
                inputs = self.in_layout(layout, {**given, "do": gradient})
                right = attention(**given, gradient=gradient)
                for names in (("dq", "dk", "dv"), ("dv",), ("dk",)):
                    outputs = self.in_layout(layout, {name: right[name] for name in names})
                    self.says_layout(self.diagnose("attention_bwd", inputs, outputs, code=0), layout)
                wrong = attention(**given, scale=1, gradient=gradient)
                found = self.diagnose("attention_bwd", inputs, self.in_layout(layout, {"dq": wrong["dq"]}), code=1)
                self.says_layout(found, layout)

    def test_where_all_sizes_are_equal_the_numbers_decide(self):
        given = self.operands(sq=6, sk=6, h=6, kv=6, b=6)
        right = attention(**given, head_map=lambda h: h)
        for layout in AXES:
            with self.subTest(layout=layout):
                inputs, outputs = self.in_layout(layout, given), self.in_layout(layout, {"o": right["o"]})
                found = self.diagnose("attention_fwd", inputs, outputs, code=0)
                self.says_layout(found, layout)
                self.assertIn("as well, and the numbers fit only this", found["notes"][0])
                found = self.diagnose("attention_fwd", inputs, outputs, "--param", f"layout={layout}", code=0)
                self.assertNotIn("as well", found["notes"][0])
                other = "bhsd" if layout != "bhsd" else "bshd"
                self.diagnose("attention_fwd", inputs, outputs, "--param", f"layout={other}", code=1)

    def test_statistics_in_the_orders_that_libraries_have(self):
        given = self.operands()
        right = attention(**given)
        inputs = self.in_layout("bshd", given)
        o = right["o"].transpose(AXES["bshd"])
        lse = right["lse"]
        for order in (lse, lse[..., None], lse.transpose(0, 2, 1), lse.reshape(B * H, SQ)):
            with self.subTest(shape=order.shape):
                self.says_layout(self.diagnose("attention_fwd", inputs, {"o": o, "lse": order}, code=0), "bshd")
        found = self.diagnose("attention_fwd", inputs, {"o": o.reshape(B, SQ, H * D), "lse": lse / np.log(2)}, code=1)
        self.assertEqual(found["output"], "lse")

    def test_sequences_one_after_another(self):
        lengths, keys = [5, 9, 1, 12], [7, 9, 3, 12]
        parts = [self.operands(sq=n, sk=m, b=1) for n, m in zip(lengths, keys)]

        def joined(tensors, name):
            return np.concatenate([one[name][0].swapaxes(0, 1) for one in tensors])

        for mask in ("none", "causal_bottom_right"):
            right = [attention(**one, mask=mask) for one in parts]
            inputs = {name: joined(parts, name) for name in "qkv"}
            o, lse = joined(right, "o"), np.concatenate([one["lse"][0].T for one in right])
            starts = {"q_lengths": np.cumsum([0, *lengths]).astype(np.int32), "kv_lengths": np.cumsum([0, *keys]).astype(np.int32)}
            counts = {"q_lengths": np.array(lengths, np.int64), "kv_lengths": np.array(keys, np.int64)}
            padding = ["--param", "mask=padding" + ("" if mask == "none" else "_causal_bottom_right")]
            for given, statistic in ((starts, lse), (counts, lse.T), (counts, lse[..., None])):
                with self.subTest(mask=mask, lse=statistic.shape):
                    found = self.diagnose("attention_fwd", {**inputs, **given}, {"o": o, "lse": statistic}, *padding, code=0)
                    self.says_layout(found, "thd")
            wrong = joined([attention(**one, mask=mask, scale=1) for one in parts], "o")
            self.assertIn("scale=1", self.causes(self.diagnose("attention_fwd", {**inputs, **starts}, {"o": wrong}, *padding, code=1)))

    def test_one_sequence_without_lengths(self):
        given = self.operands(b=1)
        right = attention(**given)
        tokens = {name: value[0].swapaxes(0, 1) for name, value in given.items()}
        found = self.diagnose("attention_fwd", tokens, {"o": right["o"][0].swapaxes(0, 1)}, code=0)
        self.says_layout(found, "thd")

    def test_heads_and_channels_in_one_dimension(self):
        given = self.operands(kv=H)
        right = attention(**given, head_map=lambda h: h)
        folded = {name: value.transpose(AXES["bshd"]).reshape(B, -1, H * D) for name, value in {**given, "o": right["o"]}.items()}
        o = {"o": folded.pop("o")}
        self.says_layout(self.diagnose("attention_fwd", folded, o, "--param", f"heads={H}", code=0), "bshd")

    def test_fortran_order(self):
        given = self.operands()
        right = attention(**given)["o"].transpose(AXES["bshd"])
        inputs = self.in_layout("bshd", given)
        arguments = self.save(inputs, {"o": right})
        for name, value in {**inputs, "o": right}.items():
            np.save(self.folder / f"{name}.npy", np.asfortranarray(value.astype(np.float32)))
        done = self.run_cli("diagnose", "attention_fwd", *arguments, "--json", "-", code=0)
        self.says_layout(json.loads(done.stdout), "bshd")

    def test_what_fits_no_layout_is_said(self):
        given = self.in_layout("bshd", self.operands())
        given["v"] = given["v"][:, :-1]
        arguments = self.save(given, {"o": given["q"]})
        done = self.run_cli("diagnose", "attention_fwd", *arguments, code=2)
        self.assertIn("as bshd k has 40 keys, and v 39", done.stderr)
        lengths = {"q_lengths": np.array([3, 4], np.int32), "kv_lengths": np.array([3, 5], np.int32)}
        tokens = {name: self.normal(7, H, D) for name in "qkv"}
        done = self.run_cli("diagnose", "attention_fwd", *self.save({**tokens, **lengths}, {"o": tokens["q"]}), code=2)
        self.assertIn("k has 7 tokens, and the lengths add up to 8", done.stderr)

    def test_other_ops_with_dimensions_in_front(self):
        x, gamma, beta = self.normal(3, 5, 64), self.normal(64), self.normal(64)
        y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gamma + beta
        self.diagnose("layernorm_fwd", {"x": x, "gamma": gamma, "beta": beta}, {"y": y}, code=0)
        y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, ddof=1, keepdims=True) + 1e-5) * gamma + beta
        self.assertIn("bessel", self.causes(self.diagnose("layernorm_fwd", {"x": x, "gamma": gamma, "beta": beta}, {"y": y}, code=1)))
        r = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * gamma
        self.diagnose("rmsnorm_fwd", {"x": x, "gamma": gamma}, {"y": r}, code=0)
        centred = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gamma
        self.assertIn("layernorm_for_rmsnorm", self.causes(self.diagnose("rmsnorm_fwd", {"x": x, "gamma": gamma}, {"y": centred}, code=1)))
        self.assertIn("rmsnorm_for_layernorm",
                      self.causes(self.diagnose("layernorm_fwd", {"x": x, "gamma": gamma, "beta": beta}, {"y": r + beta}, code=1)))
        gate, value = x[..., 0::2], x[..., 1::2]
        y = gate / (1 + np.exp(-gate)) * value
        found = self.diagnose("activation_fwd", {"x": x}, {"y": y}, "--param", "kind=swiglu", code=1)
        self.assertIn("x_interleaved", self.causes(found))
        scores = self.normal(2, 3, 12, 20)
        self.diagnose("softmax_fwd", {"x": scores}, {"y": softmax(0.25 * scores)}, "--param", "scale=0.25", code=0)
        masked = softmax(np.where(visible(12, 20, "causal"), scores, -np.inf))
        self.assertIn("mask=causal", self.causes(self.diagnose("softmax_fwd", {"x": scores}, {"y": masked}, code=1)))
        a, w, bias = self.normal(3, 10, 48), self.normal(24, 48), self.normal(24)
        self.diagnose("gemm", {"a": a, "b": w, "bias": bias}, {"d": a @ w.T + bias}, code=0)
        self.assertIn("bias=false", self.causes(self.diagnose("gemm", {"a": a, "b": w, "bias": bias}, {"d": a @ w.T}, code=1)))
        stacked = self.normal(2, 3, 48, 24)
        self.diagnose("gemm", {"a": self.normal(2, 3, 10, 48), "b": stacked}, {"d": np.zeros((2, 3, 10, 24))}, code=1)
        left = self.normal(2, 3, 10, 48)
        self.diagnose("gemm", {"a": left, "b": stacked}, {"d": left @ stacked}, code=0)
        dy = self.normal(3, 5, 64)
        self.diagnose("bias_grad", {"dy": dy}, {"dbias": dy.reshape(-1, 64).sum(0)}, code=0)

    def test_tokens_after_the_last_sequence(self):
        parts = [self.operands(sq=n, sk=n, b=1) for n in (9, 5)]
        inputs = {name: np.concatenate([*(one[name][0].swapaxes(0, 1) for one in parts), self.normal(6, KV if name != "q" else H, D)])
                  for name in "qkv"}
        o = np.concatenate([*(attention(**one)["o"][0].swapaxes(0, 1) for one in parts), self.normal(6, H, D)])
        starts = np.array([0, 9, 14], np.int32)
        given = {**inputs, "q_lengths": starts, "kv_lengths": starts}
        self.says_layout(self.diagnose("attention_fwd", given, {"o": o}, "--param", "mask=padding", code=0), "thd")

    def test_numbers_tell_where_a_bias_is_added(self):
        given = self.operands()
        bias = self.normal(H, SQ, SK)
        inputs = {**self.in_layout("bshd", given), "bias": bias}
        for added, name in ((bias, "post_scale"), (bias / np.sqrt(D), "pre_scale")):
            o = attention(**given, bias=added)["o"].transpose(AXES["bshd"])
            found = self.diagnose("attention_fwd", inputs, {"o": o}, code=0)
            self.assertEqual([note.split(":")[0] for note in found["notes"] if note.startswith("bias")], [f"bias = {name}"])
            self.diagnose("attention_fwd", inputs, {"o": o}, "--param", "bias=" + ("pre_scale" if name == "post_scale" else "post_scale"), code=1)

    def test_a_bias_that_all_heads_share(self):
        given, bias = self.operands(), self.normal(SQ, SK)
        o = attention(**given, bias=bias)["o"].transpose(AXES["bshd"])
        for shape in ((1, 1, SQ, SK), (SQ, SK)):
            inputs = {**self.in_layout("bshd", given), "bias": bias.reshape(shape)}
            self.diagnose("attention_fwd", inputs, {"o": o}, "--param", "bias=post_scale", code=0)

    def test_keys_at_the_end_that_are_left_out(self):
        given = self.operands(sk=75)
        for count in (1, 11):  # 75 = 64 + 11
            short = {name: value[:, :, :75 - count] if name in "kv" else value for name, value in given.items()}
            outputs = {"o": attention(**short)["o"].transpose(AXES["bshd"])}
            found = self.diagnose("attention_fwd", self.in_layout("bshd", given), outputs, code=1)
            self.assertIn(f"last_keys_left_out={count}", self.causes(found))

    def test_exchanged_gradients(self):
        given, gradient = self.operands(), self.normal(B, H, SQ, D)
        right = attention(**given, gradient=gradient)
        inputs = self.in_layout("bhsd", {**given, "do": gradient})
        outputs = self.in_layout("bhsd", {"dq": right["dq"], "dk": right["dv"], "dv": right["dk"]})
        found = self.diagnose("attention_bwd", inputs, outputs, "--param", "layout=bhsd", code=1)
        self.assertIn("dk_and_dv_exchanged", self.causes(found))

    def test_scales_that_are_missing_or_none_are_said(self):
        codes = {name: self.rng.integers(0x28, 0x40, (32, 32), np.uint8) for name in "ab"}  # of E4M3, all normal
        a, b = (2.0 ** ((x >> 3) - 7.0) * (1 + (x & 7) / 8) for x in codes.values())
        formats = ["--dtype", "a=fp8_e4m3", "--dtype", "b=fp8_e4m3", "--mode", "fp8_e4m3", "--param", "output=fp32"]
        for name, value in {**codes, "d": (a @ b).astype(np.float32), "scale": np.float32([0])}.items():
            np.save(self.folder / f"{name}.npy", value)
        arguments = ["diagnose", "gemm", "--in", "a=a.npy", "--in", "b=b.npy", "--out", "d=d.npy", *formats, "--json", "-"]
        found = json.loads(self.run_cli(*arguments, code=0).stdout)
        self.assertIn("not given, and taken as 1: a_scale_inv, b_scale_inv", found["notes"])
        found = json.loads(self.run_cli(*arguments, "--in", "a_scale_inv=scale.npy", code=1).stdout)
        self.assertIn("a_scale_inv is 0, which is not a scale: those are positive and finite", found["notes"])

    def test_a_factor_says_every_size_that_it_may_be(self):
        given = self.operands(b=4)
        gradient = self.normal(4, H, SQ, D)
        dq = attention(**given, gradient=gradient)["dq"] * 4  # without the softmax scale, 1 / sqrt(16)
        inputs = self.in_layout("bhsd", {**given, "do": gradient})
        found = self.diagnose("attention_bwd", inputs, {"dq": dq}, "--param", "layout=bhsd", code=1)
        self.assertIn("which is batches or sqrt(d)", found["causes"][0]["cause"])

    def test_elements_that_are_right_by_accident_are_no_cause(self):
        def in_bf16(x):
            bits = np.asarray(x, np.float32).view(np.uint32)
            return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)

        shapes = {"q": (B, H, 40, 32), "k": (B, KV, 56, 32), "v": (B, KV, 56, 32)}
        given = {name: in_bf16(self.normal(*shape)) for name, shape in shapes.items()}
        exact = {name: value.astype(np.float64) for name, value in given.items()}
        wrong = in_bf16(attention(exact["q"], np.roll(exact["k"], 5, axis=2), exact["v"])["o"])
        inputs, outputs = self.in_layout("bshd", given), self.in_layout("bshd", {"o": wrong})
        arguments = [*self.save(inputs, outputs), "--param", "layout=bshd", "--mode", "bf16", "--json", "-"]
        found = json.loads(self.run_cli("diagnose", "attention_fwd", *arguments, code=1).stdout)
        self.assertEqual(found["causes"], [])


if __name__ == "__main__":
    unittest.main()
