"""Maps of errors in the report: which outputs have them, how large they are, and that faults are seen in them."""

import json
import unittest

from support import CliTest

SIM = ["--device", "sim:sm_90", "--no-save"]
GOOD = set("0abcdefghi")


class Maps(CliTest):
    def output(self, *arguments, code, case=None):
        plan = self.plan(case={"mode": "bf16", "params": {"m": 256, "n": 192, "k": 64, "bias": True}, **(case or {})})
        self.run_cli("run", plan, *SIM, *arguments, "--json", "report.json", code=code)
        return self.report("report.json")["cases"][0]["runs"][0]["outputs"]["d"]

    def test_passing_outputs_have_a_map_only_on_request(self):
        self.assertNotIn("error_map", self.output(code=0))
        output = self.output("--maps", code=0)
        self.assertLessEqual(set("".join(output["error_map"]["worst"])), GOOD)
        self.assertNotIn("around_worst", output)

    def test_a_map_is_small_and_says_what_a_cell_covers(self):
        output = self.output("--inject", "missing_k_tail", code=1)
        area = output["error_map"]
        self.assertEqual([area[name] for name in ["rows", "cols", "cell_rows", "cell_cols"]], [256, 192, 8, 8])
        for name in ["worst", "mean"]:
            self.assertEqual([len(row) for row in area[name]], [24] * 32)
        self.assertLessEqual(len(json.dumps(area, indent=1)), 4096)
        self.assertGreater(area["mean_unit"], 0)

    def test_a_brief_report_has_none(self):
        self.output("--inject", "missing_k_tail", "--brief-json", "brief.json", code=1)
        self.assertNotIn("error_map", (self.folder / "brief.json").read_text())

    def test_a_stale_tile_is_a_block(self):
        area = self.output("--inject", "stale_tile", code=1)["error_map"]
        wrong = [(r, c) for r, row in enumerate(area["worst"]) for c, letter in enumerate(row) if letter not in GOOD]
        rows, columns = {r for r, _ in wrong}, {c for _, c in wrong}
        self.assertEqual((len(rows), len(columns), len(wrong)), (8, 8, 64))
        self.assertEqual(max(rows) - min(rows), 7)

    def test_an_unwritten_tile_is_told_from_a_wrong_one(self):
        area = self.output("--inject", "unwritten_tile", code=1)["error_map"]
        self.assertEqual("".join(area["worst"]).count("!"), 64)

    def test_swapped_rows_are_two_lines(self):
        area = self.output("--inject", "swapped_rows", code=1)["error_map"]
        lines = [r for r, row in enumerate(area["worst"]) if set(row) - GOOD]
        self.assertLessEqual(len(lines), 2)

    def test_a_missing_bias_is_stripes_down(self):
        mean = self.output("--inject", "bias_missing", code=1)["error_map"]["mean"]
        for column in range(24):
            levels = [ord(row[column]) for row in mean]
            self.assertLessEqual(max(levels) - min(levels), 2)
        self.assertGreater(len(set(mean[0])), 4)

    def test_a_transposed_output_is_mirrored_with_opposite_signs(self):
        case = {"params": {"m": 256, "n": 256, "k": 64}}
        mean = self.output("--inject", "transposed_output", code=1, case=case)["error_map"]["mean"]
        for r in range(32):
            self.assertEqual(mean[r][r], "m")
            for c in range(32):
                self.assertAlmostEqual(ord(mean[r][c]) + ord(mean[c][r]), 2 * ord("m"), delta=1)

    def test_the_window_holds_the_worst_element(self):
        output = self.output("--inject", "nan_written", code=1)
        window, worst = output["around_worst"], output["worst"][0]
        row, column = (worst["index"][i] - window["first"][i] for i in range(2))
        self.assertEqual(window["got"][row][column], "NaN")
        self.assertEqual(window["got_bits"][row][column], worst["got_bits"])
        self.assertAlmostEqual(window["expected"][row][column], worst["expected"])
        self.assertEqual([len(line) for line in window["got"]], [5] * 5)

    def test_a_large_output_has_cells_of_many_elements(self):
        area = self.output("--inject", "scale_1_01", code=1, case={"params": {"m": 1024, "n": 33, "k": 8}})["error_map"]
        self.assertEqual([area["cell_rows"], area["cell_cols"], len(area["worst"]), len(area["worst"][0])], [32, 2, 32, 17])


if __name__ == "__main__":
    unittest.main()
