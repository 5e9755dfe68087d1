"""Edges of runs: reports that cannot be written where they should be, other selections on resuming, plans elsewhere,
interrupts, the width of what is piped, and plans with mistakes that have a likely cause."""

import json
import os
import pathlib
import pty
import resource
import signal
import subprocess
import tempfile
import time
import unittest

from support import CLEAN, PROGRAM, CliTest

SIM = ["--device", "sim:sm_90"]
TWO_MODES = {"mode": ["fp32", "bf16"], "params": {"m": [16, 32], "n": 16, "k": 32}}


class Elsewhere(CliTest):
    def test_the_reproducer_on_the_console_has_the_path_as_typed(self):
        with tempfile.TemporaryDirectory() as other:
            plan = pathlib.Path(other) / "a plan.json"
            plan.write_text((self.folder / self.plan()).read_text())
            done = self.run_cli("run", plan, *SIM, "--inject", "bit_flip", "--out", "out", code=1)
            line = next(line for line in done.stdout.splitlines() if "run again: " in line).split("run again: ")[1]
            self.assertTrue(line.startswith(f"te-numcheck run '{plan}' --device sim:sm_90"), line)
            command = line.replace("te-numcheck", PROGRAM, 1)
            again = subprocess.run(["bash", "-c", command + " --no-save -q"], cwd=self.folder, env=CLEAN, capture_output=True)
            self.assertEqual(again.returncode, 1, again.stderr)
            text = (self.folder / "out" / "report.json").read_text()
            self.assertIn("te-numcheck run 'a plan.json' --device sim:sm_90", text)
            self.assertNotIn(other, text)


class OtherSelections(CliTest):
    def test_resuming_keeps_what_is_not_selected(self):
        plan = self.plan(case=TWO_MODES)
        self.run_cli("run", plan, *SIM, "--out", "parts", "--mode", "bf16", code=0)
        done = self.run_cli("run", plan, *SIM, "--resume", "parts", "--mode", "fp32", code=0)
        self.assertIn("note: the report keeps 2 cases of the earlier run that this selection leaves out", done.stderr)
        self.run_cli("run", plan, *SIM, "--out", "whole", code=0)
        parts, whole = (self.without_times(self.report(f"{folder}/report.json")) for folder in ("parts", "whole"))
        for report in (parts, whole):
            for case in report["cases"]:
                del case["reproduce"]
        self.assertEqual(parts, whole)
        again = self.run_cli("run", plan, *SIM, "--resume", "parts", code=0)
        self.assertNotIn("keeps", again.stderr)

    def test_failures_and_broken_cases_stay(self):
        plan = self.plan(case=TWO_MODES)
        options = [*SIM, "--inject", "bit_flip"]
        self.run_cli("run", plan, *options, "--out", "out", "--mode", "bf16", "-x", code=1)
        self.assertEqual([case["status"] for case in self.report()["cases"]], ["fail", "skipped"])
        self.run_cli("run", plan, *options, "--resume", "out", "--mode", "fp32", code=1)
        self.assertEqual(sorted(case["status"] for case in self.report()["cases"]), ["fail", "fail", "fail", "skipped"])


class FullDisks(CliTest):
    def kept(self, done):
        folders = list(self.folder.glob("te-numcheck-*"))
        self.assertEqual(len(folders), 1, done.stderr)
        self.assertIn(f"; the report is in {folders[0].name}/report.json instead", done.stderr)
        self.assertEqual(json.loads((folders[0] / "report.json").read_text())["summary"]["pass"], 1)

    def test_a_full_disk_keeps_the_report_in_the_default_folder(self):
        done = self.run_cli("run", self.plan(), *SIM, "--json", "/dev/full", code=3)
        self.assertIn("cannot write /dev/full", done.stderr)
        self.kept(done)

    def test_standard_output_on_a_full_disk(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, "run", self.plan(), *SIM, "--json", "-"], cwd=self.folder, env=CLEAN, stdout=full,
                                  stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.assertEqual(done.returncode, 3)
        self.kept(done)

    def test_no_second_copy_if_there_is_one(self):
        done = self.run_cli("run", self.plan(), *SIM, "--json", "/dev/full", "--out", "out", code=3)
        self.assertNotIn("instead", done.stderr)
        self.report()
        done = self.run_cli("run", self.plan(), *SIM, "--csv", "/dev/full", "--json", "r.json", code=3)
        self.assertNotIn("instead", done.stderr)
        self.assertFalse(list(self.folder.glob("te-numcheck-*")))
        done = self.run_cli("run", self.plan(), *SIM, "--json", "/dev/full", "--no-save", code=3)
        self.assertFalse(list(self.folder.glob("te-numcheck-*")), "--no-save")

    def test_no_room_anywhere(self):
        def little_room():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

        done = subprocess.run([PROGRAM, "run", self.plan(), *SIM, "--json", "r.json"], cwd=self.folder, env=CLEAN,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, preexec_fn=little_room)
        self.assertEqual(done.returncode, 3)
        self.assertIn("cannot write r.json", done.stderr)
        self.assertIn("nor is there a copy of the report", done.stderr)
        self.assertFalse(list(self.folder.glob("te-numcheck-*")), "an empty folder is not left behind")


class Interrupts(CliTest):
    def interrupted(self, plan, signals, pause=0.3, wait_for=None):
        child = subprocess.Popen([PROGRAM, "run", plan, *SIM, "--no-save"], cwd=self.folder, env=CLEAN,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        for number in signals:
            child.send_signal(number)
            time.sleep(pause)
        _, errors = child.communicate(timeout=100)
        return child.returncode, errors

    def test_the_first_says_what_happens_now(self):
        plan = self.plan(case={"params": {"m": 64, "n": 64, "k": {"from": 1, "to": 20000, "step": 1}}})
        code, errors = self.interrupted(plan, [signal.SIGINT])
        self.assertEqual(code, 130)
        self.assertEqual(errors.count("interrupted: no further case starts"), 1)
        self.assertIn("a second interrupt ends them now", errors)

    ENDLESS = {"op": "attention_fwd", "mode": "bf16", "params": {"sq": 1048576, "sk": 1048576, "d": 8}, "timeout_s": 36000}

    def test_one_is_enough_for_a_long_reference(self):
        for name in ("attention_fwd", "attention_bwd"):  # the inputs of the latter come from a reference
            with self.subTest(name):
                plan = self.plan(case={**self.ENDLESS, "op": name})
                start = time.monotonic()
                code, errors = self.interrupted(plan, [signal.SIGTERM])
                self.assertEqual(code, 143)
                self.assertLess(time.monotonic() - start, 60)
                self.assertRegex(errors, f"waiting for the (reference|inputs) of {name}/")

    def test_it_says_what_it_waits_for_and_a_second_one_ends_it(self):
        plan = self.plan(case=self.ENDLESS)
        start = time.monotonic()
        code, errors = self.interrupted(plan, [signal.SIGINT, signal.SIGINT], pause=2)
        self.assertEqual(code, 130)
        self.assertLess(time.monotonic() - start, 60)
        self.assertRegex(errors, r"waiting for the (reference|inputs) of attention_fwd/")
        self.assertIn("interrupted again: the cases that run are given up", errors)


class TimeLimits(CliTest):
    @staticmethod
    def longer_than(seconds):
        """Gradients of 80 operations for each score, almost too many to be tried in that time."""
        threads = len(os.sched_getaffinity(0))
        length = int((0.9 * seconds * threads * 128e9 / 80) ** 0.5)
        return {"sq": length, "sk": length, "d": 8}

    def test_what_cannot_end_in_time_is_not_tried(self):
        case = {"op": "attention_bwd", "mode": "bf16", "params": {"sq": 1048576, "sk": 1048576, "d": 128, "heads": 32}}
        small = {"op": "attention_bwd", "mode": "bf16", "params": {"sq": 16, "sk": 16, "d": 8}}
        plan = self.plan(cases=[case, small])
        start = time.monotonic()
        done = self.run_cli("run", plan, *SIM, "--json", "r.json", "--memory", "1TiB", code=0)
        self.assertLess(time.monotonic() - start, 30)
        hopeless, judged = json.loads((self.folder / "r.json").read_text())["cases"]
        self.assertEqual((hopeless["status"], judged["status"]), ("skipped", "pass"))
        self.assertRegex(hopeless["reason"], r"^its reference takes more than 4\.5e\+16 floating-point operations, [\de.+]+ s at the "
                                             r"very least on \d+ threads?, and the case has 120 s \(--timeout, or timeout_s of the plan\)$")
        self.assertIn("1 skipped: its reference takes more than", done.stdout)
        self.run_cli("run", plan, *SIM, "--no-save", "--memory", "1TiB", "--require-run", code=1)
        explained = self.run_cli("explain", hopeless["digest"], plan, *SIM, code=0).stdout
        self.assertRegex(explained, r"reference: every output, within the time limit of the case \(run --timeout\); at least [\de.+]+ s on")

    def test_that_of_a_case_counts_its_inputs(self):
        """Those of gradients come from a reference. (tests/unit/run/pipeline_test.cpp has the reference itself: on the
        simulated device, the case would take as long.)"""
        plan = self.plan(case={**Interrupts.ENDLESS, "op": "attention_bwd", "timeout_s": 2, "params": self.longer_than(2)})
        self.run_cli("run", plan, *SIM, "--json", "r.json", code=3)
        case = json.loads((self.folder / "r.json").read_text())["cases"][0]
        self.assertEqual(case["status"], "timeout")
        self.assertEqual(case["reason"], f"the inputs of {case['id']} took longer than 2 s on the host (--timeout, or "
                                         "timeout_s of the plan); the device was not asked")


class Widths(CliTest):
    LONG = {"op": "attention_fwd", "mode": "bf16",
            "params": {"sq": 4, "sk": 4, "d": 8, "heads": 2, "mask": "causal", "window_left": 2, "scale": 0.123456789}}

    def test_piped_output_is_not_cut(self):
        plan = self.plan(case=self.LONG)
        name = json.loads(self.run_cli("list", "cases", plan, "--json", code=0).stdout)[0]["id"]
        for env in ({}, {"COLUMNS": ""}, {"COLUMNS": "x"}, {"COLUMNS": "0"}, {"COLUMNS": "-5"}):
            with self.subTest(env):
                self.assertIn(f"{name} ", self.run_cli("run", plan, *SIM, "--no-save", "-v", env=env, code=0).stdout)

    def test_columns_limits_it(self):
        plan = self.plan(case=self.LONG)
        name = json.loads(self.run_cli("list", "cases", plan, "--json", code=0).stdout)[0]["id"]
        shown = self.run_cli("run", plan, *SIM, "--no-save", "-v", env={"COLUMNS": "60"}, code=0).stdout
        self.assertNotIn(name, shown)
        self.assertIn("\u2026", shown)
        wide = self.run_cli("run", plan, *SIM, "--no-save", "-v", "--wide", env={"COLUMNS": "60"}, code=0).stdout
        self.assertIn(f"{name} ", wide)
        self.run_cli("run", plan, *SIM, "--no-save", "-v", env={"COLUMNS": "1"}, code=0)

    def test_the_status_line_fits_its_own_terminal(self):
        plan = self.plan(case={"params": {"m": 16, "n": 16, "k": {"from": 1, "to": 300, "step": 1}}})
        main, side = pty.openpty()
        child = subprocess.Popen([PROGRAM, "run", plan, *SIM, "--no-save"], cwd=self.folder, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=side, env={**CLEAN, "COLUMNS": "50", "TERM": "xterm"})
        os.close(side)
        text = ""
        while True:
            try:
                data = os.read(main, 65536)
            except OSError:
                break
            if not data:
                break
            text += data.decode()
        child.wait(timeout=60)
        lines = [line for line in text.split("\r\x1b[K") if line.startswith("[")]
        self.assertTrue(lines, text)
        for line in lines:
            self.assertLessEqual(len(line.strip()), 50)


class LikelyMistakes(CliTest):
    def refused(self, *documents):
        names = []
        for number, document in enumerate(documents):
            name = f"plan{number}.json"
            (self.folder / name).write_text(json.dumps(document))
            names.append(name)
        return self.run_cli("validate", *names, code=2).stderr

    @staticmethod
    def case(**case):
        return {"version": 1, "cases": [case]}

    def test_all_plans_report_their_mistakes(self):
        text = self.refused(self.case(op="gem", mode="fp32"), self.case(op="gemm", mode="fp33", params={"m": 1, "n": 1, "k": 1}))
        self.assertRegex(text, r'plan0\.json:1:\d+: error: unknown op "gem"')
        self.assertRegex(text, r'plan1\.json:1:\d+: error: .*"fp33"')
        self.assertIn("2 errors; nothing was run", text)
        many = [self.case(op="gemm", mode="fp32", params={"m": 1, "n": 1, "k": 1}, **{f"x{i}": 1 for i in range(30)})]
        self.assertIn("30 errors", self.refused(*many).splitlines()[-1])

    def test_the_beginning_of_a_name_is_enough_for_a_suggestion(self):
        self.assertIn('did you mean "layernorm_fwd"?', self.refused(self.case(op="layernorm", mode="fp32")))
        self.assertIn('did you mean "activation_fwd"?', self.refused(self.case(op="activation", mode="fp32")))
        done = self.run_cli("run", self.plan(), "--include-h", code=2)
        self.assertIn("unknown option --include-h (did you mean --include-host?)", done.stderr)

    def test_parameters_beside_params(self):
        text = self.refused(self.case(op="gemm", mode="fp32", m=1, n=2, k=3))
        self.assertIn('unknown key "m"', text)
        self.assertIn('it is a parameter of gemm: "params": {"m": ...}', text)
        self.assertNotIn("needs", text)
        self.assertIn("3 errors", text)
        self.assertIn('gemm needs "k"', self.refused(self.case(op="gemm", mode="fp32", m=1, n=2)))
        text = self.refused(self.case(op="gemm", params={"m": 1, "n": 1, "k": 1, "mode": "fp32"}))
        self.assertIn('"mode" belongs beside "params", not in it', text)

    def test_backends_of_auto_cases(self):
        plan = self.plan(case={"backend": "auto"})
        for command in (["run", plan, *SIM, "--no-save"], ["list", "cases", plan]):
            done = self.run_cli(*command, "--backend", "cudnn", code=4)
            self.assertIn('its cases say "backend": "auto", which --backend cudnn does not select; name it in the plan: '
                          '"backend": "cudnn"', done.stderr)
        done = self.run_cli("list", "cases", self.plan(), "--backend", "cudnn", code=4)
        self.assertNotIn("auto", done.stderr)
        done = self.run_cli("list", "cases", plan, "--backend", "auto", "--mode", "bf16", code=4)
        self.assertNotIn("say", done.stderr)

    def test_faults_name_their_ops(self):
        faults = {fault["name"]: fault["ops"] for fault in json.loads(self.run_cli("list", "faults", "--json", code=0).stdout)}
        ops = [op["name"] for op in json.loads(self.run_cli("list", "ops", "--json", code=0).stdout)]
        self.assertEqual(faults["bit_flip"], ops)
        self.assertEqual(sorted(faults["epsilon_x10"]), ["layernorm_fwd", "rmsnorm_fwd"])
        self.assertTrue(all(faults.values()))
        self.assertRegex(self.run_cli("list", "faults", code=0).stdout, r"bit_flip .* all\n")

    def test_lists_of_one_op(self):
        listed = lambda *words: json.loads(self.run_cli("list", *words, "--json", code=0).stdout)  # noqa: E731
        names = lambda *words: [entry["name"] for entry in listed(*words)]  # noqa: E731
        for op in listed("ops"):
            with self.subTest(op["name"]):
                self.assertEqual(listed("faults", op["name"]), [fault for fault in listed("faults") if op["name"] in fault["ops"]])
                self.assertEqual(set(names("modes", op["name"])), set(op["modes"]))
                self.assertEqual(set(names("backends", op["name"])), {"auto", *op["backends"]})
        text = self.run_cli("list", "faults", "dropout_bwd", code=0).stdout
        self.assertIn("mask_shifted", text)
        self.assertNotIn("epsilon_x10", text)

    def test_modes_of_ops_without_products(self):
        text = self.run_cli("explain", "layernorm_fwd", code=0).stdout
        self.assertNotIn("FP32 products", text)
        self.assertNotIn("CUBLAS", text)
        self.assertRegex(text, r"\nfp32 .* FP32 storage, computed in FP32\n")
        self.assertRegex(text, r"\ntf32 .* computed in FP32: there are no products that the mode could round\n")
        self.assertIn("FP32 products", self.run_cli("explain", "gemm", code=0).stdout)

    def test_the_output_of_a_mode_is_the_op_s_own(self):
        text = self.run_cli("explain", "attention_fwd", code=0).stdout
        self.assertRegex(text, r"\nfp8_hybrid +fp8_e4m3 +fp8_e5m2 +fp8_e4m3 ")
        self.assertRegex(self.run_cli("explain", "gemm", code=0).stdout, r"\nfp8_hybrid +fp8_e4m3 +fp8_e5m2 +bf16 ")

    def test_the_seed_of_a_mask_that_nothing_draws(self):
        text = self.refused(self.case(op="attention_fwd", mode="bf16", params={"sq": 8, "sk": 8, "d": 8, "dropout": 0.5, "rng_seed": 7}))
        self.assertIn("rng_seed is the seed of a mask that is drawn; set dropout_mask to drawn", text)

    def test_factors_of_attention_that_fp32_does_not_hold(self):
        for name, instead in (("scale", "1 / sqrt(d)"), ("softcap", "no limit")):
            text = self.refused(self.case(op="attention_fwd", mode="bf16", params={"sq": 8, "sk": 8, "d": 8, name: 1e-300}))
            self.assertIn(f"{name} 1e-300 underflows to 0 in FP32; leave it out for {instead}", text)

    def test_a_folder_is_not_a_plan(self):
        (self.folder / "plans").mkdir()
        for command in ("validate", "run"):
            self.assertIn("plans is a folder; name a plan in it", self.run_cli(command, "plans", code=2).stderr)

    def test_a_folder_of_a_run_is_not_a_report(self):
        self.run_cli("run", self.plan(), "--device", "sim:sm_90", "--out", "done", code=0)
        for command in (["report", "done"], ["merge", "done"], ["compare", "done", "done"], ["contract", "done"]):
            self.assertIn("cannot read done: it is a folder; name done/report.json\n", self.run_cli(*command, code=3).stderr)
        self.assertIn("it is a folder; name a report in it\n", self.run_cli("report", ".", code=3).stderr)

    def test_a_seed_may_have_64_bits(self):
        self.run_cli("run", self.plan(seed=2**64 - 1), *SIM, "--json", "report.json", "--no-save", code=0)
        self.assertIn(f"seed {2**64 - 1}", self.run_cli("report", "report.json", code=0).stdout)

    def test_a_planted_fault_that_changes_nothing_is_told(self):
        cases = [{"op": "gemm", "backend": "sim", "mode": "fp32", "params": {"m": 8, "n": 8, "k": k},
                  "inputs": {"distribution": "constant", "value": 0} if k == 16 else {"distribution": "exact"}} for k in (16, 32)]
        plan, words = self.plan(cases=cases), "WARN  the planted fault changed nothing in 1 case, as in gemm/m=8,n=8,k=16/fp32/sim"
        # One in the arithmetic, one in memory; the last breaks no number of the exact case, but its precision class.
        for fault, told in (("scale_1_01", [True, None]), ("all_zero", [True, None]), ("write_past_end", [None, None]), ("race", [None, None]),
                            ("tf32_silently", [True, True])):
            done = self.run_cli("run", plan, *SIM, "--inject", fault, "--json", "report.json", "--html", "page.html", code=1)
            runs = [run for case in self.report("report.json")["cases"] for run in case["runs"]]
            self.assertEqual([run.get("fault_changed_nothing") for run in runs], told, fault)
            unseen = fault in ("scale_1_01", "all_zero")
            self.assertEqual(words in done.stdout, unseen, done.stdout)
            # A page of its own says so, too: it may be all that somebody sees of the run.
            self.run_cli("report", "report.json", "--markdown", f"{fault}.md")
            for text in ((self.folder / "page.html").read_text(), (self.folder / f"{fault}.md").read_text().replace("\\", "")):
                self.assertTrue(f"fault planted: {fault}" in text, fault)
                self.assertEqual("the planted fault changed nothing in 1 case, as in gemm/m=8" in text, unseen, fault)
        self.assertNotIn("planted fault", self.run_cli("run", plan, *SIM, "--no-save").stdout)

    def test_absurd_tolerances_are_told(self):
        absurd = [{"tolerance": {"allclose": {"rtol": 0, "atol": 1e6}}}, {"tolerance": {"allclose": {"rtol": 0, "atol": 1e-30}}},
                  {"tolerance": {"allclose": {"rtol": 1e-5, "atol": 1e-5}}}]
        shown = [self.run_cli("run", self.plan(case={"params": {"m": 16, "n": 16, "k": 32}, **more}), *SIM, "--no-save").stdout
                 for more in absurd]
        self.assertRegex(shown[0], r"WARN  the plan's allclose of 1 case: at least \S+ times the error bound: accepts what no "
                                   r"correct kernel does, as in gemm/m=16,n=16,k=32/fp32/sim\n")
        self.assertRegex(shown[1], r"WARN  the plan's allclose of 1 case: atol is \S+ ulp of a typical output: correct rounding "
                                   r"may miss it, as in gemm/")
        self.assertNotIn("allclose of", shown[2])

    def test_so_are_ulps_and_relative_norms(self):
        for limit, member, sensible in (("ulp", "ulp_over_bound", 100), ("rel_l2", "rel_l2_over_bound", 1e-6)):
            case = {"params": {"m": 16, "n": 16, "k": 32}, "mode": "bf16", "tolerance": {limit: 1000}}
            done = self.run_cli("run", self.plan(case=case), *SIM, "--json", "report.json", code=0)
            self.assertRegex(done.stdout, rf"WARN  the plan's {limit} of 1 case: at least \S+ times the error bound: accepts what "
                                          r"no correct kernel does, as in gemm/m=16,n=16,k=32/bf16/sim\n")
            output = self.report("report.json")["cases"][0]["runs"][0]["outputs"]["d"]
            self.assertGreater(output["plan_tolerance"][member], 100)
            self.assertIsNone(output["plan_tolerance"]["limit_over_bound"])
            (source,) = [criterion["source"] for criterion in output["criteria"] if criterion["limit"] == 1000]
            self.assertIn("times the error bound: accepts what no correct kernel does", source)
            case.update(mode="fp32", tolerance={limit: sensible})
            self.assertNotIn("accepts what no correct", self.run_cli("run", self.plan(case=case), *SIM, "--no-save").stdout)


if __name__ == "__main__":
    unittest.main()
