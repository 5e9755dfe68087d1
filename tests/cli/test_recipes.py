"""The recipes in configs/ci, as far as a machine without those services can run them: files are parsed, and the commands in
them run on the simulated device with the variables of the service, with and without a planted fault."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

from support import CLEAN, PROGRAM, SOURCE, TIMEOUT_S, CliTest

try:
    import yaml
except ImportError:
    yaml = None

RECIPES = SOURCE / "configs" / "ci"
DIGEST = "0" * 32


class RecipeTest(CliTest):
    def setUp(self):
        super().setUp()
        # A program of that name on PATH that can be told to plant a fault: what a bad library would do.
        (self.folder / "bin").mkdir()
        wrapper = self.folder / "bin" / "te-numcheck"
        wrapper.write_text(f'#!/bin/sh\nif [ "$1" = run ]; then exec "{PROGRAM}" "$@" $PLANTED; fi\nexec "{PROGRAM}" "$@"\n')
        wrapper.chmod(0o755)
        self.variables = {**CLEAN, "PATH": f"{wrapper.parent}:{os.environ['PATH']}", "TE_NUMCHECK_DEVICE": "sim:sm_90"}
        self.work = self.folder / "checkout"
        (self.work / "baselines").mkdir(parents=True)
        (self.work / "known_issues.json").write_text('{"version": 1, "known_issues": []}')

    def shell(self, script, planted="", code=0, **variables):
        """Runs a script as the services do: with sh -e, in the checkout."""
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=self.work, capture_output=True, text=True,
                              env={**self.variables, "PLANTED": planted, **variables}, stdin=subprocess.DEVNULL,
                              timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, code, f"{script}\n{done.stdout}\n{done.stderr}")
        return done

    def make_baseline(self, recipe):
        """By the command in the recipe's comment."""
        command = re.search(r"(?m)^(?:#|//)\s+(te-numcheck run .*--brief-json .*)$", (RECIPES / recipe).read_text()).group(1)
        self.shell(command)
        self.assertTrue((self.work / "baselines" / "numerics.json").exists(), command)

    def load(self, recipe):
        if yaml is None:
            self.skipTest("python3-yaml is not installed")
        return yaml.safe_load((RECIPES / recipe).read_text())


class GitHub(RecipeTest):
    VARIABLES = {"GITHUB_ACTIONS": "true", "CI": "true", "GITHUB_STEP_SUMMARY": "step-summary.md"}

    def steps(self):
        workflow = self.load("github-actions.yml")
        self.assertIn(True, workflow, '"on", which YAML 1.1 reads as true')
        (job,) = workflow["jobs"].values()
        for step in job["steps"]:
            self.assertEqual(len({"uses", "run"} & set(step)), 1, step)
            self.assertRegex(step.get("uses", "a/b@v1"), r"^[\w.-]+/[\w.-]+@v\d+$")
        return job["steps"]

    def run_steps(self, planted="", code=0):
        *before, last = [step["run"] for step in self.steps() if "run" in step]
        for script in before:
            self.shell(script, **self.VARIABLES)
        return self.shell(last, planted, code, **self.VARIABLES)

    def test_a_good_library(self):
        self.make_baseline("github-actions.yml")
        done = self.run_steps()
        self.assertNotIn("::error", done.stderr)
        self.assertIn("Against the baseline numerics.json: ", (self.work / "step-summary.md").read_text())

    def test_a_bad_library(self):
        self.make_baseline("github-actions.yml")
        done = self.run_steps("--inject scale_1_01", code=1)
        self.assertIn("::error title=te-numcheck%3A fail::gemm/", done.stderr)
        self.assertIn("newly failing", (self.work / "step-summary.md").read_text())

    def test_what_is_uploaded_exists_after_a_failure_too(self):
        self.make_baseline("github-actions.yml")
        self.run_steps("--inject scale_1_01", code=1)
        (upload,) = [step for step in self.steps() if "upload-artifact" in step.get("uses", "")]
        self.assertEqual(upload["if"], "always()")
        for name in upload["with"]["path"].split():
            self.assertTrue((self.work / name).exists(), name)

    def test_without_a_baseline_nothing_runs(self):
        done = self.shell([step["run"] for step in self.steps() if "run" in step][-1], code=2, **self.VARIABLES)
        self.assertIn("::error::--baseline: cannot compare with the baseline", done.stderr)
        self.assertFalse((self.work / "report.json").exists())


class GitLab(RecipeTest):
    def run_jobs(self, planted="", shard_codes=(0,), code=0, leave_out=None):
        if "\n  merge " not in self.run_cli("--help").stdout:
            self.skipTest("there is no merge")
        jobs = self.load("gitlab-ci.yml")
        numerics, verdict = jobs["numerics"], jobs["numerics-verdict"]
        self.assertEqual([numerics["stage"], verdict["stage"]], jobs["stages"])
        self.assertEqual(verdict["needs"], ["numerics"])
        total = numerics["parallel"]
        for index in range(1, total + 1):
            if index != leave_out:
                variables = {"CI": "true", "CI_NODE_INDEX": str(index), "CI_NODE_TOTAL": str(total)}
                self.shell("\n".join(numerics["script"]), planted, code=shard_codes[0], **variables)
                for name in ("report", "junit"):
                    self.assertTrue(list((self.work / "results").glob(f"{name}-{index}.*")), index)
        done = self.shell("\n".join(verdict["script"]), code=code)
        for name in verdict["artifacts"]["paths"] if code == 0 else []:
            self.assertTrue((self.work / name).exists(), name)
        return done

    def test_a_good_library(self):
        self.make_baseline("gitlab-ci.yml")
        self.assertRegex(self.run_jobs().stdout, r"(?m)^\d+ identical$")

    def test_a_bad_library(self):
        self.make_baseline("gitlab-ci.yml")
        self.run_jobs("--inject nan_written", shard_codes=(1,), code=1)

    def test_a_shard_that_is_missing(self):
        self.make_baseline("gitlab-ci.yml")
        self.run_jobs(leave_out=3, code=2)


class Jenkins(RecipeTest):
    def scripts(self):
        """The shell commands of its sh steps, in order."""
        text = (RECIPES / "Jenkinsfile").read_text()
        found = re.findall(r"\bsh(?:\(returnStatus: true, script:)? ?(?:'''(.*?)'''|'([^'\n]*)')", text, re.DOTALL)
        return [three or one for three, one in found]

    def test_the_file_is_balanced(self):
        text = (RECIPES / "Jenkinsfile").read_text()
        text = re.sub(r"//.*|'''.*?'''|'[^'\n]*'|\"[^\"\n]*\"", "", re.sub(r"https?://\S+", "", text), flags=0)
        text = re.sub(r"'''.*?'''", "", text, flags=re.DOTALL)
        open_ones = []
        for letter in text:
            if letter in "{([":
                open_ones.append(letter)
            elif letter in "})]":
                self.assertTrue(open_ones, "closed, but not open")
                self.assertEqual(open_ones.pop() + letter, {"}": "{}", ")": "()", "]": "[]"}[letter])
        self.assertEqual(open_ones, [])
        self.assertTrue(text.strip().startswith("pipeline {"))
        for step in ("agent {", "stages {", "post {", "always {", "junit testResults"):
            self.assertIn(step, text)

    def test_its_steps_run(self):
        self.make_baseline("Jenkinsfile")
        validate, run = self.scripts()
        self.shell(validate)
        self.shell(run)
        self.shell(run, "--inject scale_1_01", code=1)
        self.assertIn("<failure", (self.work / "junit.xml").read_text())


class CTest(RecipeTest):
    def setUp(self):
        super().setUp()
        if shutil.which("cmake") is None or shutil.which("ctest") is None:
            self.skipTest("cmake is not installed")

    def ctest(self, *arguments, planted="", code=0):
        self.shell(f"cmake -S {RECIPES / 'ctest'} -B numerics >configure.log")
        return self.shell(f"ctest --test-dir numerics {' '.join(arguments)}", planted, code).stdout

    def test_plans_pass_and_what_verifies_nothing_is_skipped(self):
        plan = self.plan("checkout/unsupported.json", case={"backend": "cublaslt"})
        self.shell(f"cmake -S {RECIPES / 'ctest'} -B numerics '-DTE_NUMCHECK_PLANS=quick;{self.folder / plan}' >configure.log")
        done = self.shell("ctest --test-dir numerics --output-junit results.xml")
        self.assertRegex(done.stdout, r"numerics_quick \.+ +Passed")
        self.assertRegex(done.stdout, r"unsupported_json \.+\*\*\*Skipped")
        self.assertTrue((self.work / "numerics" / "quick.xml").exists())

    def test_a_bad_library(self):
        self.assertRegex(self.ctest("-R", "quick", planted="--inject scale_1_01", code=8), r"numerics_quick \.+\*\*\*Failed")

    def test_a_test_runs_on_the_gpu_that_it_was_given(self):
        script = RECIPES / "ctest" / "on_assigned_gpu.sh"
        for given, device in [("id:3,slots:1", "cuda:3"), ("", "sim:sm_90")]:
            done = self.shell(f"sh {script} sh -c 'echo $TE_NUMCHECK_DEVICE'", CTEST_RESOURCE_GROUP_0_GPUS=given)
            self.assertEqual(done.stdout, device + "\n")
        self.shell(f"cmake -S {RECIPES / 'ctest'} -B numerics >configure.log")
        self.assertIn("RESOURCE_GROUPS", self.shell("ctest --test-dir numerics --show-only=json-v1").stdout)


class Complete(unittest.TestCase):
    def test_every_recipe_has_a_test(self):
        found = {str(path.relative_to(RECIPES)) for path in RECIPES.rglob("*") if path.is_file()}
        text = pathlib.Path(__file__).read_text()
        for name in found:
            self.assertIn(pathlib.Path(name).parts[0], text, name)


if __name__ == "__main__":
    unittest.main()
