"""False alarms: random clean softmax cases on a simulated device, none of which may fail any gate.

TE_NUMCHECK_SWEEP_CASES and TE_NUMCHECK_SWEEP_SEED choose another sweep than CI's."""

import json
import os
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "cli"))
from support import CliTest  # noqa: E402

CASES = int(os.environ.get("TE_NUMCHECK_SWEEP_CASES", "1000"))
SEED = int(os.environ.get("TE_NUMCHECK_SWEEP_SEED", "1"))
BATCH = 1000
MOST_ELEMENTS = 20000


def distribution(rng, op):
    names = ["normal", "normal", "positive", "uniform", "large_mean", "log_uniform", "outliers", "exact", "ties"]
    names += ["specials", "structured"]
    if op == "softmax_fwd":
        names.append("constant")  # the gradient of a constant is zero: what is left of it are roundings, all of them equal
    name = rng.choice(names)
    inputs = {"distribution": name}
    if name in ("normal", "large_mean"):
        inputs["sigma"] = 2.0 ** rng.randint(-10, 10)
    if name == "large_mean":
        inputs["mean"] = rng.choice([-1, 1]) * 2.0 ** rng.randint(0, 14)
    if name == "log_uniform":
        inputs["low"], inputs["high"] = rng.choice([(-8, 8), (-60, 0), (-149, 127), (-20, 20)])
    return inputs


def random_case(rng):
    sk = rng.choice([rng.randint(1, 40), rng.randint(1, 300), rng.randint(300, 5000), 2 ** rng.randint(0, 12)])
    rows = max(1, MOST_ELEMENTS // sk)
    batches, heads = rng.randint(1, 3), rng.randint(1, 3)
    params = {
        "batches": batches,
        "heads": heads,
        "sq": rng.randint(1, max(1, min(70, rows // (batches * heads)))),
        "sk": sk,
        "scale": rng.choice([1, 0.125, rng.choice([-1, 1]) * 2.0 ** rng.uniform(-6, 8)]),
        "mask": rng.choice(["none", "arbitrary", "causal", "causal_bottom_right"]),
        "masked_value": rng.choice(["te", "minus_infinity"]),
    }
    op = rng.choice(["softmax_fwd", "softmax_bwd"])
    if op == "softmax_fwd":
        params["scale_rounding"] = rng.choice(["as_implemented", "ideal"])
    return {
        "op": op,
        "mode": rng.choice(["fp32", "bf16", "fp16"]),
        "backend": "sim",
        "params": params,
        "inputs": distribution(rng, op),
        "seed": rng.randint(0, 2**32),
    }


class Sweep(CliTest):
    def test_no_clean_case_fails(self):
        rng = random.Random(SEED)
        counts = {}
        for first in range(0, CASES, BATCH):
            cases = [random_case(rng) for _ in range(min(BATCH, CASES - first))]
            plan = self.plan(cases=cases)
            self.run_cli("run", plan, "--device", "sim:sm_90", "--json", "report.json", "--no-save")
            for result in json.loads((self.folder / "report.json").read_text())["cases"]:
                counts[result["status"]] = counts.get(result["status"], 0) + 1
                about = f"{result['id']} seed {result['seed']}: {result.get('reason', '')}"
                # Rows of one element, masked rows and infinities may leave nothing that could be wrong.
                self.assertIn(result["status"], ("pass", "inconclusive"), about)
        self.assertGreater(counts["pass"], 0.7 * sum(counts.values()), counts)


if __name__ == "__main__":
    assert "TE_NUMCHECK" in os.environ
    unittest.main()
