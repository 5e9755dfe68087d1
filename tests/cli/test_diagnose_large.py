"""te-numcheck diagnose: large cases are tried on a part, within a time, and what there was no time for is said."""

import json
import time
import unittest

try:
    import numpy as np
except ImportError:
    np = None

from support import CliTest


@unittest.skipIf(np is None, "python3-numpy is not installed")
class DiagnoseLarge(CliTest):
    def attention(self, scale, noise=0.0):
        """FP32 attention of 16 heads and 768 positions, [b, h, s, d], computed with that scale."""
        rng = np.random.default_rng(3)
        q, k, v = (rng.standard_normal((2, 16, 768, 32)).astype(np.float32) for _ in range(3))
        s = scale * (q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2))
        p = np.exp(s - s.max(-1, keepdims=True))
        o = p / p.sum(-1, keepdims=True) @ v
        o *= 1 + noise * rng.standard_normal(o.shape)
        arguments = ["diagnose", "attention_fwd", "--param", "layout=bhsd", "--json", "-"]
        for name, values in {"q": q, "k": k, "v": v, "o": o}.items():
            np.save(self.folder / f"{name}.npy", values.astype(np.float32))
            arguments += ["--out" if name == "o" else "--in", f"{name}={name}.npy"]
        return arguments

    def test_the_cause_of_large_attention_is_found_on_a_part(self):
        found = json.loads(self.run_cli(*self.attention(0.25), code=1).stdout)
        self.assertEqual(found["causes"][0]["name"], "scale=0.25")
        self.assertLess(found["causes"][0]["of"], 2 * 16 * 768 * 32 / 4)  # elements that were compared
        self.assertEqual(found["not_tried"], [])

    def test_what_there_is_no_time_for_is_said(self):
        started = time.monotonic()
        found = json.loads(self.run_cli(*self.attention(32**-0.5, noise=1e-3), "--effort", "quick", code=1).stdout)
        self.assertLess(time.monotonic() - started, 60)
        self.assertEqual(found["causes"], [])
        self.assertGreater(len(found["excluded"]) + len(found["not_tried"]), 60)


if __name__ == "__main__":
    unittest.main()
