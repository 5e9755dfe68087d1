"""Known failures: what excuses, what expires, what passes, and that each of them is said where people look."""

import datetime
import json
import unittest

from support import CliTest

SIM = ["--device", "sim:sm_90"]
TAIL = "the last 1 of k is missing"


def day(offset):
    return (datetime.datetime.now(datetime.timezone.utc).date() + datetime.timedelta(days=offset)).isoformat()


class KnownTest(CliTest):
    def known(self, *entries, name="known.json"):
        """Writes a file of known issues, one entry per line: the first is on line 2, column 1."""
        lines = ",\n".join(json.dumps({"op": "gemm", "reason": "tracked as 12", **entry}) for entry in entries)
        (self.folder / name).write_text('{"version": 1, "known_issues": [\n' + lines + "]}")
        return name

    def run_known(self, *arguments, code, entries=({},), plan=None, env=None):
        return self.run_cli("run", plan or self.plan(), *SIM, "--known", self.known(*entries), "--json", "report.json",
                            *arguments, code=code, env=env)

    def xfail(self):
        return self.report("report.json")["cases"][0]["xfail"]


class Entries(KnownTest):
    def test_an_excuse_is_listed_with_its_place_and_link(self):
        link = "https://example.org/issues/12?a=1"
        done = self.run_known("--inject", "missing_k_tail", code=4, entries=[{"link": link, "expires": day(90)}])
        self.assertIn(f"excuses   known.json:2:1  1 case, until {day(90)}\n            tracked as 12  {link}\n", done.stdout)
        self.assertEqual(self.xfail() | {"expires": ""}, {"reason": "tracked as 12", "expires": "", "link": link,
                                                          "file": "known.json", "line": 2, "column": 1})

    def test_the_long_name_of_the_option_is_the_same(self):
        done = self.run_cli("run", self.plan(), *SIM, "--known-issues", self.known({}), "--inject", "missing_k_tail",
                            "--no-save", code=4)
        self.assertIn("1 xfail", done.stdout)

    def test_an_expired_entry_excuses_nothing_and_says_so(self):
        valid, expired = {"cause": "another cause"}, {"expires": day(-1)}
        done = self.run_known("--inject", "missing_k_tail", code=1, entries=[valid, expired])
        self.assertIn(f"EXPIRED   known.json:3:1  expired on {day(-1)}; 1 case fails as it says\n", done.stdout)
        self.assertIn("give the entry a later date", done.stdout)
        self.assertTrue(self.xfail()["expired"])
        self.assertIn(f"its known issue at known.json:3:1 expired on {day(-1)}", self.report("report.json")["cases"][0]["reason"])
        self.run_known("--inject", "missing_k_tail", code=4, entries=[valid, {"expires": day(0)}])

    def test_an_entry_of_a_plan_expires_as_well(self):
        plan = self.plan(case={"xfail": [{"reason": "tracked as 12", "expires": "2020-01-31"}]})
        done = self.run_cli("run", plan, *SIM, "--no-save", "--inject", "missing_k_tail", code=1)
        self.assertRegex(done.stdout, r"EXPIRED   plan.json:1:\d+  expired on 2020-01-31; 1 case fails")

    def test_an_entry_whose_case_passes_fails_the_run_and_says_so(self):
        done = self.run_known(code=1)
        self.assertIn("PASSES    known.json:2:1  1 case passes that should fail\n            tracked as 12\n"
                      '            delete the entry, or limit it with "match", "cause" or "error"\n', done.stdout)

    def test_absolute_paths_stay_out_of_the_report(self):
        known = self.folder / self.known({"expires": "2020-01-31"})
        self.run_cli("run", self.plan(), *SIM, "--known", known, "--inject", "missing_k_tail", "--out", "out", code=1)
        self.assertNotIn(str(self.folder), (self.folder / "out/report.json").read_text())

    def test_hostile_texts_stay_on_their_lines(self):
        text = "x\x1b[2J\n::error::y"
        done = self.run_known("--inject", "missing_k_tail", code=4, entries=[{"reason": text, "link": text}])
        self.assertNotIn("\x1b", done.stdout)
        self.assertNotRegex(done.stdout, r"(?m)^::error")


class Expired(KnownTest):
    """An entry that has expired is never lost, whatever becomes of its cases."""

    OLD = {"expires": "2020-01-31"}
    SAID = "EXPIRED   known.json:2:1  expired on 2020-01-31; "

    def said(self, *arguments, code, entries, **options):
        done = self.run_known(*arguments, code=code, entries=entries, **options)
        return done.stdout

    def test_cases_that_are_unsupported(self):
        plan = self.plan(case={"backend": "cudnn", "params": {"m": [8, 16], "n": 8, "k": 8}})
        for entry in ({}, {"cause": TAIL}, {"error": "CUDNN_STATUS"}):
            said = self.said(code=4, plan=plan, entries=[self.OLD | entry])
            self.assertIn(self.SAID + "none of its 2 cases fails as it says: 2 unsupported\n            tracked as 12\n"
                          "            delete the entry, or give it a later date\n", said, entry)

    def test_cases_that_are_skipped(self):
        said = self.said("--memory", "1KiB", code=4, entries=[self.OLD])
        self.assertIn(self.SAID + "its only case does not fail as it says: 1 skipped\n", said)

    def test_cases_that_pass_or_fail_otherwise(self):
        self.assertIn(self.SAID + "its only case does not fail as it says: 1 pass\n",
                      self.said(code=0, entries=[self.OLD | {"cause": TAIL}]))
        self.assertIn(self.SAID + "its only case does not fail as it says: 1 fail\n",
                      self.said("--inject", "scale_1_01", code=1, entries=[self.OLD | {"cause": TAIL}]))

    def test_beside_an_entry_that_excuses(self):
        said = self.said("--inject", "missing_k_tail", code=4, entries=[self.OLD, {}])
        self.assertIn("excuses   known.json:3:1  1 case\n", said)
        self.assertIn(self.SAID + "its only case does not fail as it says: 1 xfail\n", said)

    def test_one_that_fails_or_passes_somewhere_is_told_once(self):
        plan = self.plan(case={"params": {"m": 16, "n": 16, "k": [32, 64]}, "backend": ["sim", "cudnn"]})
        fault = ["--inject", "missing_k_tail", "--inject-case", "gemm/m=16,n=16,k=32/fp32/sim"]
        for arguments, entry in [(fault, {"match": {"backend": ["sim", "cudnn"], "k": 32}}), ([], {})]:
            self.assertEqual(self.said(*arguments, code=1, plan=plan, entries=[self.OLD | entry]).count("known.json:2:1"), 1)

    def test_not_one_of_another_device(self):
        said = self.said(code=0, entries=[self.OLD | {"cause": TAIL, "match": {"architecture": "sm_80"}}])
        self.assertNotIn("EXPIRED", said)

    def test_paths_stay_out_of_the_report(self):
        known = self.folder / self.known(self.OLD | {"cause": TAIL})
        self.run_cli("run", self.plan(), *SIM, "--known", known, "--out", "out", code=0)
        self.assertEqual(self.report()["cases"][0]["expired_issues"][0]["file"], "known.json")

    def test_brief_reports_and_their_merger_say_the_same(self):
        plan = self.plan(case={"params": {"m": 16, "n": 16, "k": list(range(8, 40))}, "backend": ["sim", "cudnn"]})
        known = self.known(self.OLD | {"match": {"backend": "cudnn"}}, self.OLD | {"cause": TAIL, "match": {"backend": "sim"}},
                           {"match": {"k": 9, "backend": "sim"}, "reason": "passes"})
        whole = self.run_cli("run", plan, *SIM, "--known", known, "--no-save", "--inject", "missing_k_tail", "--inject-case",
                             "gemm/m=16,n=16,k=8/fp32/sim", code=1).stdout
        table = whole[whole.index("known issues\n"):].split("\n\n")[0]
        self.assertEqual(table.count("EXPIRED"), 2)
        self.assertIn("32 unsupported", table)
        self.assertIn("1 case passes that should fail", table)
        for i in (1, 2, 3):
            self.run_cli("run", plan, *SIM, "--known", known, "--shard", f"{i}/3", "--inject", "missing_k_tail", "--inject-case",
                         "gemm/m=16,n=16,k=8/fp32/sim", "--json", f"{i}.json", "--brief-json", f"brief-{i}.json")
        for form in ("", "brief-"):
            merged = self.run_cli("merge", *(f"{form}{i}.json" for i in (1, 2, 3)), code=1).stdout
            self.assertIn(table, merged, form)


class Errors(KnownTest):
    """The fault late_refusal: a case that was accepted ends in an error."""

    REFUSAL = "refuses the case after it has accepted it"

    def late(self, *entries, fault="late_refusal", code):
        done = self.run_known("--inject", fault, code=code, entries=entries)
        return done, self.report("report.json")["cases"][0]["status"]

    def test_only_an_entry_that_names_the_error_excuses_it(self):
        for entry, status, code in [({"error": self.REFUSAL}, "xfail", 4), ({"error": "CUDNN_STATUS"}, "error", 3),
                                    ({}, "error", 3), ({"cause": TAIL}, "error", 3)]:
            done, found = self.late(entry, code=code)
            self.assertEqual(found, status, entry)
            self.assertEqual("excuses   known" in done.stdout, status == "xfail", entry)
        self.assertEqual(self.late({"error": self.REFUSAL}, {}, code=3)[1], "error",
                         "an entry for the whole case expects wrong numbers")

    def test_it_expires(self):
        done, status = self.late({"error": self.REFUSAL, "expires": day(-3)}, code=3)
        self.assertEqual(status, "error")
        self.assertIn(f"EXPIRED   known.json:2:1  expired on {day(-3)}; 1 case fails as it says", done.stdout)

    def test_it_neither_excuses_wrong_numbers_nor_expects_an_error(self):
        self.assertEqual(self.late({"error": self.REFUSAL}, fault="missing_k_tail", code=1)[1], "fail")
        self.run_known(code=0, entries=[{"error": self.REFUSAL}])

    def test_timeouts_are_never_excused(self):
        plan = self.plan(case={"params": {"m": 2048, "n": 2048, "k": 4096}})
        self.run_known("--timeout", "1ms", code=3, plan=plan, entries=[{"error": "the case took longer"}, {"error": "time limit"},
                                                                       {"error": "timeout after"}, {}])
        self.assertEqual(self.report("report.json")["cases"][0]["status"], "timeout")

    def test_mistakes(self):
        for entry, words in [({"error": "CUDNN"}, '"error" must be a text of 8 or more characters'),
                             ({"error": 7}, '"error" must be'), ({"link": ""}, '"link" must be'),
                             ({"error": self.REFUSAL, "cause": TAIL}, 'a "cause" or an "error", not both')]:
            done = self.run_cli("validate", self.plan(), "--known", self.known(entry), code=2)
            self.assertIn(words, done.stderr)
            self.assertIn("known.json:2:", done.stderr)


class Validate(KnownTest):
    def validate(self, *arguments, code=0):
        return self.run_cli("validate", *arguments, code=code).stderr

    def test_warns_of_what_has_expired_or_soon_will(self):
        known = self.known({"expires": day(-1)}, {"expires": day(0)}, {"expires": day(1)}, {"expires": day(30)},
                           {"expires": day(31)}, {})
        said = self.validate(self.plan(), "--known", known)
        for line, words in [(2, f"expired on {day(-1)}: it excuses nothing any more"), (3, "expires at the end of today"),
                            (4, "expires tomorrow"), (5, "expires in 30 days")]:
            self.assertRegex(said, rf"(?m)^known.json:{line}:\d+: warning: this known failure {words}")
        self.assertNotIn("known.json:6:", said)
        self.assertNotIn("expire", self.run_cli("list", "cases", self.plan(), "--known", known, code=0).stderr)

    def test_warns_of_entries_of_a_plan(self):
        plan = self.plan(case={"xfail": [{"reason": "tracked as 12", "expires": "2020-01-31"}]},
                         defaults={"xfail": [{"reason": "overridden", "expires": "2020-01-30"}]})
        self.assertRegex(self.validate(plan), r"(?m)^plan.json:1:\d+: warning: this known failure expired on 2020-01-31")
        self.assertNotIn("2020-01-30", self.validate(plan))

    def test_notes_entries_that_match_no_case(self):
        known = self.known({"match": {"k": 3}}, {}, {"match": {"mode": "bf16"}})
        self.assertIn("note: known.json: 2 of 3 known issues match no case of the plan; -v shows where they are\n",
                      self.validate(self.plan(), "--known", known))
        self.assertIn("  known.json:2:1\n  known.json:4:1\n", self.validate(self.plan(), "--known", known, "-v"))
        self.assertEqual(self.validate(self.plan(), "--known", self.known({})), "")

    def test_the_shipped_file(self):
        said = self.validate("quick", "--known", "configs/known_issues.json")
        self.assertNotIn("warning", said)


if __name__ == "__main__":
    unittest.main()
