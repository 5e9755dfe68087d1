"""Plants the faults of a family's table (ops/*.py) in simulated devices; test_faults.py makes one such class per family."""

import collections
import json
import pathlib
import sys

import families

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "cli"))
from support import CliTest  # noqa: E402


def key(case):
    return json.dumps(case, sort_keys=True)


def accounted(case):
    """Sums of infinities and of the largest numbers are not judged: a case with such inputs asks for fewer elements, unless it
    says how many."""
    special = case.get("inputs", {}).get("distribution") == "specials"
    return {"tolerance": {"min_judged": 0.9}, **case} if special else case


def first_failing(run, blind_to=""):
    """The first gate that fails, of the output that the report names; None if none does."""
    output = run["outputs"].get(run["failing"].partition(": ")[0], {"criteria": []})
    return next((gate["name"] for gate in output["criteria"] if not gate["ok"] and gate["name"] != blind_to), None)


def fails(run, name):
    gates = [gate for output in run["outputs"].values() for gate in output["criteria"] if gate["name"] == name]
    return any(not gate["ok"] for gate in gates)


class PlantsFaults(CliTest):
    def run_cases(self, cases, device, *arguments, code):
        """Runs all cases at once; returns the reported ones by key()."""
        cases = {key(case): case for case in cases}
        plan = self.plan(cases=[accounted(case) for case in cases.values()])
        done = self.run_cli("run", plan, "--device", device, "--json", "report.json", "--no-save", *arguments, code=code)
        results = json.loads((self.folder / "report.json").read_text())["cases"]
        self.assertEqual(len(results), len(cases), done.stderr)
        for case, result in zip(cases.values(), results):
            self.assertEqual((result["op"], result["mode"]), (case["op"], case["mode"]))
        return dict(zip(cases, results))


class Faults(PlantsFaults):
    """Every planted fault is caught by the gate meant for it; the same cases pass without a fault."""

    family = ""

    def test_each_fault_is_caught_by_its_gate(self):
        planted = collections.defaultdict(list)
        for row in families.rows(self.family):
            planted[row.device, row.fault].append(row)
        for (device, fault), rows in planted.items():
            with self.subTest(fault=fault, device=device):
                results = self.run_cases((row.case for row in rows), device, "--inject", fault, code=1)
                for row in rows:
                    result = results[key(row.case)]
                    with self.subTest(case=result["id"]):
                        self.expect_caught(row, result)

    def expect_caught(self, row, result):
        self.assertEqual(result["status"], "fail", result["reason"])
        self.assertTrue(result["runs"])
        for run in result["runs"]:
            self.assertIn(first_failing(run, row.blind_to), row.gates, result["reason"])
            if row.also:
                self.assertTrue(fails(run, row.also), f"{row.also} holds")
            if row.named:
                causes = [finding.get("cause") for output in run["outputs"].values() for finding in output["findings"]]
                self.assertIn(row.named, causes)

    def test_the_same_cases_pass_without_a_fault(self):
        clean = collections.defaultdict(list)
        for row in families.rows(self.family):
            clean[row.device].append(row.case)
        for device, cases in clean.items():
            for result in self.run_cases(cases, device, code=0).values():
                with self.subTest(case=result["id"]):
                    self.assertEqual(result["status"], "pass", result["reason"])

    def test_a_fault_that_changes_nothing_is_refused_with_the_reason(self):
        refused = getattr(families.load(self.family), "REFUSED", [])
        if not refused:
            self.skipTest(f"ops/{self.family}.py names none")
        for fault, case, reason in refused:
            with self.subTest(fault=fault, op=case["op"], params=case["params"]):
                (result,) = self.run_cases([case], "sim:sm_90", "--inject", fault, code=4).values()
                self.assertEqual(result["status"], "unsupported")
                self.assertIn(reason, result["reason"])
