"""What is told of tensors beside errors: the formats that their numbers need, and updates that rounding loses."""

import json
import pathlib
import random
import struct
import unittest

from faults import PlantsFaults
from support import SOURCE

SIM = "sim:sm_90"


def to_bf16(x):
    """To nearest even."""
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    bits += 0x7FFF + (bits >> 16 & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]


def share_lost(alpha, k, sigma):
    """Of BF16 weights of that sigma, those to which a normal update of alpha sqrt(k) adds nothing."""
    rng = random.Random(1)
    weights = [to_bf16(rng.gauss(0, sigma)) for _ in range(20000)]
    return sum(to_bf16(w + rng.gauss(0, alpha * k**0.5)) == w for w in weights) / len(weights)


class Formats(PlantsFaults):
    def records(self, plan):
        self.run_cli("run", plan, "--device", SIM, "--json", "report.json", "--no-save", code=None)
        return json.loads((self.folder / "report.json").read_text())["cases"]

    def cases(self, *cases):
        return self.records(self.plan(cases=list(cases)))

    def formats(self, mode, inputs=None, **params):
        case = {"op": "gemm", "mode": mode, "backend": "sim", "params": {"m": 32, "n": 48, "k": 64, **params},
                "inputs": inputs or {"distribution": "normal"}}
        (record,) = self.cases(case)
        return record["runs"][0]["formats"]

    def test_formats_that_numbers_need(self):
        fp32 = self.formats("fp32")
        self.assertEqual({port: (f["declared"], f["observed"]) for port, f in fp32.items()}, dict.fromkeys("abd", ("fp32", "fp32")))
        self.assertEqual(fp32["a"]["seen"], 32 * 64)
        self.assertGreater(fp32["a"]["below_bf16"], 0.99)
        checkpoint = self.formats("fp32", {"distribution": "normal", "b": {"distribution": "patterns", "format": "bf16"}})
        self.assertEqual((checkpoint["b"]["observed"], checkpoint["b"]["below_bf16"]), ("bf16", 0))
        self.assertEqual(checkpoint["a"]["observed"], "fp32")
        integers = self.formats("fp32", {"distribution": "exact"})
        self.assertIn(integers["a"]["observed"], ("fp8_e5m2", "fp8_e4m3"))
        fp8 = self.formats("fp8_e4m3", trans_b=True)
        self.assertEqual((fp8["a"]["declared"], fp8["a"]["observed"]), ("fp8_e4m3", "fp8_e4m3"))

    def test_nothing_is_seen_of_zeros(self):
        zeros = self.formats("fp32", {"distribution": "normal", "a": {"distribution": "constant", "value": 0}})
        self.assertEqual((zeros["a"]["observed"], zeros["a"]["seen"], zeros["a"]["below_bf16"]), ("", 0, 0))

    def test_large_tensors_are_seen_in_pieces(self):
        self.assertEqual(self.formats("fp32", m=300, n=512, k=512)["a"]["seen"], 65536)

    def test_outputs_that_hold_fewer_bits(self):
        case = {"op": "gemm", "mode": "fp32", "backend": "sim", "params": {"m": 32, "n": 48, "k": 64}, "inputs": {"distribution": "normal"}}
        self.run_cli("run", self.plan(cases=[case]), "--device", SIM, "--json", "report.json", "--no-save", "--inject", "bf16_output_in_fp32",
                     code=None)
        (record,) = json.loads((self.folder / "report.json").read_text())["cases"]
        self.assertEqual(record["runs"][0]["formats"]["d"]["observed"], "bf16")

    def test_the_shipped_plan(self):
        records = [r for r in self.records(pathlib.Path(SOURCE, "configs/plans/scenarios/param_dtype.json")) if r["backend"] == "sim"]
        self.assertEqual({r["status"] for r in records}, {"pass"}, [r["reason"] for r in records])
        for record in records:
            if "updates" in record["tags"]:
                params = record["params"]
                (found,) = [f for f in record["runs"][0]["outputs"]["d"]["findings"] if f["name"] == "updates lost"]
                expected = share_lost(params["alpha"], params["k"], 0.02) if params["output"] == "bf16" else 0
                self.assertAlmostEqual(found["measured"], expected, delta=0.15 * expected, msg=params)

    def test_where_nothing_is_added_nothing_is_lost(self):
        case = {"op": "gemm", "mode": "fp32", "backend": "sim", "params": {"m": 32, "n": 32, "k": 64, "beta": 1},
                "inputs": {"distribution": "normal", "a": {"distribution": "constant", "value": 0}}}
        (record,) = self.cases(case)
        self.assertNotIn("updates lost", [f["name"] for f in record["runs"][0]["outputs"]["d"]["findings"]])

    def test_a_plan_may_limit_lost_updates(self):
        params = {"m": 64, "n": 64, "k": 64, "alpha": 1e-4, "beta": 1}
        case = {"op": "gemm", "mode": "bf16", "backend": "sim", "params": params, "inputs": {"distribution": "normal"},
                "tolerance": {"statistics": {"updates lost": {"most": 0.5}}}}
        (record,) = self.cases(case)
        self.assertEqual(record["status"], "fail", record["reason"])
        self.assertIn("updates lost", record["reason"])
        (unmeasured,) = self.cases({**case, "params": {**params, "beta": 0}})
        self.assertIn("nothing of that name was measured", unmeasured["runs"][0]["outputs"]["d"]["criteria"][-1]["source"])


if __name__ == "__main__":
    unittest.main()
