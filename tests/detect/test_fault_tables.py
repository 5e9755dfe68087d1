"""Every op of the catalog has at least five planted faults in the tables of test_*faults.py, which plant each of them and
see it caught by a gate that the table names."""

import collections
import importlib.util
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "cli"))
from support import CliTest  # noqa: E402

FEWEST = 5
# How a device may fail whatever it computes: such rows say nothing about an op's own checks.
MEMORY = {"bit_flip", "stale_tile", "unwritten_tile", "write_past_end", "nan_written", "race", "swapped_rows"}
MEMORY |= {"input_overwritten", "workspace_overrun", "last_row_stale"}


def tables():
    """The rows (fault, case, gates) of all scripts, by script."""
    found = {}
    for path in sorted(pathlib.Path(__file__).parent.glob("test_*faults.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found[path.name] = module.FAULTS
    return found


class Coverage(CliTest):
    def listed(self, what):
        return {entry["name"] for entry in json.loads(self.run_cli("list", what, "--json", code=0).stdout)}

    def test_five_faults_of_the_arithmetic_for_every_op(self):
        caught = collections.defaultdict(set)
        for rows in tables().values():
            for fault, case, _ in rows:
                caught[case["op"]].add(fault)
        ops = self.listed("ops")
        self.assertGreaterEqual(len(ops), 20)
        self.assertEqual(set(caught) - ops, set(), "cases of ops that are not in the catalog")
        for op in sorted(ops):
            with self.subTest(op):
                self.assertGreaterEqual(len(caught[op] - MEMORY), FEWEST, f"{op}: {sorted(caught[op])}")

    def test_every_row_names_a_fault_and_a_gate(self):
        faults = self.listed("faults")
        for script, rows in tables().items():
            self.assertTrue(rows, script)
            for fault, case, gates in rows:
                with self.subTest(script=script, fault=fault, op=case["op"]):
                    self.assertIn(fault, faults)
                    self.assertTrue(gates)
                    self.assertEqual(case["backend"], "sim")


if __name__ == "__main__":
    assert "TE_NUMCHECK" in os.environ
    unittest.main()
