"""te-numcheck diagnose: what attention's passes leave beside their outputs: statistics and maxima."""

import json
import struct
import unittest

try:
    import numpy as np
except ImportError:
    np = None

from support import CliTest
from test_diagnose_layouts import attention


@unittest.skipIf(np is None, "python3-numpy is not installed")
class DiagnoseStatistics(CliTest):
    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(5)
        shapes = {"q": (2, 4, 40, 16), "k": (2, 2, 40, 16), "v": (2, 2, 40, 16), "do": (2, 4, 40, 16)}
        self.given = {name: rng.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}

    def computed(self, dtype, o=None):
        """Gradients under a causal mask, with D from that o instead of the exact one."""
        x = {name: value.astype(np.float64) for name, value in self.given.items()}
        do = x.pop("do")
        forward = attention(**x, mask="causal")
        exact = attention(**x, mask="causal", gradient=do)
        if o is not None:
            # D enters ds as p D: what it is off by, times p, times keys and queries.
            off = ((o(forward["o"]) - forward["o"]) * do).sum(-1, keepdims=True)
            keys = x["k"][:, [h // 2 for h in range(4)]]
            s = np.where(np.tril(np.ones((40, 40), bool)), x["q"] @ keys.swapaxes(-1, -2) / 4, -np.inf)
            p = np.exp(s - forward["lse"][..., None])
            exact["dq"] = exact["dq"] - (p * off) @ keys / 4
            for h in range(4):
                exact["dk"][:, h // 2] -= (p * off)[:, h].swapaxes(-1, -2) @ x["q"][:, h] / 4
        return forward, {name: value.astype(dtype) for name, value in exact.items()}

    def diagnose(self, inputs, outputs, code):
        arguments = []
        for option, tensors in (("--in", inputs), ("--out", outputs)):
            for name, values in tensors.items():
                np.save(self.folder / f"{name}.npy", np.ascontiguousarray(values))
                arguments += [option, f"{name}={name}.npy"]
        done = self.run_cli("diagnose", "attention_bwd", *arguments, "--param", "mask=causal", "--param", "layout=bhsd", "--json", "-",
                            code=code)
        return json.loads(done.stdout) if code < 2 else done.stderr

    def test_row_sums_of_the_stored_o_are_right(self):
        forward, gradients = self.computed(np.float16, lambda o: o.astype(np.float16))
        saved = {"o": forward["o"].astype(np.float16), "lse": forward["lse"].astype(np.float32)}
        self.assertEqual(self.diagnose({**self.given, **saved}, gradients, 0)["verdict"], "correct")

    def test_row_sums_of_an_exact_o_are_told(self):
        forward, gradients = self.computed(np.float16)
        saved = {"o": forward["o"].astype(np.float16), "lse": forward["lse"].astype(np.float32)}
        found = self.diagnose({**self.given, **saved}, gradients, 1)
        self.assertEqual([cause["name"] for cause in found["causes"]], ["o_before_rounding"])

    def test_gradients_are_not_judged_without_the_o_that_they_follow_from(self):
        _, gradients = self.computed(np.float16, lambda o: o.astype(np.float16))
        done = self.diagnose(self.given, gradients, 2)
        self.assertIn("attention_bwd needs the tensor o (fp16), which the forward pass stored", done)

    def test_a_log_sum_exp_of_something_else_is_told(self):
        self.given = {name: value.astype(np.float32) for name, value in self.given.items()}
        forward, gradients = self.computed(np.float32)
        saved = {"o": forward["o"].astype(np.float32), "lse": (forward["lse"] / np.log(2)).astype(np.float32)}
        found = self.diagnose({**self.given, **saved}, gradients, 1)
        self.assertEqual([cause["name"] for cause in found["causes"]], ["statistics_of_other_inputs"])


class DiagnoseAmax(CliTest):
    # Scores of 8e6 say nothing of o, but an amax must be that of the codes beside it.
    CODE_448, CODE_384 = b"\x7e", b"\x7c"
    SCALE = 1.1431251764297485  # 448 of these are 512.12

    def save(self, queries, amax, keys=64):
        tensors = {name: ("F8_E4M3", (1, rows, 2, 32), code * (rows * 64))
                   for name, rows, code in (("q", queries, self.CODE_448), ("k", keys, self.CODE_448), ("v", keys, self.CODE_448),
                                            ("o", queries, self.CODE_384))}
        numbers = {"q_scale_inv": self.SCALE, "k_scale_inv": self.SCALE, "v_scale_inv": self.SCALE, "s_scale": 448,
                   "s_scale_inv": 1 / 448, "o_scale": 1 / self.SCALE, "o_amax": amax, "s_amax": 1 / 64}
        tensors.update({name: ("F32", (1, 1), struct.pack("<f", x)) for name, x in numbers.items()})
        header, data = {}, b""
        for name, (dtype, shape, numbers) in tensors.items():
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": (len(data), len(data) + len(numbers))}
            data += numbers
        text = json.dumps(header).encode()
        (self.folder / "t.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)

    def diagnose(self, code):
        done = self.run_cli("diagnose", "attention_fwd", "--mode", "fp8_e4m3", "--tensors", "t.safetensors", "--param", "scale=1",
                            "--json", "-", code=code)
        return json.loads(done.stdout)

    def test_queries_beyond_the_last_one_are_told_though_only_the_codes_show_them(self):
        self.save(queries=100, amax=512.12)
        found = self.diagnose(1)
        self.assertRegex(found["failing"], "^o_amax: amax of codes ")
        self.assertEqual([cause["name"] for cause in found["causes"]], ["queries_beyond_in_amax"])

    def test_their_sums_lose_what_the_accumulators_cut_off(self):
        # As cuDNN 9.14 and 9.19 had it on an H200 with 512 keys of one number: 0.9936225 of the mean of v.
        self.save(queries=100, amax=0.99362245 * 448 * self.SCALE, keys=512)
        self.assertEqual([cause["name"] for cause in self.diagnose(1)["causes"]], ["queries_beyond_in_amax"])
        self.save(queries=100, amax=0.9934 * 448 * self.SCALE, keys=512)
        self.assertEqual([cause["name"] for cause in self.diagnose(1)["causes"]], ["amax_too_large"])

    def test_full_tiles_have_none(self):
        self.save(queries=128, amax=512.12)
        self.assertEqual([cause["name"] for cause in self.diagnose(1)["causes"]], ["amax_too_large"])

    def test_the_largest_code_is_right(self):
        self.save(queries=100, amax=384 * self.SCALE)
        self.assertEqual(self.diagnose(4)["verdict"], "undecided")


if __name__ == "__main__":
    unittest.main()
