"""False alarms: random clean activations and bias gradients on a simulated device, none of which may fail any gate.

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
MOST_ELEMENTS = 12000

PLAIN = ["gelu", "gelu_erf", "silu", "relu", "qgelu", "srelu"]
GATED = ["geglu", "swiglu", "reglu", "qgeglu", "sreglu", "clamped_swiglu"]
OUTPUTS = ["default", "default", "default", "fp32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2"]
DISTRIBUTIONS = ["normal"] * 3 + ["positive", "uniform", "constant", "large_mean", "log_uniform", "outliers", "exact"]
DISTRIBUTIONS += ["ties", "specials", "structured"]


def distribution(rng):
    name = rng.choice(DISTRIBUTIONS)
    inputs = {"distribution": name}
    if name in ("normal", "large_mean"):
        inputs["sigma"] = 2.0 ** rng.randint(-10, 10)
    if name == "large_mean":
        inputs["mean"] = rng.choice([-1, 1]) * 2.0 ** rng.randint(0, 14)
    if name == "log_uniform":
        inputs["low"], inputs["high"] = rng.choice([(-8, 8), (-60, 0), (-149, 127), (-20, 20)])
    if name == "constant":
        inputs["value"] = rng.choice([1, 0.1, -3, round(rng.uniform(-6, 6), 3)])
    if name == "specials":
        inputs["fraction"] = rng.choice([0.01, 0.3])
    return inputs


def random_shape(rng):
    hidden = rng.choice([rng.randint(1, 40), rng.randint(1, 300), 2 ** rng.randint(0, 9)])
    most = max(1, MOST_ELEMENTS // hidden)
    return {"rows": rng.choice([rng.randint(1, min(40, most)), rng.randint(1, most)]), "hidden": hidden}


def random_case(rng):
    op = rng.choice(["activation_fwd", "activation_bwd", "bias_grad"])
    params = random_shape(rng)
    ports = ["dy", "x"]
    if op == "bias_grad":
        params["fused"] = rng.choice(["none", "gelu", "silu", "relu", "qgelu", "srelu"])
        ports = ["dy"] if params["fused"] == "none" else ports
        has_output = params["fused"] != "none"
    else:
        params["kind"] = rng.choice(PLAIN + GATED)
        has_output = True
        if params["kind"] == "clamped_swiglu":
            params["limit"] = rng.choice([0.5, 7, 100])
            params["offset"] = rng.choice([0, 1])
    if has_output:
        params["output"] = rng.choice(OUTPUTS)
    inputs = distribution(rng)
    if op != "activation_fwd" and inputs["distribution"] != "exact" and rng.random() < 0.3:
        other = distribution(rng)
        if other["distribution"] != "exact":
            inputs[rng.choice(ports)] = other
    mode = rng.choice(["fp32", "bf16", "fp16"])
    return {"op": op, "mode": mode, "backend": "sim", "params": params, "inputs": inputs, "seed": rng.randint(0, 2**32)}


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
                # Zeros of relu, single elements and infinities may leave nothing that could be wrong.
                self.assertIn(result["status"], ("pass", "inconclusive"), about)
        self.assertGreater(counts["pass"], 0.7 * sum(counts.values()), counts)


if __name__ == "__main__":
    assert "TE_NUMCHECK" in os.environ
    unittest.main()
