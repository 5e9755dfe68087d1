"""Pages of `explain`: every example plan and every command in them does what the page says, without a GPU."""

import json
import re
import shlex
import unittest

from support import CliTest

PAGES = ["plan", "gates", "metrics", "report", "statuses"]
SAVED = re.compile(r"as (\w+\.json):\n\n((?:    .*\n)+)")
SIM = ["--device", "sim:sm_90"]
SIM_DEVICE = {"TE_NUMCHECK_DEVICE": "sim:sm_90"}


def unfilled(text):
    """Prose on one line: it may be broken anywhere."""
    return re.sub(r"(?<=\S)\n(?=\S)", " ", text)


class Pages(CliTest):
    def page(self, name, **options):
        return self.run_cli("explain", name, code=0, **options).stdout

    def save_examples(self, text):
        names = []
        for name, body in SAVED.findall(unfilled(text)):
            (self.folder / name).write_text(body)
            names.append(name)
        return names

    @staticmethod
    def commands(text):
        """The command lines of a page, with the exit code that each should have."""
        for line in text.splitlines():
            if line.startswith("    te-numcheck "):
                command, _, note = line.strip().partition("#")
                yield shlex.split(command)[1:], int(note.split()[-1]) if "exit" in note else 0

    def test_every_example_runs(self):
        ran = {}
        for name in PAGES:
            text = self.page(name)
            saved = self.save_examples(text)
            for arguments, code in self.commands(text):
                self.run_cli(*arguments, env=SIM_DEVICE, code=code)
                ran[name] = ran.get(name, 0) + 1
            for plan in saved:
                done = self.run_cli("run", plan, *SIM, "--no-save", "--json", "-", code=0)
                self.assertEqual({case["status"] for case in json.loads(done.stdout)["cases"]}, {"pass"}, plan)
        self.assertEqual(sorted(ran), sorted(PAGES), "every page shows a command")
        self.assertGreaterEqual(len(self.save_examples(self.page("plan"))), 5)

    def test_every_metric_has_a_unit(self):
        schema = json.loads(self.run_cli("schema", "report", code=0).stdout)
        metrics = schema["definitions"]["metrics"]["properties"]
        page = unfilled(self.page("metrics"))
        for name, rule in metrics.items():
            self.assertRegex(page, rf"(?m)^  {name} ", "is listed")
            if rule.get("type") != "boolean":
                self.assertRegex(rule["description"], r" \[[\w ]+\](; source: .+)?$", name)
        self.assertGreater(len(metrics), 30)

    def test_counts_that_the_tutorial_names(self):
        self.save_examples(self.page("plan"))
        self.assertIn("10 cases", self.run_cli("validate", "sweep.json", code=0).stdout)
        self.assertIn("12 cases, less the two", unfilled(self.page("plan")))
        listed = self.run_cli("list", "cases", "first.json", code=0).stdout
        identifier = listed.split()[-1]
        self.assertIn(f"prints, {identifier},", unfilled(self.page("plan")))
        self.run_cli("run", "override.json", *SIM, "--out", "out", code=0)
        rows = json.loads((self.folder / "out/report.json").read_text())["override_effect"]["rows"]
        self.assertTrue(all(row["predicted"] for row in rows) and rows)

    def test_tables_come_from_the_code(self):
        summary = json.loads(self.run_cli("schema", "report", code=0).stdout)["properties"]["summary"]["properties"]
        statuses = self.page("statuses")
        for status in set(summary) - {"cases"}:
            self.assertRegex(statuses, rf"(?m)^  {status} +\d ", status)
        self.assertRegex(statuses, r"(?m)^  fail +1 ")
        self.assertRegex(statuses, r"(?m)^  crashed +3 ")
        self.assertRegex(statuses, r"(?m)^  unsupported +0 ")
        done = self.run_cli("run", self.plan(case={"mode": "bf16", "params": {"m": 64, "n": 64, "k": 64}}), *SIM, "--json", "-", code=0)
        gates = self.page("gates")
        for criterion in json.loads(done.stdout)["cases"][0]["runs"][0]["outputs"]["d"]["criteria"]:
            self.assertRegex(gates, rf"(?m)^  {criterion['name']} ", criterion["name"])
        for key in ("backend", "tolerance", "timeout_s"):
            self.assertRegex(self.page("plan"), rf"(?m)^  {key} ", key)

    def test_filled_to_the_width(self):
        for name in PAGES:
            prose = [line for line in self.page(name).splitlines() if not line.startswith("    ")]
            self.assertLessEqual(max(map(len, prose)), 100, name)
            self.assertTrue(self.page(name).isascii(), name)

    def test_all_topics(self):
        listed = self.run_cli("explain", "--all", code=0).stdout
        ops = json.loads(self.run_cli("list", "ops", "--json", code=0).stdout)
        for topic in PAGES + [op["name"] for op in ops]:
            self.assertRegex(listed, rf"(?m)^{topic} ")
            self.run_cli("explain", topic, code=0)
        for shell in ("bash", "zsh", "fish"):
            script = self.run_cli("completion", shell, code=0).stdout
            for topic in ("statuses", "gemm"):
                self.assertRegex(script, rf"plan gates report statuses gemm.*|{topic}")
        self.assertIn("did you mean statuses?", self.run_cli("explain", "status", code=2).stderr)
        self.assertIn("--all lists", self.run_cli("explain", code=2).stderr)
        self.assertIn("takes no topic", self.run_cli("explain", "--all", "gemm", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
