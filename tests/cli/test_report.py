"""Every report that the program writes is valid under the published schema."""

import json
import socket
import unittest

from support import SOURCE, CliTest

try:
    import jsonschema
except ImportError:
    jsonschema = None

SIM = ["--device", "sim:sm_90"]


def closed(schema):
    """The schema with every object closed: members that it does not know are mistakes."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        result.setdefault("additionalProperties", False)
    return result


@unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
class SchemaTest(CliTest):
    @classmethod
    def setUpClass(cls):
        schema = json.loads((SOURCE / "configs" / "schema" / "report-1.schema.json").read_text())
        jsonschema.Draft7Validator.check_schema(schema)
        cls.validator = jsonschema.Draft7Validator(closed(schema))

    def expect_valid(self, report):
        mistakes = [f"{list(error.path)}: {error.message[:300]}" for error in self.validator.iter_errors(report)]
        self.assertEqual(mistakes, [])


class Valid(SchemaTest):
    def run_and_validate(self, *arguments, code=None):
        done = self.run_cli("run", *arguments, "--json", "-", code=code)
        report = json.loads(done.stdout)
        self.expect_valid(report)
        return report

    def test_a_quick_run(self):
        report = self.run_and_validate(SOURCE / "configs" / "plans" / "quick.json", *SIM, code=0)
        self.assertGreaterEqual(report["summary"]["pass"], 40)

    def test_every_status(self):
        slow = self.plan("slow.json", case={"params": {"m": 2048, "n": 2048, "k": 2048}, "timeout_s": 0.001})
        fails = self.plan("fail.json", case={"mode": "bf16", "xfail": [{"match": {"m": 16}, "reason": "known", "expires": "2999-01-01"}]})
        unsupported = self.plan("unsupported.json", case={"backend": "cublaslt"})
        vacuous = self.plan("vacuous.json", case={"mode": "fp8_e4m3", "params": {"m": 4, "n": 4, "k": 64}, "inputs": {"distribution": "large_mean"}})
        seen = set()
        for arguments in [[self.plan(), slow, fails, unsupported, vacuous],
                          [fails, "--inject", "nan_written"], [self.plan(), "--inject", "nan_written"],
                          [self.plan(), "--memory", "1KiB"], [self.plan(), "--filter", "nothing"]]:
            report = self.run_and_validate(*arguments, *SIM)
            seen |= {case["status"] for case in report["cases"]}
        self.assertLessEqual({"pass", "fail", "inconclusive", "unsupported", "skipped", "timeout", "xfail", "xpass"}, seen)

    def test_shards_and_what_they_merge_to(self):
        plan = self.plan(case={"params": {"m": 16, "n": 16, "k": [16, 24, 32, 40]}})
        for i in (1, 2):
            report = self.run_and_validate(plan, *SIM, "--shard", f"{i}/2", "--out", f"shard-{i}")
            self.assertEqual(report["plan"]["shard"]["of"], 4)
        self.run_cli("merge", "shard-1/report.json", "shard-2/report.json", "--json", "merged.json", code=0)
        self.expect_valid(self.report("merged.json"))

    def test_a_contract_and_a_budget(self):
        plan = self.plan(case={"params": {"m": 16, "n": 16, "k": {"from": 1, "to": 200}}})
        self.run_cli("run", plan, *SIM, "--no-save", "--write-contract", "contract.json", code=0)
        report = self.run_and_validate(plan, *SIM, "--contract", "contract.json", "--budget", "1ms", code=1)
        self.assertTrue(report["contract"]["broken"])
        self.assertTrue(report["budget"]["not_started"])
    def test_known_issues_and_a_baseline(self):
        issue = {"op": "gemm", "reason": "12", "link": "https://example.org/12"}
        (self.folder / "known.json").write_text(json.dumps({"version": 1, "known_issues": [
            {**issue, "match": {"k": 32}, "expires": "2020-01-31"}, {**issue, "error": "a long error"}]}))
        plan = self.plan(case={"params": {"m": 16, "n": 16, "k": [32, 64]}, "mode": ["fp32", "bf16"]})
        self.run_cli("run", plan, *SIM, "--no-save", "--brief-json", "base.json", code=0)
        report = self.run_and_validate(plan, *SIM, "--known", "known.json", "--baseline", "base.json", "--inject",
                                       "missing_k_tail", "--brief-json", "brief.json", code=1)
        self.assertEqual(report["comparison"]["summary"]["regressions"], 4)
        self.assertEqual([case.get("xfail", {}).get("expired") for case in report["cases"]], [True, True, None, None])
        self.expect_valid(self.report("brief.json"))

    def test_with_the_name_of_the_host(self):
        self.run_and_validate(self.plan(), *SIM, "--include-host", code=0)

    def test_numbers_that_json_cannot_represent(self):
        report = self.run_and_validate(self.plan(), *SIM, "--inject", "nan_written", code=1)
        text = json.dumps(report)
        self.assertIn('"NaN"', text)
        self.assertNotIn(": NaN", text)

    def test_the_schema_rejects_what_is_wrong(self):
        report = self.run_and_validate(self.plan(), *SIM, code=0)
        for change in [lambda r: r.pop("summary"), lambda r: r["cases"][0].update(status="good"),
                       lambda r: r["cases"][0]["runs"][0]["outputs"]["d"]["metrics"].update(rel_l2=None),
                       lambda r: r.update(schema="other")]:
            broken = json.loads(json.dumps(report))
            change(broken)
            self.assertFalse(self.validator.is_valid(broken))


class Baselines(SchemaTest):
    def test_every_stored_one_is_valid(self):
        for path in sorted((SOURCE / "configs" / "baselines").glob("*.json")):
            with self.subTest(path.name):
                self.expect_valid(json.loads(path.read_text()))


class Brief(SchemaTest):
    """A brief report is valid and small, has one case per line, and agrees with the full one."""

    def brief(self, *arguments, code=0):
        self.run_cli("run", *arguments, *SIM, "--json", "whole.json", "--brief-json", "brief.json", code=code)
        report = self.report("brief.json")
        self.expect_valid(report)
        return report, self.report("whole.json")

    def test_a_quick_run(self):
        brief, whole = self.brief(SOURCE / "configs" / "plans" / "quick.json")
        self.assertIs(brief["brief"], True)
        self.assertEqual(brief["summary"], whole["summary"])
        text = (self.folder / "brief.json").read_text()
        lines = [line.rstrip(",") for line in text.splitlines() if '"id":' in line]
        self.assertEqual([json.loads(line) for line in lines], brief["cases"])
        self.assertLessEqual(sum(map(len, lines)) / len(lines), 600)
        for short, long in zip(brief["cases"], whole["cases"], strict=True):
            self.assertEqual((short["id"], short["digest"], short["status"], short.get("reason", "")),
                             (long["id"], long["digest"], long["status"], long["reason"]))
            for small, large in zip(short["runs"], long["runs"], strict=True):
                self.assertEqual(small["implementation"], large["implementation"])
                self.assertEqual(small["outputs"].keys(), large["outputs"].keys())
                for port, output in small["outputs"].items():
                    self.expect_same(output, large["outputs"][port])

    def expect_same(self, output, whole):
        self.assertEqual(output["xxh128"], whole["xxh128"])
        for name, value in output["metrics"].items():
            self.expect_near(value, whole["metrics"][name])
        ratios = [criterion["measured"] / criterion["limit"] for criterion in output["criteria"] if criterion["limit"] > 0]
        if ratios:
            self.expect_near(max(ratios), whole["error_over_limit"])
        kinds = [criterion.get("about") for criterion in output["criteria"]]
        self.assertIn(kinds, ([None], [None, "rounding"]))

    def expect_near(self, value, whole):
        """Equal except for rounding to six digits; non-finite numbers are strings."""
        if isinstance(whole, str):
            self.assertEqual(value, whole)
        else:
            self.assertAlmostEqual(value, whole, delta=1e-5 * abs(whole))

    def test_failures_and_refusals(self):
        cases = self.plan("cases.json", case={"backend": ["sim", "cublaslt"]})
        brief, whole = self.brief(cases, "--inject", "nan_written", code=1)
        self.assertEqual([case["status"] for case in brief["cases"]], ["fail", "unsupported"])
        self.assertEqual([case["reason"] for case in brief["cases"]], [case["reason"] for case in whole["cases"]])

    def test_it_serves_as_a_list_of_failures(self):
        plan = self.plan(case={"mode": ["fp32", "bf16"]})
        self.brief(plan, "--inject", "nan_written", code=1)
        done = self.run_cli("list", "cases", plan, "--failed-in", "brief.json", "--json", code=0)
        self.assertEqual(len(json.loads(done.stdout)), 2)

    def test_the_schema_requires_more_of_a_full_report(self):
        brief, whole = self.brief(self.plan())
        del brief["brief"]
        self.assertFalse(self.validator.is_valid(brief))
        brief["brief"] = True
        del brief["cases"][0]["runs"][0]["outputs"]["d"]["xxh128"]
        self.assertFalse(self.validator.is_valid(brief))
        whole["library_changes"] = {"rows": [{}], "sentences": []}
        self.assertFalse(self.validator.is_valid(whole))


class Content(CliTest):
    def test_no_absolute_path_and_no_user_name(self):
        plan = self.folder / self.plan()
        text = self.run_cli("run", plan, *SIM, "--json", "-", code=0).stdout
        self.assertNotIn(str(self.folder), text)
        self.assertIn('"te-numcheck run plan.json --device sim:sm_90 --case ', text)

    def test_the_host_is_named_only_when_asked(self):
        host = json.loads(self.run_cli("run", self.plan(), *SIM, "--json", "-", code=0).stdout)["machine"]["host"]
        self.assertNotIn("name", host)
        report = json.loads(self.run_cli("run", self.plan(), *SIM, "--json", "-", "--include-host", code=0).stdout)
        self.assertEqual(report["machine"]["host"]["name"], socket.gethostname())

    def test_environment_names_unset_variables(self):
        report = json.loads(self.run_cli("run", self.plan(), *SIM, "--json", "-", env={"CUBLAS_WORKSPACE_CONFIG": ":16:8"}, code=0).stdout)
        self.assertIsNone(report["environment"]["NVIDIA_TF32_OVERRIDE"])
        self.assertEqual(report["environment"]["CUBLAS_WORKSPACE_CONFIG"], ":16:8")

    def test_a_simulated_device_is_marked(self):
        report = json.loads(self.run_cli("run", self.plan(), *SIM, "--json", "-", code=0).stdout)
        self.assertIs(report["machine"]["device"]["simulated"], True)
        self.assertIsNone(report["machine"]["driver"])

    def test_reproducers_reproduce(self):
        done = self.run_cli("run", self.plan(case={"mode": ["fp32", "bf16"]}), *SIM, "--inject", "bit_flip", "--json", "-", code=1)
        for case in json.loads(done.stdout)["cases"]:
            words = case["reproduce"].split()
            self.assertEqual(words[0], "te-numcheck")
            again = json.loads(self.run_cli(*words[1:], "--json", "-", code=1).stdout)
            self.assertEqual([c["id"] for c in again["cases"]], [case["id"]])
            self.assertEqual(again["cases"][0]["runs"][0]["outputs"], case["runs"][0]["outputs"])

    def test_override_effect(self):
        axis = [{"NVIDIA_TF32_OVERRIDE": value} for value in (None, "0", "1")]
        plan = self.plan(case={"mode": ["fp32", "tf32", "bf16", "fp32_pedantic"], "environment": axis, "params": {"m": 64, "n": 64, "k": 256}})
        done = self.run_cli("run", plan, *SIM, "--out", "out", code=0)
        effect = self.report()["override_effect"]
        bits = {row["mode"]: [row["states"][state]["bits"] for state in ("unset", "0", "1")] for row in effect["rows"]}
        self.assertEqual(bits, {"fp32": [None, "identical", "differ"], "tf32": [None, "differ", "identical"],
                                "bf16": [None, "identical", "identical"], "fp32_pedantic": [None, "identical", "identical"]})
        sentences = "\n".join(effect["sentences"])
        self.assertIn("gemm fp32 (sim, predicted): override 1 turns FP32 into TF32: error ", sentences)
        self.assertIn("gemm tf32 (sim, predicted): override 0 turns TF32 into FP32: error ", sentences)
        self.assertIn("gemm bf16 (sim, predicted): no effect: bitwise identical under unset, 0 and 1", sentences)
        for sentence in effect["sentences"]:
            self.assertIn(sentence, done.stdout)


if __name__ == "__main__":
    unittest.main()
