"""Files that te-numcheck reads and writes: which kinds it accepts, their permissions, and failures."""

import json
import os
import resource
import subprocess
import unittest

from support import CLEAN, PROGRAM, CliTest

SIM = ["--device", "sim:sm_90"]
SWEEP = {"params": {"m": 8, "n": 8, "k": {"from": 1, "to": 12, "step": 1}}}


class Overwriting(CliTest):
    def refused(self, *options, saying):
        """Nothing ran, and not even a folder was created."""
        before = sorted(path.name for path in self.folder.iterdir())
        done = self.run_cli("run", "plan.json", *SIM, *options, code=2)
        self.assertIn(saying, done.stderr)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), before)

    def test_a_plan_is_never_overwritten(self):
        self.plan("base.json")
        (self.folder / "plan.json").write_text('{"version": 1, "extends": "base.json"}')
        (self.folder / "soft.json").symlink_to("plan.json")
        os.link(self.folder / "base.json", self.folder / "hard.json")
        plans = {name: (self.folder / name).read_text() for name in ("plan.json", "base.json")}
        for option in ("--json", "--brief-json"):
            for name in ("plan.json", "./plan.json", "soft.json", "base.json", "hard.json"):
                with self.subTest(option=option, name=name):
                    self.refused(option, name, saying="which the plan is read from")
        self.assertEqual({name: (self.folder / name).read_text() for name in plans}, plans)

    def test_two_outputs_with_one_name_are_refused(self):
        self.plan()
        self.refused("--json", "r.json", "--brief-json", "r.json", saying="--json r.json and --brief-json r.json are the same file")
        self.refused("--json", "r.json", "--json", "./r.json", saying="are the same file")
        (self.folder / "out").mkdir()
        self.refused("--out", "out", "--json", "out/report.json", saying="are the same file")
        self.refused("--out", "out", "--brief-json", "out/results.jsonl", saying="are the same file")

    def test_two_outputs_may_go_to_one_device(self):
        self.run_cli("run", self.plan(), *SIM, "--json", os.devnull, "--brief-json", os.devnull, code=0)

    def test_a_report_may_replace_the_one_named_by_failed_in(self):
        self.run_cli("run", self.plan(), *SIM, "--json", "r.json", "--inject", "bit_flip", code=1)
        self.run_cli("run", "plan.json", *SIM, "--failed-in", "r.json", "--json", "r.json", code=0)
        self.assertEqual(self.report("r.json")["summary"]["pass"], 1)


class Names(CliTest):
    def test_unwritable_outputs_are_found_before_the_run(self):
        plan = self.plan()
        too_long = "x" * 256
        for option in ("--json", "--brief-json", "--out", "--keep-tensors"):
            for name in (too_long, f"{too_long}/a") if option in ("--out", "--keep-tensors") else (too_long,):
                with self.subTest(option=option):
                    done = self.run_cli("run", plan, *SIM, option, name, code=2)
                    self.assertIn("File name too long", done.stderr)
                    self.assertEqual(done.stdout, "")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["plan.json"])

    def test_a_name_may_be_as_long_as_the_file_system_allows(self):
        longest = "x" * 255
        self.run_cli("run", self.plan(), *SIM, "--json", longest, code=0)
        self.assertEqual(self.report(longest)["summary"]["pass"], 1)

    def test_no_file_replaces_a_folder_that_is_needed(self):
        plan = self.plan()
        for options in (("--json", "k", "--keep-tensors", "k"), ("--brief-json", "k", "--keep-tensors", "k/x"),
                        ("--out", "o", "--keep-tensors", "o/report.json"), ("--json", "k", "--out", "k/x")):
            done = self.run_cli("run", plan, *SIM, *options, code=2)
            self.assertIn("needs a folder there", done.stderr, options)

    def test_links_are_followed(self):
        (self.folder / "far").mkdir()
        (self.folder / "latest.json").symlink_to("far/report.json")
        (self.folder / "loop.json").symlink_to("loop.json")
        for _ in range(2):
            self.run_cli("run", self.plan(), *SIM, "--json", "latest.json", code=0)
            self.assertTrue((self.folder / "latest.json").is_symlink())
            self.assertEqual(self.report("far/report.json")["summary"]["pass"], 1)
        done = self.run_cli("run", self.plan(), *SIM, "--json", "latest.json", "--brief-json", "far/report.json", code=2)
        self.assertIn("are the same file", done.stderr)
        self.assertIn("loop.json", self.run_cli("run", self.plan(), *SIM, "--json", "loop.json", code=2).stderr)

    def test_a_link_to_an_open_file_is_not_replaced(self):
        (self.folder / "stdout").symlink_to("/proc/self/fd/1")
        with open(self.folder / "out.txt", "wb") as out:
            done = subprocess.run([PROGRAM, "run", self.plan(), *SIM, "--json", "stdout"], cwd=self.folder, env=CLEAN,
                                  stdout=out, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"--json - writes to stdout", done.stderr)
        self.assertTrue((self.folder / "stdout").is_symlink())

    def test_a_journal_that_could_not_be_started_is_removed(self):
        plan = self.plan()
        done = subprocess.run([PROGRAM, "run", plan, *SIM, "--in-process", "--out", "out"], cwd=self.folder, env=CLEAN,
                              capture_output=True, timeout=60,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
        self.assertEqual(done.returncode, 3)
        self.assertNotIn(b"--resume", done.stderr)
        self.assertFalse((self.folder / "out" / "results.jsonl").exists())
        self.run_cli("run", plan, *SIM, "--out", "out", code=0)

    def test_small_cases_run_under_a_small_file_size_limit(self):
        done = subprocess.run([PROGRAM, "run", self.plan(), *SIM, "--out", "out"], cwd=self.folder, env=CLEAN,
                              capture_output=True, timeout=60,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20)))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_runs_in_a_deleted_working_folder(self):
        plan = self.folder / self.plan()
        gone = self.folder / "gone"
        gone.mkdir()
        done = subprocess.run(["sh", "-c", f'cd gone && rmdir ../gone && exec "{PROGRAM}" run {plan} --device sim:sm_90 --no-save'],
                              cwd=self.folder, env=CLEAN, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_pipe_that_nobody_reads_is_an_error(self):
        os.mkfifo(self.folder / "pipe")
        done = self.run_cli("run", self.plan(), *SIM, "--json", "pipe", code=3)
        self.assertIn("cannot write pipe: nobody reads it", done.stderr)
        self.assertIn("1 pass", done.stdout, "results are shown")

    def test_a_pipe_that_somebody_reads_gets_the_report(self):
        os.mkfifo(self.folder / "pipe")
        reader = subprocess.Popen(["cat", "pipe"], cwd=self.folder, stdout=subprocess.PIPE)
        self.run_cli("run", self.plan(), *SIM, "--json", "pipe", code=0)
        self.assertEqual(json.loads(reader.communicate(timeout=60)[0])["summary"]["pass"], 1)

    def test_the_umask_decides_who_may_read(self):
        plan = self.plan()
        for mask, mode in ((0o022, 0o644), (0o077, 0o600), (0o002, 0o664)):
            name = f"out{mask:o}"
            command = [PROGRAM, "run", plan, *SIM, "--out", name, "--json", f"{name}.json", "--keep-tensors", f"{name}/tensors"]
            subprocess.run(command, cwd=self.folder, env=CLEAN, umask=mask, check=True, capture_output=True)
            written = [self.folder / f"{name}.json", *(path for path in (self.folder / name).rglob("*") if path.is_file())]
            self.assertEqual(len(written), 4)
            for path in written:
                self.assertEqual(path.stat().st_mode & 0o777, mode, path)

    def test_simultaneous_runs_get_a_folder_each(self):
        plan = self.plan(case=SWEEP)
        runs = [subprocess.Popen([PROGRAM, "run", plan, *SIM], cwd=self.folder, env=CLEAN, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(6)]
        for run in runs:
            _, words = run.communicate(timeout=120)
            self.assertEqual(run.returncode, 0, words.decode())
        folders = sorted(self.folder.glob("te-numcheck-*"))
        self.assertEqual(len(folders), 6)
        for folder in folders:
            self.assertEqual(json.loads((folder / "report.json").read_text())["summary"]["pass"], 12)

    def test_no_folder_is_left_if_nothing_ran(self):
        self.run_cli("run", self.plan(), *SIM, "--filter", "nothing has this name", code=4)
        self.run_cli("run", "plan.json", "--device", "sim:sm_90", "--inject", "no_such_fault", code=2)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["plan.json"])


class Limits(CliTest):
    def test_a_file_size_limit_causes_an_error_not_a_signal(self):
        plan = self.plan(case={"params": {"m": 8, "n": 8, "k": {"from": 1, "to": 40, "step": 1}}})
        done = subprocess.run([PROGRAM, "run", plan, *SIM, "--in-process", "--out", "out"], cwd=self.folder, env=CLEAN,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)))
        self.assertEqual(done.returncode, 3, done.stderr.decode())
        self.assertIn(b"File too large", done.stderr)
        self.assertIn(b"40 cases: 40 pass", done.stdout, "results are shown nevertheless")
        self.assertEqual([path.name for path in (self.folder / "out").iterdir()], ["results.jsonl"])
        self.run_cli("run", plan, *SIM, "--resume", "out", code=0)
        self.assertEqual(self.report()["summary"]["pass"], 40)


class ClosedStreams(CliTest):
    def run_closed(self, closed, *arguments):
        """Runs with some of the standard streams closed, as `program >&-` does."""
        done = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", PROGRAM, *arguments], cwd=self.folder, env=CLEAN,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        return done.returncode, done.stderr.decode()

    def test_a_closed_standard_output_is_an_error(self):
        plan = self.plan()
        for arguments in (["list", "modes"], ["--version"], ["validate", plan], ["schema", "plan"],
                          ["run", plan, *SIM, "--no-save"], ["run", plan, *SIM, "--json", "-"]):
            with self.subTest(arguments=arguments):
                code, words = self.run_closed(">&-", *arguments)
                self.assertEqual(code, 3, words)
                self.assertIn("cannot write to standard output: it is closed", words)

    def test_the_report_is_complete_and_contains_nothing_else(self):
        plan = self.plan(case=SWEEP)
        for number, (closed, expected) in enumerate(((">&-", 3), ("<&- >&- 2>&-", 3), ("2>&-", 0), ("<&-", 0))):
            with self.subTest(closed=closed):
                code, words = self.run_closed(closed, "run", plan, *SIM, "--out", f"out{number}", "--json", f"{number}.json")
                self.assertEqual(code, expected, words)
                for path in (f"out{number}/report.json", f"{number}.json"):
                    self.assertEqual(self.report(path)["summary"]["pass"], 12)
                lines = (self.folder / f"out{number}" / "results.jsonl").read_text().splitlines()
                self.assertEqual([len(lines), *{type(json.loads(line)) for line in lines}], [13, dict])


class Reading(CliTest):
    def quickly(self, *arguments, code):
        done = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, env=CLEAN, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=20)
        words = done.stderr.decode()
        self.assertEqual(done.returncode, code, words)
        return words

    def test_only_regular_files_are_read(self):
        plan = self.plan()
        os.mkfifo(self.folder / "pipe")
        for path, what in (("pipe", "it is a pipe"), ("/dev/zero", "it is a device"), (".", "it is a folder"),
                           ("/proc/self/environ", "it shows the state of the system")):
            with self.subTest(path=path):
                self.assertIn(what, self.quickly("validate", path, code=2))
                self.assertIn(what, self.quickly("run", plan, *SIM, "--failed-in", path, code=2))

    def test_a_pipe_is_not_a_journal(self):
        self.plan()
        (self.folder / "out").mkdir()
        os.mkfifo(self.folder / "out" / "results.jsonl")
        self.assertIn("results.jsonl", self.quickly("run", "plan.json", *SIM, "--resume", "out", code=3))

    def test_credentials_in_json_are_not_quoted(self):
        (self.folder / "docker.json").write_text('{"auths": {"registry": {"auth": "c2VjcmV0"}}}')
        (self.folder / "leak.json").write_text('{"version": 1, "extends": "docker.json", "cases": []}')
        done = self.run_cli("validate", "leak.json", code=2)
        self.assertIn("it is not a plan", done.stderr)
        self.assertNotIn("c2VjcmV0", done.stdout + done.stderr)

    def test_what_a_plan_extends_is_not_quoted_unless_it_is_a_plan(self):
        (self.folder / "secret").write_text("TOKEN=hunter2\n")
        for name in ("secret", "/proc/self/environ"):
            (self.folder / "plan.json").write_text(json.dumps({"version": 1, "extends": name}))
            done = self.run_cli("validate", "plan.json", env={"TOKEN": "hunter2"}, code=2)
            self.assertIn("cannot read", done.stderr)
            self.assertNotIn("hunter2", done.stderr)

    def test_endless_brackets_do_not_crash(self):
        plan = self.plan()
        (self.folder / "deep.json").write_text("[" * 131_000)
        self.assertIn("nests deeper", self.quickly("run", plan, *SIM, "--failed-in", "deep.json", code=2))
        self.run_cli("run", plan, *SIM, "--out", "out", code=0)
        with open(self.folder / "out" / "results.jsonl", "a") as journal:
            journal.write("[" * 100_000 + "\n")
        self.assertIn("results.jsonl:3: damaged", self.quickly("run", plan, *SIM, "--resume", "out", code=0))
        done = self.run_cli("exec", *SIM, stdin=b"[" * 100_000 + b"\n", code=2)
        self.assertIn("stdin:1: this line is not JSON", done.stderr)


class ChangedJournal(CliTest):
    def test_a_changed_line_runs_again_and_says_so(self):
        plan = self.plan(case=SWEEP)
        self.run_cli("run", plan, *SIM, "--out", "out", code=0)
        whole = self.without_times(self.report())
        journal = self.folder / "out" / "results.jsonl"
        lines = journal.read_text().splitlines(keepends=True)
        lines[4] = lines[4].replace('"status":"pass"', '"status":"fail"')
        lines[7] = lines[8]
        journal.write_text("".join(lines))
        done = self.run_cli("run", plan, *SIM, "--resume", "out", code=0)
        self.assertIn("results.jsonl:5: damaged and ignored; its case runs again (its checksum does not match)", done.stderr)
        self.assertEqual(self.without_times(self.report()), whole)
        self.assertEqual(len(journal.read_text().splitlines()), 13 + 2)

    def test_a_changed_first_line_resumes_nothing(self):
        plan = self.plan(case=SWEEP)
        self.run_cli("run", plan, *SIM, "--out", "out", code=0)
        journal = self.folder / "out" / "results.jsonl"
        journal.write_text(journal.read_text().replace('"option repeat":"', '"option repeat":"1', 1))
        done = self.run_cli("run", plan, *SIM, "--resume", "out", code=3)
        self.assertIn("damaged first line", done.stderr)


if __name__ == "__main__":
    unittest.main()
