"""te-numcheck diagnose: what attention's backward pass reads of the forward pass."""

import json
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


if __name__ == "__main__":
    unittest.main()
