"""Contracts: a case that ran once must not turn up unsupported, skipped or missing without failing the run."""

import json
import subprocess
import sys
import unittest
import xml.etree.ElementTree as xml

from support import SOURCE, CliTest
from test_report import closed, jsonschema

SIM = ["--device", "sim:sm_90", "--no-save"]
CASES = [{"op": "gemm", "backend": ["sim", "cudnn"], "mode": ["fp32", "bf16"], "params": {"m": 16, "n": 16, "k": [16, 24, 32, 40, 48, 56]}}]
HIDDEN = "gemm/m=16,n=16,k=16/fp32/cudnn"


class ContractTest(CliTest):
    def setUp(self):
        super().setUp()
        self.path = self.plan(cases=CASES)

    def write(self, *arguments, name="contract.json"):
        self.run_cli("run", self.path, *SIM, "--json", "report.json", "--brief-json", "brief.json", "--write-contract", name, *arguments, code=0)
        return json.loads((self.folder / name).read_text())

    def edit(self, change, name="contract.json"):
        contract = json.loads((self.folder / name).read_text())
        change(contract)
        (self.folder / "edited.json").write_text(json.dumps(contract))
        return "edited.json"

    def keep(self, *arguments, contract="contract.json", code=None, env=None):
        done = self.run_cli("run", self.path, *SIM, "--contract", contract, "--json", "new.json", *arguments, code=code, env=env)
        return done, self.report("new.json")

    def junit_text(self):
        return (self.folder / "junit.xml").read_text()

    def junit_failures(self):
        """The types of failures by the names of test cases."""
        return {case.get("name"): case.find("failure").get("type")
                for case in xml.fromstring(self.junit_text()).iter("testcase") if case.find("failure") is not None}


class Written(ContractTest):
    def test_it_promises_what_ran(self):
        contract = self.write()
        self.assertEqual(contract["architecture"], "sm_90")
        self.assertTrue(contract["simulated"])
        (plan,) = contract["plans"]
        self.assertEqual(plan["plan"], "plan")
        self.assertEqual(plan["cases"], sorted(f"gemm/m=16,n=16,k={k}/{mode}/sim" for k in (16, 24, 32, 40, 48, 56) for mode in ("fp32", "bf16")))
        lines = (self.folder / "contract.json").read_text().splitlines()
        self.assertEqual(sum(line.startswith('"gemm/') for line in lines), 12, "one line a case")

    def test_from_stored_reports(self):
        self.write()
        text = (self.folder / "contract.json").read_text()
        for report in ("report.json", "brief.json"):
            self.run_cli("report", report, "--write-contract", "stored.json", code=0)
            self.assertEqual((self.folder / "stored.json").read_text(), text)
            self.assertEqual(self.run_cli("contract", report, code=0).stdout, text)
        self.run_cli("contract", "report.json", "brief.json", "--out", "both.json", code=0)
        self.assertEqual(len(json.loads((self.folder / "both.json").read_text())["plans"]), 2)

    def test_the_shipped_one_is_what_the_baselines_promise(self):
        names = ["h200-cublas13.1-quick", "h200-te2.20.2-te2.11.0-cudnn9.14-te_shapes", "h200-te2.20.2-cudnn9.14-attention"]
        done = self.run_cli("contract", *(SOURCE / "configs" / "baselines" / f"{name}.json" for name in names), code=0)
        shipped = (SOURCE / "configs" / "contracts" / "sm_90.json").read_text()
        self.assertTrue(done.stdout == shipped, "te-numcheck contract BASELINES writes another configs/contracts/sm_90.json")

    def test_that_of_sm_80_follows_from_that_of_sm_90(self):
        contracts = SOURCE / "configs" / "contracts"
        done = subprocess.run([sys.executable, SOURCE / "scripts" / "derive_contract.py", contracts / "sm_90.json"], capture_output=True, text=True, check=True)
        self.assertTrue(done.stdout == (contracts / "sm_80.json").read_text(), "scripts/derive_contract.py writes another configs/contracts/sm_80.json")
        derived, shown = (json.loads((contracts / f"sm_{sm}.json").read_text()) for sm in (80, 90))
        ran = {case for plan in shown["plans"] for case in plan["cases"]}
        for plan in derived["plans"]:
            self.assertLessEqual(set(plan["cases"]), ran)
            self.assertFalse([case for case in plan["cases"] if "fp8" in case or "transformer_engine" in case or "bf16x9" in case])

    def test_its_cases_are_in_the_shipped_plans(self):
        contract = json.loads((SOURCE / "configs" / "contracts" / "sm_90.json").read_text())
        self.assertFalse(contract["simulated"])
        for plan in contract["plans"]:
            listed = json.loads(self.run_cli("list", "cases", plan["plan"], "--json", code=0).stdout)
            ids = {case["id"] for case in listed}
            promised = {case for case in plan["cases"] if "@" not in case}
            self.assertGreater(len(promised), 200)
            self.assertLessEqual(promised, ids)

    def test_mistakes(self):
        self.write()
        self.run_cli("run", self.path, "--device", "sim:sm_80", "--no-save", "--json", "sm_80.json", code=0)
        self.run_cli("run", self.path, *SIM, "--backend", "cudnn", "--json", "none.json", code=4)
        self.run_cli("run", self.path, *SIM, "--filter", "nothing", "--json", "empty.json", code=4)
        for arguments, code, words in [
            ([], 2, "name the reports"),
            (["report.json", "sm_80.json"], 3, "a contract is about one architecture, not a simulated sm_90 and a simulated sm_80"),
            (["none.json"], 3, "no case of plan ran, so that there is nothing to promise"),
            (["empty.json"], 3, "a report of a run without a device promises nothing"),
            (["missing.json"], 3, "cannot read missing.json"),
            (["report.json", "--out", "report.json"], 2, "would overwrite report.json, which is read"),
        ]:
            self.assertIn(words, self.run_cli("contract", *arguments, code=code).stderr, arguments)


    def test_a_run_of_nothing_writes_everything_but_a_contract(self):
        done = self.run_cli("run", self.path, *SIM, "--backend", "cudnn", "--write-contract", "contract.json", "--json", "report.json", "--csv", "table.csv", code=3)
        self.assertIn("no case of plan ran, so that there is nothing to promise", done.stderr)
        self.assertIn("12 unsupported", done.stdout)
        self.assertTrue((self.folder / "report.json").exists() and (self.folder / "table.csv").exists())


class Kept(ContractTest):
    def test_a_run_that_keeps_it_passes(self):
        self.write()
        done, report = self.keep(code=0)
        self.assertRegex(report["contract"].pop("digest"), "^[0-9a-f]{32}$")
        self.assertEqual(report["contract"], {"promised": 12, "kept": 12, "not_selected": 0, "absent_libraries": [], "broken": []})
        self.assertIn("contract kept: 12 of 12 promised cases ran", done.stdout)

    def test_a_selection_is_no_breach(self):
        self.write()
        for arguments in (["--mode", "bf16"], ["--shard", "1/2"], ["--case", "gemm/m=16,n=16,k=24/bf16/sim"], ["--sample", "3"]):
            report = self.keep(*arguments)[1]
            self.assertEqual(report["contract"]["broken"], [], arguments)
            self.assertGreater(report["contract"]["not_selected"], 0, arguments)
        self.assertIn("11 of 12 promised cases ran; 1 was not selected\n", self.keep("--exclude", "k=24/bf16/sim")[0].stdout)

    def test_a_failure_is_a_verdict(self):
        self.write()
        report = self.keep("--inject", "scale_1_01", code=1)[1]
        self.assertEqual(report["contract"]["broken"], [])

    def test_versions_that_only_the_command_line_names(self):
        self.write()
        edited = self.edit(lambda c: c["plans"][0]["cases"].append("gemm/m=16,n=16,k=16/fp32/transformer_engine@2.11.0"))
        self.assertEqual(self.keep(contract=edited, code=0)[1]["contract"]["not_selected"], 1)


    def test_one_that_was_derived_says_so(self):
        self.write()
        edited = self.edit(lambda c: c.update(derived="from a <manual>", plans=[{**c["plans"][0], "cases": [*c["plans"][0]["cases"], HIDDEN]}]))
        done, report = self.keep("--markdown", "summary.md", "--html", "page.html", contract=edited, code=1)
        self.assertEqual(report["contract"]["derived"], "from a <manual>")
        self.assertIn('  it was derived and not seen in a run: "derived" in the contract says from what\n', done.stdout)
        self.assertIn("did not run.** The contract was derived and not seen in a run.\n", (self.folder / "summary.md").read_text())
        self.assertIn("<p>It was derived and not seen in a run: from a &lt;manual&gt;</p>", (self.folder / "page.html").read_text())

    def test_a_library_that_is_not_here_is_named(self):
        self.write()
        edited = self.edit(lambda c: c["plans"][0].update(libraries={"cudnn": "9.14.0", "cublaslt": None}))
        done, report = self.keep(contract=edited, code=0)
        self.assertEqual(report["contract"]["absent_libraries"], ["cublaslt", "cudnn 9.14.0"])
        self.assertIn("  the contract names cudnn 9.14.0, which is not here\n", done.stdout)

    @unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
    def test_it_is_valid_under_the_published_schema(self):
        schema = json.loads((SOURCE / "configs/schema/contract-1.schema.json").read_text())
        jsonschema.Draft7Validator.check_schema(schema)
        validator = jsonschema.Draft7Validator(closed(schema))
        shipped, derived = (json.loads((SOURCE / f"configs/contracts/sm_{sm}.json").read_text()) for sm in (90, 80))
        for contract in (self.write(), shipped, derived):
            self.assertEqual([error.message[:300] for error in validator.iter_errors(contract)], [])
        for broken in [{**shipped, "plans": []}, {**shipped, "more": 1}, {**shipped, "architecture": "turing"}]:
            self.assertFalse(validator.is_valid(broken))
        self.assertEqual(json.loads(self.run_cli("schema", "contract", code=0).stdout), schema)


class Broken(ContractTest):
    def test_a_hidden_backend(self):
        self.write()
        edited = self.edit(lambda c: c["plans"][0]["cases"].append(HIDDEN))
        done, report = self.keep("--junit", "junit.xml", "--markdown", "summary.md", "--jsonl", "lines", contract=edited, code=1)
        last = json.loads((self.folder / "lines").read_text().splitlines()[-1])["summary"]
        self.assertEqual(last["contract"], report["contract"])
        (promise,) = report["contract"]["broken"]
        self.assertEqual((promise["id"], promise["status"]), (HIDDEN, "unsupported"))
        self.assertTrue(promise["reason"])
        self.assertIn("CONTRACT BROKEN: 1 of 13 promised cases did not run", done.stdout)
        self.assertIn(f"unsupported  {HIDDEN}: ", done.stdout)
        self.assertIn("CONTRACT BROKEN", self.run_cli("run", self.path, *SIM, "--contract", edited, "-q", code=1).stdout)
        self.assertEqual(self.junit_failures(), {HIDDEN: "unsupported"})
        self.assertIn(f'message="promised, but unsupported: {promise["reason"][:20]}', self.junit_text())
        markdown = (self.folder / "summary.md").read_text()
        self.assertTrue(markdown.startswith("### te-numcheck plan: contract broken, 12 pass"), markdown[:100])
        self.assertIn("**Contract broken: 1 of 13 promised cases did not run.**", markdown)
        self.assertIn("| unsupported | gemm/m=16,n=16,k=16/fp32/cudnn |", markdown)
        shown = self.run_cli("report", "new.json", code=0).stdout
        self.assertIn("CONTRACT BROKEN: 1 of 13", shown)

    def test_a_case_that_the_plan_lost(self):
        self.write()
        self.path = self.plan(cases=[{**CASES[0], "mode": "bf16"}])
        broken = self.keep("--junit", "junit.xml", code=1)[1]["contract"]["broken"]
        self.assertEqual({promise["status"] for promise in broken}, {"missing"})
        self.assertEqual(len(broken), 6)
        self.assertEqual(self.junit_failures(), {promise["id"]: "missing" for promise in broken})

    def test_what_was_skipped(self):
        self.write()
        report = self.keep("--memory", "1KiB", code=1)[1]
        self.assertEqual({promise["status"] for promise in report["contract"]["broken"]}, {"skipped"})
        done, report = self.keep("--budget", "1ms", "--junit", "junit.xml", code=1, env={"GITHUB_ACTIONS": "true"})
        self.assertIn(" s was used up\n", done.stderr, "the exit code is about them, too")
        self.assertIn("::error::contract broken: ", done.stderr)
        self.assertIn("%0Askipped  gemm/m=16,n=16,k=", done.stderr)
        broken = [promise["id"] for promise in report["contract"]["broken"]]
        self.assertEqual(self.junit_failures(), dict.fromkeys(broken, "skipped"))
        self.assertEqual(int(xml.fromstring(self.junit_text()).get("tests")), len(report["cases"]), "each case once")
        self.assertEqual({promise["status"] for promise in report["contract"]["broken"]}, {"skipped"})

    def test_what_is_lost(self):
        self.path = self.plan(case={"mode": "bf16", "params": {"m": 512, "n": 512, "k": 512}})
        self.write()
        report = self.keep("--timeout", "1ms", code=1)[1]  # 3 without a contract
        self.assertEqual([promise["status"] for promise in report["contract"]["broken"]], ["timeout"])


class Refused(ContractTest):
    def test_another_setting(self):
        self.write()
        for change, sentence in [
            (lambda c: c.update(architecture="sm_80"), "it is about a simulated sm_80, and this is a simulated sm_90"),
            (lambda c: c.update(simulated=False), "it is about sm_90, and this is a simulated sm_90"),
            (lambda c: c["plans"][0].update(plan="other"), "it promises nothing about the plan plan, only about other"),
        ]:
            done = self.run_cli("run", self.path, *SIM, "--contract", self.edit(change), "--json", "x.json", code=2)
            self.assertIn(f"--contract edited.json: {sentence}", done.stderr)
            self.assertFalse((self.folder / "x.json").exists())

    def test_files_that_are_no_contract(self):
        self.write()
        (self.folder / "text.json").write_text("{}")
        (self.folder / "deep.json").write_text("[" * 100_000)
        for name, words in [("text.json", "text.json is not a contract of te-numcheck"), ("deep.json", "not a contract"),
                            ("report.json", "not a contract"), ("missing.json", "cannot read missing.json")]:
            self.assertIn(words, self.run_cli("run", self.path, *SIM, "--contract", name, code=2).stderr)
        for change in [lambda c: c.pop("plans"), lambda c: c.update(plans=3), lambda c: c.update(architecture="turing"),
                       lambda c: c["plans"][0].update(cases={"a": 1}), lambda c: c["plans"][0].update(cases=[1]),
                       lambda c: c["plans"][0].update(libraries=[]), lambda c: c.update(simulated="no"),
                       lambda c: c.update(architecture="sm_99999999999999999999")]:
            done = self.run_cli("run", self.path, *SIM, "--contract", self.edit(change), code=2)
            self.assertIn("edited.json is not a valid contract", done.stderr)
        for change, words in [(lambda c: c["plans"][0].update(cases=[]), "plans/0/cases has too few items"),
                              (lambda c: c.update(plans=[]), "plans has too few items"),
                              (lambda c: c["plans"][0]["cases"].append(7), "plans/0/cases/12 is not of type string")]:
            done = self.run_cli("run", self.path, *SIM, "--contract", self.edit(change), code=2)
            self.assertIn(f"edited.json is not a valid contract: {words}\n", done.stderr)
        done = self.run_cli("run", self.path, *SIM, "--contract", self.edit(lambda c: c.update(schema_version="2.0.0")), code=2)
        self.assertIn('contract version "2.0.0", but this program reads only 1.x', done.stderr)

    def test_the_contract_is_not_overwritten(self):
        self.write()
        done = self.run_cli("run", self.path, *SIM, "--contract", "contract.json", "--write-contract", "contract.json", code=2)
        self.assertIn("would overwrite contract.json, which is read", done.stderr)


class Merged(ContractTest):
    def shards(self, *arguments):
        names = ["1.json", "2.json"]
        for i, name in enumerate(names):
            self.run_cli("run", self.path, *SIM, "--shard", f"{i + 1}/2", "--json", name, *arguments)
        return names

    def test_the_whole_is_checked(self):
        self.write()
        shards = self.shards()
        self.run_cli("merge", *shards, "--contract", "contract.json", "--json", "merged.json", code=0)
        self.assertEqual(self.report("merged.json")["contract"], self.keep(code=0)[1]["contract"])
        edited = self.edit(lambda c: c["plans"][0]["cases"].append("gemm/m=1/fp32/sim"))
        done = self.run_cli("merge", *shards, "--contract", edited, code=1)
        self.assertIn("missing  gemm/m=1/fp32/sim: ", done.stdout)

    def test_a_stored_report_is_a_whole(self):
        self.write()
        for report in ("report.json", "brief.json"):
            self.run_cli("merge", report, "--contract", "contract.json", code=0)
            edited = self.edit(lambda c: c["plans"][0]["cases"].append(HIDDEN))
            self.assertIn("CONTRACT BROKEN", self.run_cli("merge", report, "--contract", edited, code=1).stdout)

    def test_what_shards_promised_is_not_forgotten(self):
        self.write()
        shards = self.shards("--contract", "contract.json")
        self.assertIn("1.json was run with --contract", self.run_cli("merge", *shards, code=2).stderr)
        self.run_cli("merge", *shards, "--contract", "contract.json", code=0)

    def test_another_setting_is_refused(self):
        self.write()
        shards = self.shards()
        done = self.run_cli("merge", *shards, "--contract", self.edit(lambda c: c.update(architecture="sm_80")), code=2)
        self.assertIn("--contract edited.json: it is about a simulated sm_80", done.stderr)


class Budget(CliTest):
    def test_what_it_skips_is_said_loudly(self):
        case = {"params": {"m": 16, "n": 16, "k": {"from": 1, "to": 300}}}
        done = self.run_cli("run", self.plan(case=case), *SIM, "--budget", "1ms", "--json", "report.json", "-q")
        report = self.report("report.json")
        skipped = report["summary"]["skipped"]
        self.assertGreater(skipped, 0)
        self.assertEqual(report["budget"], {"limit_s": 0.001, "not_started": skipped})
        line = f"{skipped} of 300 cases skipped: the budget of 0.001 s was used up; exit code {done.returncode} is about the rest"
        self.assertIn(line, done.stderr)
        required = self.run_cli("run", self.plan(case=case), *SIM, "--budget", "1ms", "--require-run", code=1)
        self.assertIn("--fail-on skipped makes the exit code 1", required.stderr)
        self.assertNotIn("is about the rest", required.stderr)

    def test_a_budget_that_suffices_says_nothing(self):
        done = self.run_cli("run", self.plan(), *SIM, "--budget", "10m", "--require-run", "--json", "report.json", code=0)
        self.assertNotIn("budget", done.stderr)
        self.assertEqual(self.report("report.json")["budget"], {"limit_s": 600, "not_started": 0})

    def test_no_time_at_all_is_refused(self):
        for option in ("--budget", "--timeout"):
            for time in ("0s", "0ms", "0", "0.0h"):
                done = self.run_cli("run", self.plan(), *SIM, option, time, code=2)
                self.assertIn(option, done.stderr)


if __name__ == "__main__":
    unittest.main()
