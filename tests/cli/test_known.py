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
