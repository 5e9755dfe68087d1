"""The files in ops/ are complete: every op of the catalog has at least five planted faults and draws clean cases; every
fault that can be planted in an op has a row."""

import collections
import json
import pathlib
import unittest

import families
import own_kernel_paths
from faults import PlantsFaults

FEWEST = 5
PRODUCTS = {"gemm", "grouped_gemm"}
# Faults of a device that do not depend on the op: such rows say nothing about an op's own checks.
MEMORY = {"bit_flip", "stale_tile", "unwritten_tile", "write_past_end", "nan_written", "race", "swapped_rows"}
MEMORY |= {"all_nan", "all_seven", "all_zero", "signs_flipped", "negative_zero", "nan_payload"}
MEMORY |= {"inf_written", "element_zero", "element_negated", "neighbour_copied"}
MEMORY |= {"input_overwritten", "workspace_overrun", "last_row_stale"}
# Faults that no gate catches, with tests of their own: they break the device or end in an error.
ELSEWHERE = {"illegal_address": "gpu/test_containment.py", "late_refusal": "cli/test_known.py"}
ELSEWHERE |= {"negative_zero": "detect/test_bits.py", "nan_payload": "detect/test_bits.py"}
# Faults of any size are in no table: how small they may be has a table of its own.
ELSEWHERE |= {f"perturb_{part}": "detect/test_sensitivity.py" for part in ("all", "noise", "row", "tile", "element", "mu", "rsigma", "amax")}


def planted():
    """By op, the names of the faults in the tables."""
    faults = collections.defaultdict(set)
    for row in families.every_row():
        faults[row.case["op"]].add(row.fault)
    return faults


class Coverage(PlantsFaults):
    def listed(self, what):
        return {entry["name"] for entry in json.loads(self.run_cli("list", what, "--json", code=0).stdout)}

    def test_five_faults_of_the_arithmetic_for_every_op(self):
        ops, faults = self.listed("ops"), planted()
        self.assertGreaterEqual(len(ops), 20)
        self.assertEqual(set(faults) - ops, set(), "cases of ops that are not in the catalog")
        for op in sorted(ops):
            with self.subTest(op):
                self.assertGreaterEqual(len(faults[op] - MEMORY), FEWEST, f"{op}: {sorted(faults[op])}")

    def test_clean_cases_for_every_op(self):
        owners = [op for name in families.names() for op in families.load(name).CLEAN]
        self.assertEqual(sorted(owners), sorted(self.listed("ops")))

    def test_paths_of_every_own_kernel(self):
        own = {op["name"] for op in json.loads(self.run_cli("list", "ops", "--json", code=0).stdout)
               if "cuda" in op["backends"]}
        self.assertGreaterEqual(len(own), 20)
        path = self.folder / "paths.json"
        path.write_text(json.dumps(own_kernel_paths.plan()))
        cases = json.loads(self.run_cli("list", "cases", path, "--json", code=0).stdout)
        self.assertEqual({case["id"].split("/")[0] for case in cases}, own)
        self.assertEqual({case["id"].split("/")[-1] for case in cases}, {"cuda"})

    def test_every_row_names_a_fault_and_a_gate(self):
        faults = self.listed("faults")
        for name in families.names():
            self.assertTrue(families.rows(name), name)
            for row in families.rows(name):
                with self.subTest(family=name, fault=row.fault, op=row.case["op"]):
                    self.assertIn(row.fault, faults)
                    self.assertTrue(row.gates)
                    self.assertNotIn(row.blind_to, row.gates)
                    self.assertEqual(row.case["backend"], "sim")

    def accepting_ops(self, fault, cases):
        """The ops that the fault can be planted in, though perhaps not in these cases."""
        results = self.run_cases(cases, "sim:sm_90", "--inject", fault, code=None).values()
        return {result["op"] for result in results if not result["reason"].endswith("has no such fault")}

    def test_no_fault_is_forgotten(self):
        faults, cases = planted(), {}
        for row in families.every_row():
            cases.setdefault(row.case["op"], row.case)
        ever = set().union(*faults.values())
        missing = self.listed("faults") - ever - set(ELSEWHERE)
        self.assertEqual(missing, set(), "no table has them")
        for fault in sorted(ever):
            takers = self.accepting_ops(fault, cases.values())
            # Faults that every op but products accept are planted by shared code: memory and stores.
            shared = takers >= set(cases) - PRODUCTS
            for op in takers & {"gemm"} if shared else takers:
                with self.subTest(fault=fault, op=op):
                    self.assertIn(fault, faults[op])

    def test_the_tests_elsewhere_are_there(self):
        for fault, path in ELSEWHERE.items():
            self.assertIn(f'"{fault}"', (pathlib.Path(__file__).parent.parent / path).read_text())


if __name__ == "__main__":
    unittest.main()
