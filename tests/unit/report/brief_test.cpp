#include "report/brief.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/report.hpp"
#include "sample_record.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using testing::sample_case;
using testing::sample_result;

json report_of(std::vector<json> cases) {
  RunFacts facts;
  facts.plan.name = "sample";
  return make_report(facts, cases);
}

TEST(Brief, keeps_digests_and_the_tightest_gate) {
  const plan::Case c = sample_case("fp32", 64);
  verdict::CaseResult result = sample_result(c, {{.rel_l2 = 1.23456789e-6}});
  result.runs[0].outputs[0].criteria = {
      {"G1 bound", 1, 10, true, "x"}, {"G2 spread", 2, 3, true, "x"}, {"G5 exact", 0, 0, true, "x"}};
  const json whole = report_of({to_json(result)});
  const json brief = brief_report(whole);
  EXPECT_EQ(brief["brief"], true);
  EXPECT_EQ(brief["plan"], whole["plan"]);
  const json& record = brief["cases"][0];
  EXPECT_EQ(record["id"], c.id);
  EXPECT_EQ(record["digest"], c.digest.hex());
  EXPECT_EQ(record["status"], "pass");
  EXPECT_FALSE(record.contains("reason"));
  EXPECT_EQ(record["runs"][0]["implementation"], "cublasLt algo 67, split-k 1");
  const json& output = record["runs"][0]["outputs"]["d"];
  EXPECT_EQ(output["xxh128"], whole["cases"][0]["runs"][0]["outputs"]["d"]["xxh128"]);
  EXPECT_EQ(output["criteria"], json::array({{{"name", "G2 spread"}, {"measured", 2}, {"limit", 3}}}));
  EXPECT_EQ(output["metrics"]["rel_l2"], 1.23457e-6);
  EXPECT_TRUE(output["metrics"].contains("max_ulp"));
  EXPECT_EQ(output.size(), 3U);
}

TEST(Brief, keeps_what_the_rounding_of_the_output_would_hide) {
  const plan::Case c = sample_case("bf16", 64);
  verdict::CaseResult result = sample_result(c, {{}});
  const auto rounding = tolerance::Criterion::About::rounding;
  result.runs[0].outputs[0].criteria = {{"G1 bound", 0.9, 1, true, "x", rounding},
                                        {"G2 rms", 1, 3, true, "x"},
                                        {"G4 element", 0.99, 1, true, "x", rounding}};
  const json brief = brief_report(report_of({to_json(result)}));
  EXPECT_EQ(brief["cases"][0]["runs"][0]["outputs"]["d"]["criteria"],
            json::array({{{"name", "G2 rms"}, {"measured", 1}, {"limit", 3}},
                         {{"name", "G4 element"}, {"measured", 0.99}, {"limit", 1}, {"about", "rounding"}}}));
}

TEST(Brief, a_failed_gate_without_a_ratio_is_the_tightest) {
  const plan::Case c = sample_case("fp32", 64);
  verdict::CaseResult result = sample_result(c, {{}});
  result.runs[0].outputs[0].criteria = {{"G1 bound", 9, 1, false, "x"}, {"G5 exact", 1, 0, false, "x"}};
  const json brief = brief_report(report_of({to_json(result)}));
  EXPECT_EQ(brief["cases"][0]["runs"][0]["outputs"]["d"]["criteria"][0]["name"], "G5 exact");
  result.runs[0].outputs[0].criteria = {{"G1 bound", std::nan(""), 1, false, "x"}, {"G2 spread", 1, 2, true, "x"}};
  const json criterion = brief_report(report_of({to_json(result)}))["cases"][0]["runs"][0]["outputs"]["d"]["criteria"];
  EXPECT_EQ(criterion, json::array({{{"name", "G1 bound"}, {"measured", "NaN"}, {"limit", 1}}}));
}

TEST(Brief, keeps_reasons_and_errors) {
  const plan::Case c = sample_case("fp32", 64);
  verdict::CaseResult result = sample_result(c, {{}});
  result.status = verdict::Status::error;
  result.reason = "it broke";
  result.runs[0].run.error = "status 7";
  result.runs[0].outputs.clear();
  const json record = brief_report(report_of({to_json(result)}))["cases"][0];
  EXPECT_EQ(record["reason"], "it broke");
  EXPECT_EQ(record["runs"][0]["error"], "status 7");
  EXPECT_TRUE(record["runs"][0]["outputs"].empty());
}

TEST(Brief, keeps_what_inputs_do_not_show) {
  const plan::Case c = sample_case("fp32", 64);
  verdict::CaseResult result = sample_result(c, {{}});
  EXPECT_FALSE(brief_report(report_of({to_json(result)}))["cases"][0]["runs"][0].contains("not_told"));
  result.runs[0].not_told = {"beta from 0"};
  const json brief = brief_report(report_of({to_json(result)}));
  EXPECT_EQ(brief["cases"][0]["runs"][0]["not_told"], json::array({"beta from 0"}));
}

TEST(Brief, text_has_one_line_a_case) {
  std::vector<json> cases;
  for (const std::int64_t k : {1, 2, 3}) {
    const plan::Case c = sample_case("fp32", k);
    cases.push_back(to_json(sample_result(c, {{}})));
  }
  const json brief = brief_report(report_of(cases));
  const std::string text = brief_text(brief);
  EXPECT_EQ(json::parse(text), brief);
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  const std::size_t others = brief.size() - 1, brackets = 4;
  EXPECT_EQ(lines, cases.size() + others + brackets) << text;
  EXPECT_EQ(json::parse(brief_text(brief_report(report_of({})))).at("cases"), json::array());
}

}  // namespace
}  // namespace numcheck::report
