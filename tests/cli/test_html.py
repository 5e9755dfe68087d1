"""The HTML view: a page that is complete without scripts, and what a browser makes of it."""

import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import hostile
from support import CLEAN, CliTest

SIM = ["--device", "sim:sm_90", "--no-save"]
BROWSER = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)
VOID = {"meta", "br", "col", "input", "hr", "img", "link"}


class Page(html.parser.HTMLParser):
    """Checks that elements are closed in order, and collects what tests ask for."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.faults, self.open, self.ids, self.links, self.outside, self.words = [], [], [], [], [], []
        self.feed(text)
        self.close()
        if self.open:
            self.faults.append(f"never closed: {self.open}")

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if len(values) != len(attributes):
            self.faults.append(f"an attribute twice in {self.get_starttag_text()}")
        self.ids += [values["id"]] if "id" in values else []
        if tag == "a":
            self.links.append(values["href"])
        self.outside += [value for name, value in attributes if name in ("src", "srcset", "data", "action")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()} closes nothing")

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


class HtmlTest(CliTest):
    @classmethod
    def setUpClass(cls):
        """One report of each kind for all tests."""
        cls.reports = tempfile.TemporaryDirectory(prefix="te-numcheck-html-")
        cls.addClassCleanup(cls.reports.cleanup)

    def made(self, name, *arguments, code, cases=None):
        """report.json, brief.json and page.html of a run, made once."""
        folder = os.path.join(self.reports.name, name)
        if not os.path.exists(folder):
            os.mkdir(folder)
            case = {"mode": ["bf16", "fp32"], "params": {"m": 128, "n": 128, "k": [32, 64], "bias": True},
                    "environment": [{}, {"NVIDIA_TF32_OVERRIDE": "1"}]}
            plan = self.plan(f"{name}.json", case=case) if cases is None else self.plan(f"{name}.json", cases=cases)
            self.run_cli("run", plan, *SIM, *arguments, "--json", f"{folder}/report.json", "--brief-json", f"{folder}/brief.json",
                         "--html", f"{folder}/page.html", code=code)
        return folder

    def passing(self):
        return self.made("passing", code=0)

    def failing(self, fault="transposed_output"):
        return self.made(fault, "--inject", fault, code=1)

    def page(self, path):
        text = pathlib.Path(path).read_text()
        page = Page(text)
        self.assertEqual(page.faults, [])
        self.assertEqual(page.outside, [])
        for link in page.links:
            self.assertTrue(link.startswith("#") and link[1:] in page.ids, link)
        self.assertIsNone(hostile.FORBIDDEN.search(text))
        return page

    def rendered(self, report):
        """The page of a report that was changed."""
        (self.folder / "report.json").write_text(json.dumps(self.counted(report)))
        self.run_cli("report", "report.json", "--html", "page.html", code=0)
        return self.page(self.folder / "page.html")


class Html(HtmlTest):
    def test_a_passing_report(self):
        page = self.page(self.passing() + "/page.html")
        self.assertIn("All 8 judged cases pass", page.text)
        self.assertIn("What NVIDIA_TF32_OVERRIDE changes", page.text)
        self.assertIn("<td>sim, predicted</td>", pathlib.Path(self.passing(), "page.html").read_text())
        self.assertNotIn("failures", page.ids)
        self.assertIn("group-gemm.bf16", page.ids)

    def test_what_was_required(self):
        report = json.loads(pathlib.Path(self.passing(), "report.json").read_text())
        self.assertNotIn("gates", self.rendered(report).ids)
        case = report["cases"][0]
        side = {"status": "pass", "error_over_limit": 0.25}
        change = {"digest": case["digest"], "id": case["id"], "change": "worse", "regression": True, "base": side, "new": side,
                  "changed_outputs": ["d"], "implementation": "algo 67 -> <algo 71>", "reason": ""}
        counts = {name: 0 for name in ("newly failing", "gone", "worse", "changed status", "better", "same", "fixed", "new", "identical")}
        report.update(
            gates={"fail_on": ["warn"]}, budget={"limit_s": 20, "not_started": 3},
            contract={"promised": 2, "kept": 1, "not_selected": 0, "absent_libraries": ["cudnn 9.14"],
                      "broken": [{"id": "gemm/<x>", "status": "missing", "reason": "the run has no such case"}]},
            comparison={"baseline": "h200.json", "sentence": "3 worse", "summary": {**counts, "regressions": 3},
                        "settings": ["driver: 1 -> 2"], "regressions": [change]})
        page = self.rendered(report)
        self.assertIn("gates", page.ids)
        for words in ("These fail the run as well", "3 cases skipped", "the budget of 20 s", "The contract is broken", "1 of 2 promised cases",
                      "It names cudnn 9.14, which is not here", "gemm/<x>", "Against the baseline h200.json: 3 worse", "algo 67 -> <algo 71>",
                      "driver: 1 -> 2", "2 more regressions"):
            self.assertIn(words, page.text)

    def test_a_failing_report(self):
        page = self.page(self.failing() + "/page.html")
        self.assertIn("8 of 8 judged cases fail", page.text)
        self.assertIn("--inject transposed_output --case", page.text)
        self.assertIn("mirrored at the diagonal", page.text)

    def test_every_fault_of_the_bar_is_named_by_its_picture(self):
        for fault, shape in {"transposed_output": "mirrored", "swapped_rows": "whole rows", "missing_k_tail": "woven",
                             "stale_tile": "a block", "unwritten_tile": "a block", "bias_missing": "stripes down"}.items():
            text = self.page(self.failing(fault) + "/page.html").text
            self.assertEqual(text.count("Looks like " + shape), text.count("Looks like"), (fault, text))
            self.assertGreater(text.count("Looks like"), 0)

    def test_later_pages_equal_that_of_the_run(self):
        for folder in [self.passing(), self.failing()]:
            self.run_cli("report", f"{folder}/report.json", "--html", "later.html", code=0)
            self.assertEqual((self.folder / "later.html").read_bytes(), pathlib.Path(folder, "page.html").read_bytes())

    def test_steps_are_drawn(self):
        case = {"op": "fp8_recipe", "mode": "fp32", "backend": "sim", "params": {"steps": 60, "tensors": 2, "course": ["spiking", "special"]}}
        folder = self.made("steps", code=0, cases=[case])
        page = self.page(folder + "/page.html")
        self.assertIn("series", page.ids)
        self.assertIn("scale_implied (dashed)", page.text)
        text = pathlib.Path(folder, "page.html").read_text()
        self.assertEqual(text.count('<figure class="series">'), 8, "four units, two cases")
        self.assertNotIn("nan", "".join(re.findall(r'class="curve[^>]*>', text)), "amaxes that are none leave gaps")
        self.assertNotIn("series", self.page(self.passing() + "/page.html").ids)
        report = json.loads(pathlib.Path(folder, "report.json").read_text())
        for output in report["cases"][0]["runs"][0]["outputs"].values():
            for finding in output["findings"]:
                for column in finding.get("series", []):
                    column["values"] = ["NaN"] * 60
        self.assertNotIn("series", self.rendered({**report, "cases": report["cases"][:1]}).ids)

    def test_a_brief_report(self):
        self.run_cli("report", f"{self.failing()}/brief.json", "--html", "page.html", code=0)
        page = self.page(self.folder / "page.html")
        self.assertIn("8 of 8 judged cases fail", page.text)
        self.assertIn("All cases", page.text)

    def test_unsupported_and_empty_reports(self):
        folder = self.made("nothing", code=4, cases=[{"op": "gemm", "mode": "fp32", "backend": "cublaslt",
                                                      "params": {"m": 16, "n": 16, "k": 16}}])
        self.assertIn("Nothing was verified", self.page(folder + "/page.html").text)
        report = self.report(folder + "/report.json")
        self.assertIn("Nothing was verified", self.rendered({**report, "cases": []}).text)

    def test_hostile_texts(self):
        report = self.report(self.failing() + "/report.json")
        evil = hostile.TEXT + "</script></style><script>document.title='owned'</script>\"'<!--"
        def poison(value):
            if isinstance(value, dict):
                return {key if key in ("cases", "runs") else key: poison(child) for key, child in value.items()}
            if isinstance(value, list):
                return [poison(child) for child in value]
            hexadecimal = isinstance(value, str) and re.fullmatch("(0x)?[0-9a-f]{2,32}", value)
            return value + evil if isinstance(value, str) and not hexadecimal and value not in ("NaN", "Infinity") else value
        for case in report["cases"]:
            kept = {key: case[key] for key in ("status", "digest")}
            case.update(poison(case))
            case.update(kept)
        for part in ("plan", "machine", "environment", "tool", "notes", "causes", "override_effect", "precision_map"):
            if part in report or part == "notes":
                report[part] = poison(report.get(part, [evil]))
        report["schema_version"] = "1.99.0"  # of which this program does not know the words
        report["environment"][evil] = evil
        page = self.rendered(report)
        self.assertIn("document.title='owned'", page.text)
        self.assertNotIn("<script>document", (self.folder / "page.html").read_text())

    def test_a_report_that_lacks_what_is_shown(self):
        report = self.report(self.failing() + "/report.json")
        del report["cases"][0]["runs"]
        (self.folder / "broken.json").write_text(json.dumps(report))
        self.assertIn("lacks what is shown", self.run_cli("report", "broken.json", "--html", "x.html", code=3).stderr)

    def test_a_large_report_is_small_and_one_that_is_too_large_is_summarised(self):
        report = self.report(self.passing() + "/report.json")
        for count, rows in [(1200, 1200), (30000, 10000)]:
            cases = [{**report["cases"][i % 8], "digest": f"{i:032x}"} for i in range(count)]
            if count > 10000:
                cases = [{key: case[key] for key in ("digest", "id", "status", "reason")} | {"runs": []} for case in cases]
            page = self.rendered({**report, "cases": cases, "brief": count > 10000})
            self.assertLess((self.folder / "page.html").stat().st_size, 5 << 20)
            self.assertEqual((self.folder / "page.html").read_text().count("<td><span class=\"pill"), rows)
            self.assertEqual("more than a page can show" in page.text, count > 10000)

    def test_a_full_disk(self):
        done = self.run_cli("report", f"{self.passing()}/report.json", "--html", "/dev/full", code=3)
        self.assertIn("cannot write /dev/full", done.stderr)


@unittest.skipIf(BROWSER is None, "there is no chromium to open pages with")
class Browser(HtmlTest):
    """The same reports, opened."""

    def opened(self, path, *options, script=None):
        """The page's elements after its scripts ran, and what the browser complained about."""
        text = pathlib.Path(path).read_text()
        if script is not None:
            path = self.folder / "scripted.html"
            path.write_text(text.replace("</body>", f"<script>{script}</script></body>"))
        done = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder}/browser", "--enable-logging=stderr",
             "--window-size=1400,1000", "--virtual-time-budget=10000", *options, "--dump-dom", f"file://{path}"],
            capture_output=True, text=True, timeout=110, env={**CLEAN, "HOME": str(self.folder)})
        return done.stdout, re.findall(r".*:CONSOLE.*", done.stderr)

    def root(self, dom):
        return re.search(r"<html[^>]*>", dom).group()

    def test_charts_are_drawn_without_complaints(self):
        for folder in [self.passing(), self.failing()]:
            dom, complaints = self.opened(folder + "/page.html")
            self.assertEqual(complaints, [])
            wanted = len(re.findall(r'<figure class="chart', dom))
            self.assertGreaterEqual(wanted, 3)
            if "Chart.js v3" not in dom:
                self.skipTest("this build found no Chart.js")
            self.assertIn(f'data-charts="{wanted}"', self.root(dom))

    def test_filters_work(self):
        for fields, shown in [({}, 8), ({"mode": "bf16"}, 4), ({"mode": "bf16", "text": "k=32"}, 2), ({"status": "fail"}, 8),
                              ({"text": "no such case"}, 0)]:
            script = f"const f = document.getElementById('filter'); for (const [k, v] of Object.entries({json.dumps(fields)})) " \
                     "f.elements[k].value = v; f.dispatchEvent(new Event('input'));"
            dom, complaints = self.opened(self.failing() + "/page.html", script=script)
            self.assertEqual(complaints, [])
            self.assertIn(f'data-shown="{shown}"', self.root(dom), fields)
            rows = re.findall(r'<tr([^>]*)><td><span class="pill', dom)
            self.assertEqual(len([row for row in rows if "hidden" not in row]), shown)

    def test_without_charts_nothing_looks_broken(self):
        page = pathlib.Path(self.passing(), "page.html").read_text()
        bare = re.sub(r"<script>\n/\*\n Chart\.js.*?</script>\n", "", page, flags=re.DOTALL)
        self.assertLess(len(bare), 200_000)
        (self.folder / "bare.html").write_text(bare)
        dom, complaints = self.opened(self.folder / "bare.html")
        self.assertEqual(complaints, [])
        self.assertNotIn('class="chart drawn"', dom)
        self.assertEqual(len(re.findall(r"<details class=\"numbers\" open", dom)), len(re.findall(r"<figure class=\"chart", dom)))
        self.assertIn('data-shown="8"', self.root(dom))

    def test_maps_say_what_is_under_the_pointer(self):
        script = "const map = document.querySelector('svg.map'), box = map.querySelector('.frame').getBoundingClientRect();" \
                 "map.dispatchEvent(new MouseEvent('mousemove', { clientX: box.left + 1, clientY: box.bottom - 1 }));"
        dom, complaints = self.opened(self.failing() + "/page.html", script=script)
        self.assertEqual(complaints, [])
        self.assertRegex(dom, r"rows 124–127, columns 0–3: (up to \d+|over 65536) × the bound")

    def test_where_scripts_are_blocked_the_page_is_complete(self):
        page = pathlib.Path(self.failing(), "page.html").read_text()
        blocked = page.replace("script-src 'unsafe-inline'", "script-src 'none'")
        self.assertNotEqual(page, blocked)
        (self.folder / "blocked.html").write_text(blocked)
        dom, complaints = self.opened(self.folder / "blocked.html")
        self.assertTrue(all("Content Security Policy" in one for one in complaints), complaints)
        self.assertNotIn("data-charts", self.root(dom))
        self.assertRegex(dom, r'<form class="filter" id="filter" hidden')
        self.assertEqual(len(re.findall(r"<details class=\"numbers\" open", dom)), len(re.findall(r"<figure class=\"chart", dom)))
        self.assertIn("mirrored at the diagonal", dom)

    def test_the_first_paint_of_a_large_report_is_quick(self):
        report = self.report(self.passing() + "/report.json")
        cases = [{**report["cases"][i % 8], "digest": f"{i:032x}"} for i in range(1200)]
        self.rendered({**report, "cases": cases})
        script = "new PerformanceObserver((list) => { document.documentElement.dataset.paint = list.getEntries()[0].startTime; })" \
                 ".observe({ type: 'paint', buffered: true });"
        dom, _ = self.opened(self.folder / "page.html", script=script)
        paint = re.search(r'data-paint="([\d.]+)"', self.root(dom))
        self.assertIsNotNone(paint, self.root(dom))
        self.assertLess(float(paint.group(1)), 5000, "ms; it takes 300 on an idle machine")


if __name__ == "__main__":
    unittest.main()
