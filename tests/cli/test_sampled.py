"""Products so large that only a sample of them is computed in full: every other element is still looked at."""

import unittest

from support import CliTest

SIM = ["--device", "sim:sm_90", "--no-save", "--json", "report.json"]
SAMPLED = ["--reference-flops", "1e6"]
WIDE = {"op": "gemm", "mode": "bf16", "params": {"m": 2048, "n": 2304, "k": 48}}
FP8 = {"op": "gemm", "mode": "fp8_e4m3", "params": {"m": 2048, "n": 2304, "k": 48, "output": "fp8_e4m3"}}


class SampledTest(CliTest):
    def failing(self, case, fault, code=1):
        """Names of the gates that fail."""
        arguments = ["--inject", fault] if fault else []
        self.run_cli("run", self.plan(case=case), *SIM, *SAMPLED, *arguments, code=code)
        [ran] = self.report("report.json")["cases"]
        [run] = ran["runs"]
        self.assertTrue(run["outputs"]["d"]["sampled"])
        return [c["name"] for c in run["outputs"]["d"]["criteria"] if not c["ok"]]

    def criterion(self, name):
        return next(c for c in self.report("report.json")["cases"][0]["runs"][0]["outputs"]["d"]["criteria"] if c["name"] == name)

    def test_a_clean_product_passes_with_errors_of_the_predicted_size(self):
        self.assertEqual(self.failing(WIDE, None, code=0), [])
        self.assertGreater(self.criterion("G2 block rms")["measured"], 0.5)
        self.assertLess(self.criterion("G2 block rms")["measured"], 1.2)
        self.assertEqual(self.criterion("G0 unwritten")["measured"], 0)

    def test_an_element_outside_the_sample(self):
        self.assertIn("G2 block max", self.failing(WIDE, "bit_flip"))
        self.assertIn("G0 pattern", self.failing(WIDE, "nan_written"))

    def test_a_tile_that_was_not_written_is_counted_in_full(self):
        self.assertIn("G0 unwritten", self.failing(WIDE, "unwritten_tile"))
        self.assertEqual(self.criterion("G0 unwritten")["measured"], 64 * 64)

    def test_c_bias_scales_and_batches_are_part_of_the_projection(self):
        for extra in ({"alpha": -0.5, "beta": 2, "bias": True}, {"batch": 2, "trans_a": True}, {"trans_b": True, "n": 2305}):
            with self.subTest(extra):
                case = {**WIDE, "params": {**WIDE["params"], **extra}}
                self.assertEqual(self.failing(case, None, code=0), [])
                self.assertIn("G2 block max", self.failing(case, "bit_flip"))

    def test_tf32_is_judged_by_operands_as_converted(self):
        case = {**WIDE, "mode": "tf32"}
        self.assertEqual(self.failing(case, None, code=0), [])
        self.assertLess(self.criterion("G2 block rms")["measured"], 1.2)
        self.assertIn("G2 block max", self.failing(case, "bit_flip"))

    def test_an_amax_is_that_of_all_elements(self):
        self.assertEqual(self.failing(FP8, None, code=0), [])
        self.assertLess(self.criterion("amax of all")["measured"], 0.9)
        self.assertEqual(self.failing(FP8, "stale_amax"), ["amax of all"])
        # As far off as the rounding of the output hides, and far beyond its largest number.
        for fault in ("perturb_amax=0.05", "perturb_amax=2"):
            with self.subTest(fault):
                self.assertEqual(self.failing(FP8, fault), ["amax of all"])

    def test_an_amax_of_zeros(self):
        """All elements are the largest, and more than are computed."""
        zeros = {**FP8, "inputs": {"distribution": "constant", "value": 0}}
        self.assertEqual(self.failing(zeros, None, code=4), [])
        self.assertEqual(self.criterion("amax of all")["measured"], 0)

    def test_the_option_refuses_what_is_no_number_of_operations(self):
        for text in ("0", "-1", "1e", "inf", "many", ""):
            with self.subTest(text):
                done = self.run_cli("run", self.plan(), *SIM, "--reference-flops=" + text, code=2)
                self.assertIn("--reference-flops", done.stderr)


if __name__ == "__main__":
    unittest.main()
