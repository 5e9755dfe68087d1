"""Files of which one member has another JSON type: every command says so in a sentence, and none crashes."""

import json
import unittest

from support import CliTest

SIM = ["--device", "sim:sm_90", "--no-save"]
VALUES = [7, "text", [], {}, None, True]
KNOWN = {"version": 1, "known_issues": [
    {"op": "gemm", "match": {"mode": "bf16", "k": {"from": 40}, "architecture": "sm_90", "libraries": {"cublaslt": {"from": "13.0", "to": "13.1"}}},
     "cause": "the last 1 of k is missing", "reason": "12", "link": "https://example.org", "expires": "2999-01-01"}]}


def places(value, path=()):
    """The paths of all members and of the first two items of lists."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, member in items:
        yield (*path, key)
        yield from places(member, (*path, key))


def changed(document, path, value):
    """A copy with another value at that place."""
    copy = json.loads(json.dumps(document))
    inside = copy
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return copy


class Types(CliTest):
    def setUp(self):
        super().setUp()
        self.path = self.plan(case={"params": {"m": 16, "n": 16, "k": [32, 48]}, "mode": ["fp32", "bf16"]})
        self.run_cli("run", self.path, *SIM, "--inject", "missing_k_tail", "--inject-case", "gemm/m=16,n=16,k=48/bf16/sim", "--json", "report.json",
                     "--brief-json", "brief.json", "--write-contract", "contract.json", code=1)

    def fuzz(self, document, commands, codes):
        """One other value at each place, by turns; `codes` of what still means something."""
        refused = 0
        for i, path in enumerate(places(document)):
            before = document
            for key in path:
                before = before[key]
            value = next(value for value in VALUES[i % len(VALUES):] + VALUES if type(value) is not type(before))
            (self.folder / "changed.json").write_text(json.dumps(changed(document, path, value)))
            for command in commands[i % len(commands):][:1]:
                done = self.run_cli(*command)
                where = f"{command} {path} = {value!r}: {done.returncode} {done.stderr[-300:]}"
                self.assertIn(done.returncode, codes, where)
                for words in ("json.exception", "internal error", "terminate"):
                    self.assertNotIn(words, done.stdout + done.stderr, where)
                refused += done.returncode == codes[0]
        return refused

    def test_reports(self):
        views = ["--junit", "x.xml", "--markdown", "x.md", "--csv", "x.csv", "--html", "x.html"]
        commands = [["report", "changed.json", *views], ["compare", "report.json", "changed.json"], ["merge", "changed.json"],
                    ["run", self.path, *SIM, "--failed-in", "changed.json"], ["contract", "changed.json"]]
        for name in ("report.json", "brief.json"):
            self.assertGreater(self.fuzz(self.report(name), commands, (3, 2, 0, 1, 4)), 50)

    def test_baselines(self):
        command = ["run", self.path, *SIM, "--baseline", "changed.json"]
        self.assertGreater(self.fuzz(self.report("brief.json"), [command], (2, 0, 1)), 50)

    def test_a_wrong_type_is_named_with_its_place(self):
        report = changed(self.report("report.json"), ("cases", 1, "runs", 0, "outputs", "d", "criteria"), 7)
        (self.folder / "changed.json").write_text(json.dumps(report))
        done = self.run_cli("compare", "report.json", "changed.json", code=3)
        self.assertIn("changed.json is not a valid report: cases/1/runs/0/outputs/d/criteria is not of type array\n", done.stderr)

    def test_contracts(self):
        refused = self.fuzz(self.report("contract.json"), [["run", self.path, *SIM, "--contract", "changed.json"]], (2, 0, 1))
        self.assertGreater(refused, 8)

    def test_known_issues(self):
        (self.folder / "changed.json").write_text(json.dumps(KNOWN))
        command = ["run", self.path, *SIM, "--known", "changed.json"]
        self.run_cli(*command, code=0)
        self.assertGreater(self.fuzz(KNOWN, [command], (2, 0, 1)), 10)


if __name__ == "__main__":
    unittest.main()
