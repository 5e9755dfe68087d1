"""te-numcheck diagnose: which of tied experts are chosen is what the given outputs say, whichever of them are given."""

import math
import unittest

from support import CliTest
from test_diagnose import f32, safetensors

TOKENS, EXPERTS, TOPK = 5, 4, 2
CHOSEN = [(0, 1), (2, 3), (1, 3), (0, 2), (1, 2)]  # of equal logits


class DiagnoseTies(CliTest):
    def verdict(self, code=0, **outputs):
        logits = [1.0] * (TOKENS * EXPERTS)
        of = {"probs": ("F32", [TOKENS, EXPERTS]), "routing_map": ("U8", [TOKENS, EXPERTS])}
        safetensors(self.folder / "t.safetensors", {
            "logits": ("F32", [TOKENS, EXPERTS], logits), **{name: (*of[name], outputs[name]) for name in outputs}})
        return self.run_cli("diagnose", "router_topk", "--tensors", "t.safetensors", "--param", f"topk={TOPK}",
                            code=code).stdout

    def outputs(self, weight=1 / EXPERTS):
        chosen = [[expert in experts for expert in range(EXPERTS)] for experts in CHOSEN]
        flat = [one for row in chosen for one in row]
        return {"probs": [f32(weight) if one else 0.0 for one in flat], "routing_map": [int(one) for one in flat]}

    def test_whichever_outputs_are_given(self):
        outputs = self.outputs()
        self.assertIn("probs is correct", self.verdict(**outputs))
        self.assertIn("probs is correct", self.verdict(probs=outputs["probs"]))
        self.assertIn("routing_map is correct", self.verdict(routing_map=outputs["routing_map"]))

    def test_wrong_weights_of_tied_experts(self):
        outputs = self.outputs(math.nextafter(0.25, 1) * 1.001)
        self.assertIn("probs is wrong", self.verdict(code=1, **outputs))
        self.assertIn("probs is wrong", self.verdict(code=1, probs=outputs["probs"]))

    def test_weights_and_map_of_different_choices(self):
        outputs = self.outputs()
        outputs["routing_map"] = outputs["routing_map"][EXPERTS:] + outputs["routing_map"][:EXPERTS]
        self.assertIn("is wrong", self.verdict(code=1, **outputs))


if __name__ == "__main__":
    unittest.main()
