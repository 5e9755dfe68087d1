"""te-numcheck diagnose --html: the page with the errors before and after the cause is applied."""

import html.parser
import json
import unittest

from support import CliTest

CASE = {"op": "gemm", "mode": "bf16", "backend": "sim", "params": {"m": 96, "n": 80, "k": 64}}


class Page(html.parser.HTMLParser):
    """Titles, the text in <pre>, pictures, and whatever would be fetched or run."""

    def __init__(self, text):
        super().__init__()
        self.titles, self.text, self.pictures, self.foreign, self.inside = [], "", 0, [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.inside = tag
        self.pictures += tag == "svg"
        if tag in ("script", "link", "img", "iframe") or any(name in ("src", "href") for name, _ in attributes):
            self.foreign.append(tag)

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        if self.inside == "h2":
            self.titles.append(data)
        elif self.inside == "pre":
            self.text += data


class DiagnoseHtml(CliTest):
    def page_of(self, fault, *arguments):
        self.run_cli("run", self.plan(cases=[CASE]), "--device", "sim:sm_90", "--no-save", "--json", "report.json",
                     *(["--inject", fault] if fault else []), "--keep-tensors", "kept", code=1 if fault else 0)
        (file,) = (self.folder / "kept").iterdir()
        text = self.run_cli("diagnose", "--tensors", file, "--html", "why.html", *arguments, code=1 if fault else 0).stdout
        return Page((self.folder / "why.html").read_text()), text

    def test_errors_before_and_after(self):
        page, text = self.page_of("missing_k_tail")
        self.assertEqual(page.foreign, [])
        self.assertEqual(len(page.titles), 2, page.titles)
        self.assertEqual(page.titles[0], "d as declared")
        self.assertRegex(page.titles[1], "^d, if ")
        self.assertGreaterEqual(page.pictures, 4, "two maps each")
        for line in text.splitlines()[:3]:
            self.assertIn(line, page.text)

    def test_what_nothing_explains_has_one_map(self):
        page, _ = self.page_of("perturb_noise=0.02")
        self.assertEqual(page.titles, ["d as declared"])

    def test_right_results_need_no_map(self):
        page, text = self.page_of("")
        self.assertEqual(page.titles, [])
        self.assertIn(text.splitlines()[0], page.text)

    def test_stdout_has_the_page_and_nothing_else(self):
        self.page_of("missing_k_tail")
        (file,) = (self.folder / "kept").iterdir()
        done = self.run_cli("diagnose", "--tensors", file, "--html", "-", code=1)
        self.assertEqual(done.stdout, (self.folder / "why.html").read_text())
        self.assertIn("--json", self.run_cli("diagnose", "--tensors", file, "--html", "-", "--json", "-", code=2).stderr)

    def test_refusals(self):
        self.page_of("missing_k_tail")
        (kept,) = (self.folder / "kept").iterdir()
        kept.rename(self.folder / "a.safetensors")
        for arguments, words in ((["--json", "x", "--html", "x"], "x"),
                                 (["--html", "no/such/folder/page.html"], "no/such/folder"),
                                 (["--html", "a.safetensors"], "a.safetensors")):
            with self.subTest(arguments):
                done = self.run_cli("diagnose", "gemm", "--tensors", "a.safetensors", *arguments, code=2)
                self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
