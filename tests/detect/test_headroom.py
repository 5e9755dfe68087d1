"""The table of headroom: which gates of which outputs, and what it says of limits that nothing comes near."""

import unittest

from headroom import Headroom


def result(status, dtype, *gates, output="d"):
    criteria = [{"name": name, "measured": measured, "limit": limit} for name, measured, limit in gates]
    return {"status": status, "runs": [{"outputs": {output: {"dtype": dtype, "criteria": criteria}}}]}


class Table(unittest.TestCase):
    def rows(self, *results):
        found = Headroom()
        for one in results:
            found.add(one)
        return list(found.table())[2:]

    def test_smallest_and_median_by_gate_and_format(self):
        rows = self.rows(result("pass", "fp32", ("G2 rms", 1, 4)), result("pass", "fp32", ("G2 rms", 2, 4)),
                         result("pass", "fp32", ("G2 rms", 0.01, 4)), result("pass", "bf16", ("G2 rms", 1, 3)))
        self.assertEqual(rows, ["| G2 rms | 16 bits | 1 | 3.00 | 3.00 |", "| G2 rms | FP32 | 3 | 2.00 | 4.00 |"])

    def test_what_measures_nothing_has_no_end_of_headroom(self):
        self.assertEqual(self.rows(result("pass", "fp8_e4m3", ("lattice", 0.0, 0.1))), ["| lattice | 8 bits | 1 | ∞ | ∞ |"])

    def test_statistics_and_amax_have_rows_of_their_own(self):
        rows = self.rows(*(result("pass", "fp32", ("G2 max", 1, 5), output=output) for output in ("mu", "rsigma", "y_amax", "y")))
        self.assertEqual([row.split(" | ")[1] for row in rows], ["FP32", "amax", "mu", "rsigma"])

    def test_only_limits_of_clean_cases_count(self):
        self.assertEqual(self.rows(result("fail", "fp32", ("G2 rms", 1, 4)), result("pass", "uint8", ("G2 rms", 1, 4)),
                                   result("pass", "fp32", ("G0 pattern", 0, 0), ("G3 slope", 1, "Infinity"))), [])


if __name__ == "__main__":
    unittest.main()
