"""Plans of "select": "new_configurations" run the cases that show every kernel, and no others."""

import unittest

from support import CliTest

SIM = ["--device", "sim:sm_90", "--no-save", "--json", "report.json"]


class Survey(CliTest):
    def survey(self, *arguments, **case):
        case = {"op": "gemm", "backend": "sim", "mode": "bf16", "algorithms": "all",
                "params": {"m": [8, 16, 24], "n": 8, "k": {"from": 1, "to": 200}}, "select": "new_configurations", **case}
        plan = self.plan(cases=[case])
        done = self.run_cli("run", plan, *SIM, *arguments, code=0)
        return done, self.report("report.json")

    def test_few_shapes_show_every_kernel(self):
        done, report = self.survey()
        counts = report["configurations"]
        self.assertEqual(counts["asked"], 600)
        self.assertEqual(counts["kept"], len(report["cases"]))
        self.assertLess(counts["kept"], 40)
        self.assertGreater(counts["offered"], 10)
        self.assertEqual(counts["verified"], counts["offered"])
        # The rest of k beyond tiles of 64: none, and each power of two.
        rests = {case["params"]["k"] % 64 & -(case["params"]["k"] % 64) for case in report["cases"]}
        self.assertEqual(rests, {0, 1, 2, 4, 8, 16, 32})
        self.assertIn(f"{counts['offered']} of {counts['offered']} kernel configurations verified", done.stdout)

    def test_the_same_cases_every_time(self):
        digests = [[case["digest"] for case in self.survey()[1]["cases"]] for _ in range(2)]
        self.assertEqual(*digests)

    def test_each_kind_of_inputs_is_an_experiment(self):
        once = self.survey()[1]["configurations"]
        twice = self.survey(inputs=[{"distribution": "normal"}, {"distribution": "exact"}])[1]["configurations"]
        self.assertEqual(twice["offered"], once["offered"])
        self.assertEqual(twice["kept"], 2 * once["kept"])

    def test_without_select_every_case_runs(self):
        report = self.survey(select="all")[1]
        self.assertEqual(len(report["cases"]), 600)
        self.assertNotIn("configurations", report)

    def test_ops_without_configurations_are_kept(self):
        report = self.survey(op="transpose", params={"rows": [3, 5], "cols": 4})[1]
        self.assertEqual(len(report["cases"]), 2)
        self.assertEqual(report["configurations"], {"asked": 2, "kept": 2, "offered": 0, "verified": 0})

    def test_listing_says_that_a_run_may_leave_cases_out(self):
        case = {"op": "gemm", "backend": "sim", "mode": "bf16", "params": {"m": 8, "n": 8, "k": [1, 2]}}
        note = "leaves out cases that would show no new kernel"
        self.assertIn(note, self.run_cli("list", "cases", self.plan(cases=[{**case, "select": "new_configurations"}]), code=0).stderr)
        self.assertNotIn(note, self.run_cli("list", "cases", self.plan(cases=[case]), code=0).stderr)

    def test_what_cannot_run_is_said_once(self):
        plan = self.plan(cases=[{"op": "gemm", "backend": "cublaslt", "mode": "bf16", "select": "new_configurations",
                                 "params": {"m": 8, "n": 8, "k": [8, 16, 24]}}])
        self.run_cli("run", plan, *SIM, code=4)
        self.assertEqual([case["status"] for case in self.report("report.json")["cases"]], ["unsupported"])

    def test_select_has_two_words(self):
        plan = self.plan(case={"select": "new_configuration"})
        stderr = self.run_cli("run", plan, *SIM, code=2).stderr
        self.assertIn('"select" must be "all" or "new_configurations"', stderr)
        self.assertIn('did you mean "new_configurations"?', stderr)

    def test_a_shipped_plan_by_its_name(self):
        (self.folder / "configs/plans/scenarios").mkdir(parents=True)
        self.plan("configs/plans/scenarios/mine.json")
        self.run_cli("run", "mine", *SIM, code=0)
        stderr = self.run_cli("run", "mime", *SIM, code=2).stderr
        self.assertRegex(stderr, r'no plan is named "mime" \(did you mean mine\?\); plans are: (\w+ )*mine\b')
        self.assertIn("no such file", self.run_cli("run", "nobodys.json", *SIM, code=2).stderr)


if __name__ == "__main__":
    unittest.main()
