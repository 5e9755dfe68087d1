// The HTML view: what its text may hold, and that it takes reports that lack things or hold nonsense.
#include <cmath>
#include <functional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/brief.hpp"
#include "report/report.hpp"
#include "report/views/html_map.hpp"
#include "report/views/html_shape.hpp"
#include "report/views/html_text.hpp"
#include "report/views/views.hpp"
#include "sample_record.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;
using report::testing::sample_case;
using report::testing::sample_result;

json report_of(std::vector<json> cases) {
  RunFacts facts;
  facts.plan.name = "sample";
  return make_report(facts, std::move(cases));
}

json failing_report() {
  const plan::Case good = sample_case("fp32", 64), bad = sample_case("bf16", 128);
  return report_of({to_json(sample_result(good, {{}})), to_json(sample_result(bad, {{.measured = 5.8, .limit = 3}}))});
}

/// What the page says: without style and scripts.
std::string content(const std::string& page) {
  const std::size_t begin = page.find("<body>");
  return page.substr(begin, page.rfind("<script>") - begin);
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

json map_of(const std::vector<std::string>& worst, const std::vector<std::string>& mean) {
  return {{"shape", {8, 8}},
          {"error_map",
           {{"rows", 8},
            {"cols", 8},
            {"cell_rows", 1},
            {"cell_cols", 1},
            {"worst", worst},
            {"mean", mean},
            {"mean_unit", 0.5}}}};
}

TEST(Html, escapes_what_markup_would_act_on) {
  EXPECT_EQ(html_text("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
  EXPECT_EQ(html_text("a\x1b[31m\n"), "a\\x1b[31m\\n");
  EXPECT_EQ(html_text("\u202E\xff"), "\\u{202e}\\xff");
  const std::string script = script_json({{"a", "</script><!-- \u2028 & \xff"}});
  EXPECT_EQ(script.find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(json::parse(script).at("a").get<std::string>().substr(0, 13), "</script><!--");
}

TEST(Html, hostile_texts_stay_texts) {
  const std::string evil = "</script><script>alert(1)</script>\"'\x1b\u202E";
  json report = failing_report();
  report["plan"]["name"] = report["notes"][0] = report["machine"]["device"] = report["tool"]["version"] = evil;
  report["tool"]["argv"] = {evil};
  report["environment"][evil] = evil;
  report["machine"]["libraries"] = {{evil, evil}};
  json& bad = report["cases"][1];
  bad["id"] = "gemm" + evil + "/k=" + evil + "/" + evil + "/" + evil;
  bad["reason"] = bad["reproduce"] = bad["digest"] = evil;
  json& run = bad["runs"][0];
  run["implementation"] = run["guards"]["detail"] = evil;
  json& output = run["outputs"]["d"];
  output["findings"] = {{{"name", evil}, {"measured", 1}, {"text", evil}, {"cause", evil}}};
  output["criteria"][0]["name"] = output["worst"][0]["got_bits"] = evil;
  run["outputs"][evil] = output;
  const std::string page = render_html(report);
  EXPECT_FALSE(holds(page, "<script>alert"));
  EXPECT_FALSE(holds(page, "\x1b"));
  EXPECT_FALSE(holds(page, "\u202E"));
  EXPECT_TRUE(holds(page, "&lt;script&gt;alert"));
}

TEST(Html, needs_nothing_from_elsewhere) {
  const std::string page = render_html(failing_report());
  for (const char* word : {"src=", "@import", "url(", "<link", "<iframe"}) {
    EXPECT_FALSE(holds(content(page), word)) << word;
  }
  EXPECT_TRUE(holds(page, "default-src 'none'"));
}

TEST(Html, says_the_verdict_first) {
  const std::string text = content(render_html(failing_report()));
  EXPECT_TRUE(holds(text, "<h1>1 of 2 judged cases fails</h1>"));
  EXPECT_LT(text.find("1 of 2 judged"), text.find("id=\"matrix\""));
  EXPECT_LT(text.find("id=\"failures\""), text.find("id=\"cases\""));
  EXPECT_TRUE(holds(text, "G2 spread 5.8 &gt; 3"));
  EXPECT_TRUE(holds(text, "1.93")) << "error/limit in the matrix";
}

TEST(Html, a_page_says_what_did_not_run_beside_what_passed) {
  json report = failing_report();
  report["cases"][1]["status"] = "skipped";
  EXPECT_TRUE(holds(render_html(report), "<h1>The judged case passes; 1 of 2 cases did not run</h1>"));
  EXPECT_TRUE(holds(render_html(report), "class=\"head so\"")) << "not green";
  report["cases"][1]["status"] = "xfail";
  EXPECT_TRUE(holds(render_html(report), "<h1>The judged case passes</h1>"));
}

TEST(Html, an_empty_report_verified_nothing) {
  const std::string text = content(render_html(report_of({})));
  EXPECT_TRUE(holds(text, "Nothing was verified"));
  EXPECT_FALSE(holds(text, "id=\"cases\""));
}

TEST(Html, a_brief_report_has_verdict_matrix_and_cases) {
  const std::string text = content(render_html(brief_report(failing_report())));
  for (const char* part :
       {"1 of 2 judged cases fails", "id=\"matrix\"", "id=\"failures\"", "id=\"cases\"", "G2 spread"}) {
    EXPECT_TRUE(holds(text, part)) << part;
  }
}

TEST(Html, says_what_inputs_do_not_show) {
  const plan::Case good = sample_case("fp32", 64), bad = sample_case("bf16", 128);
  verdict::CaseResult passed = sample_result(good, {{}}), failed = sample_result(bad, {{.measured = 5.8, .limit = 3}});
  passed.runs[0].not_told = {"beta from 0"};
  failed.runs[0].not_told = {"alpha from 1"};
  const json report = report_of({to_json(passed), to_json(failed)});
  for (const json& shown : {report, brief_report(report)}) {
    const std::string text = content(render_html(shown));
    EXPECT_TRUE(holds(text, "id=\"not-told\""));
    EXPECT_TRUE(holds(text, "<td class=\"n\">1 case</td><td>cannot tell beta from 0</td>")) << text;
    EXPECT_TRUE(holds(text, "<span class=\"reason\">cannot tell beta from 0</span>"));
    EXPECT_FALSE(holds(text, "alpha from 1")) << "of a case that fails, this says nothing";
  }
  EXPECT_FALSE(holds(content(render_html(failing_report())), "id=\"not-told\""));
}

TEST(Html, shows_what_library_versions_changed_and_which_precision_ran) {
  json report = failing_report();
  report["library_changes"] =
      json::parse(R"({"sentences": ["gemm: 1 of 2 changed"], "rows": [{"op": "gemm", "mode": "fp32",
      "backend": "transformer_engine", "base": "2.11", "other": "2.20", "cases": 2, "identical": 1, "changed": 1,
      "not_comparable": 0, "neither": 0, "reasons": [], "changes": [{"id": "gemm/k=7/fp32/transformer_engine",
      "error_over_limit": {"base": 0.25, "other": "Infinity"}}]}]})");
  report["precision_map"] = json::parse(R"([{"op": "gemm", "mode": "fp32", "request": {"NVIDIA_TF32_OVERRIDE": "1"},
      "backend": "cublaslt", "layout": {"trans_a": false, "trans_b": true}, "expected": "tf32_rne", "class": "fp32",
      "note": "", "border": "shape", "where": "k % 4 != 0", "cases": 3}])");
  const std::string text = content(render_html(report));
  for (const char* part :
       {"gemm: 1 of 2 changed", "2.11 → 2.20", "gemm/k=7/fp32/transformer_engine", "0.25", "no ratio",
        "NVIDIA_TF32_OVERRIDE=1", "<td>trans_b</td>", "TF32", "<b>FP32</b>", "k % 4 != 0"}) {
    EXPECT_TRUE(holds(text, part)) << part;
  }
}

TEST(Html, pairs_the_dots_of_the_override_table) {
  json report = failing_report();
  report["override_effect"] = json::parse(R"({"sentences": ["override 1 turns FP32 into TF32"], "rows": [{"op": "gemm",
      "mode": "fp32", "backend": "sim", "shape": "k=64", "base": "unset", "states": {
      "unset": {"rel_l2": 1e-7, "observed": ["fp32"], "bits": null}, "1": {"rel_l2": 1e-3, "observed": ["tf32_rne"],
      "bits": "differ"}}}]})");
  const std::string text = content(render_html(report));
  EXPECT_TRUE(holds(text, "<circle class=\"unset\" cx=\"8.0\"")) << "at the left end of the axis";
  EXPECT_TRUE(holds(text, "<circle class=\"d1\" cx=\"232.0\"")) << "at the right end";
  EXPECT_FALSE(holds(text, "class=\"d0\"")) << "0 did not run";
  EXPECT_TRUE(holds(text, "1.0e-03 TF32"));
}

TEST(Html, takes_numbers_that_are_none) {
  json report = failing_report();
  json& output = report["cases"][1]["runs"][0]["outputs"]["d"];
  output["criteria"] = {{{"name", "G5 exact"}, {"measured", 3}, {"limit", 0}, {"ok", false}, {"source", ""}},
                        {{"name", "G1 bound"}, {"measured", "NaN"}, {"limit", 1}, {"ok", false}, {"source", ""}}};
  output["metrics"]["rel_l2"] = "Infinity";
  output["metrics"]["ulp_histogram"] = {"NaN", -5};
  output["worst"][0]["got"] = "NaN";
  const std::string text = content(render_html(report));
  EXPECT_TRUE(holds(text, "∞"));
  EXPECT_TRUE(holds(text, "got NaN"));
}

TEST(Html, takes_reports_that_lack_everything_but_cases) {
  const json report = {
      {"cases", json::array({{{"id", "x"}, {"digest", "y"}, {"status", "pass"}, {"runs", json::array()}}})},
      {"notes", 5},
      {"machine", "none"},
      {"environment", json::array({1})},
      {"causes", {{"a", 1}}},
      {"override_effect", {{"rows", json::array({json::object()})}}},
      {"library_changes", {{"rows", json::array({7})}}},
      {"precision_map", json::array({json::object()})}};
  EXPECT_TRUE(holds(render_html(report), "1 judged case passes") ||
              holds(render_html(report), "The judged case passes"));
}

/// The paths of everything in a document.
void add_paths(const json& value, const json::json_pointer& at, std::vector<json::json_pointer>& paths) {
  for (const auto& [key, member] : value.items()) {
    paths.push_back(value.is_array() ? at / static_cast<std::size_t>(std::stoul(key)) : at / key);
    if (member.is_structured()) {
      add_paths(member, json::json_pointer(paths.back()), paths);
    }
  }
}

TEST(Html, whatever_a_report_holds_there_is_a_page_or_a_complaint_about_json) {
  json report = failing_report();
  json& output = report["cases"][1]["runs"][0]["outputs"]["d"];
  output.update(map_of(std::vector<std::string>(8, "iiiijjj!"), std::vector<std::string>(8, "mmmmayyy")));
  output["around_worst"] = json::parse(R"({"first": [3], "got": [[1]], "got_bits": [["0x1"]], "expected": [[1]]})");
  std::vector<json::json_pointer> paths;
  add_paths(report, json::json_pointer(), paths);
  const std::vector<json> values = {nullptr,        -5,   "x",   json::array(),
                                    json::object(), true, 1e300, json::array({json::object()})};
  std::size_t pages = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    json changed = report;
    changed[paths[i]] = values[i % values.size()];
    try {
      pages += render_html(changed).empty() ? 0 : 1;
    } catch (const json::exception&) {
      continue;
    }
  }
  EXPECT_GT(2 * pages, paths.size()) << "most members are not needed";
}

TEST(Html, shows_the_cases_that_matter_of_a_report_that_is_too_large) {
  const plan::Case c = sample_case("fp32", 64);
  const json good = brief_report(report_of({to_json(sample_result(c, {{}}))}));
  json report = good;
  report["cases"] = json::array();
  for (int i = 0; i < 12000; ++i) {
    json record = good["cases"][0];
    record["digest"] = fmt::format("{:08x}{:024x}", i, 0);
    record["status"] = i == 11999 ? "fail" : "pass";
    report["cases"].push_back(record);
  }
  const std::string page = render_html(report);
  EXPECT_TRUE(holds(page, "The report has 12000 cases, more than a page can show."));
  EXPECT_TRUE(holds(page, "<h1>1 of 12000 judged cases fails</h1>"));
  EXPECT_TRUE(holds(page, "href=\"#case-00002edf\"")) << "the failure has a row";
  EXPECT_LT(page.size(), std::size_t{5} << 20);
}

TEST(Html, a_matrix_of_too_many_ops_and_modes_is_cut) {
  const json one = to_json(sample_result(sample_case("fp32", 64), {{}}));
  std::vector<json> cases;
  for (int i = 0; i < 3000; ++i) {
    cases.push_back(one);
    cases.back()["id"] = fmt::format("op{0}/k=1/mode{0}/sim", i);
  }
  const std::string page = content(render_html(report_of(std::move(cases))));
  EXPECT_TRUE(holds(
      page, "The report has 3000 ops and 3000 modes, more than a page can show. These are the first 200 and 50."));
  EXPECT_TRUE(holds(page, "<th class=\"op\">op199</th>"));
  EXPECT_FALSE(holds(page, "<th class=\"op\">op200</th>"));
  EXPECT_LT(page.size(), std::size_t{4} << 20U);
}

TEST(Html, draws_a_map_and_a_window) {
  json output = map_of(std::vector<std::string>(8, "iiiijjj!"), std::vector<std::string>(8, "mmmmayyy"));
  output["around_worst"] = json::parse(
      R"({"first": [3, 4], "got": [[1.5, "NaN"]], "got_bits": [["0x3fc0", "0x7fff"]], "expected": [[1.5, 2]]})");
  const std::string maps = map_pictures(output), window = window_table(output);
  EXPECT_TRUE(holds(maps, "<svg class=\"map\""));
  EXPECT_TRUE(holds(maps, "not written"));
  EXPECT_TRUE(holds(maps, "d=\"M0 0h")) << "runs of cells";
  EXPECT_TRUE(holds(window, "0x7fff"));
  EXPECT_EQ(window.find("class=\"off\""), window.rfind("class=\"off\"")) << "only the NaN is wrong";
}

TEST(Html, a_map_that_cannot_be_drawn_is_left_out) {
  const std::vector<std::string> good(8, "iiiiiiii");
  for (const json& broken :
       {map_of({}, good), map_of({"ab", "a"}, good), map_of(std::vector<std::string>(65, "a"), {}), json::object(),
        json{{"error_map", 5}}, json{{"error_map", {{"rows", "x"}, {"worst", {1, 2}}}}}}) {
    EXPECT_EQ(map_pictures(broken), "") << broken.dump();
  }
  json negative = map_of(good, good);
  negative["error_map"]["cell_rows"] = -1;
  EXPECT_EQ(map_pictures(negative), "");
  EXPECT_FALSE(holds(map_pictures(map_of(good, {"m"})), "Mean error"));
}

std::vector<std::string> letters(const std::function<char(int, int)>& letter) {
  std::vector<std::string> rows(16);
  for (int r = 0; r < 16; ++r) {
    for (int c = 0; c < 16; ++c) {
      rows[static_cast<std::size_t>(r)] += letter(r, c);
    }
  }
  return rows;
}

char level(double share) {
  return static_cast<char>('m' + static_cast<int>(std::lround(12 * share)));
}

double random_at(int r, int c) {
  return std::sin(12.9898 * r + 78.233 * c + 0.7 * r * c);
}

TEST(HtmlShape, recognises_the_patterns_of_the_key) {
  const auto wrong = letters([](int, int) { return 'q'; });
  const auto few = [](const std::function<bool(int, int)>& where) {
    return shape_of(letters([&where](int r, int c) { return where(r, c) ? 'q' : 'i'; }), {}, true);
  };
  const auto all = [&wrong](const std::function<double(int, int)>& share) {
    return shape_of(wrong, letters([&share](int r, int c) { return level(share(r, c)); }), true);
  };
  EXPECT_EQ(few([](int r, int c) { return r >= 4 && r < 8 && c >= 8 && c < 12; }), MapShape::block);
  EXPECT_EQ(few([](int r, int) { return r == 2 || r == 9; }), MapShape::rows);
  EXPECT_EQ(few([](int, int c) { return c == 15; }), MapShape::columns);
  EXPECT_EQ(few([](int r, int c) { return (r * 7 + c * 5) % 9 == 0; }), MapShape::none);
  EXPECT_EQ(few([](int, int) { return false; }), MapShape::none);
  EXPECT_EQ(all([](int, int c) { return random_at(3, c); }), MapShape::stripes_down);
  EXPECT_EQ(all([](int r, int c) { return random_at(3, c) * random_at(r, 5); }), MapShape::woven);
  EXPECT_EQ(all([](int r, int c) { return (random_at(r, c) - random_at(c, r)) / 2; }), MapShape::mirrored);
  EXPECT_EQ(all([](int r, int c) { return random_at(r, c); }), MapShape::noise);
  EXPECT_EQ(all([](int, int) { return 0.0; }), MapShape::none);
}

}  // namespace
}  // namespace numcheck::report::views
