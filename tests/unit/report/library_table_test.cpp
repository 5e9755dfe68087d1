#include "report/library_table.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/report.hpp"
#include "report/views/console.hpp"
#include "sample_record.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using testing::sample_case;
using testing::sample_result;
using testing::SampleRun;

json record(const char* version, std::int64_t k, const std::vector<SampleRun>& runs, const char* mode = "bf16") {
  const plan::Case c = sample_case(mode, k, {}, std::string("transformer_engine@") + version);
  return to_json(sample_result(c, runs));
}

json refused(const char* version, std::int64_t k, const std::string& reason) {
  json refusal = record(version, k, {});
  refusal["status"] = "unsupported";
  refusal["reason"] = reason;
  return refusal;
}

const SampleRun kSame{.bits = "a", .measured = 0.31};
const SampleRun kOther{.bits = "b", .measured = 0.45};

TEST(LibraryChanges, counts_identical_bits) {
  const std::vector<json> cases = {record("2.20.2", 64, {kSame}), record("2.11.0", 64, {kSame}),
                                   record("2.20.2", 65, {kSame}, "fp16"), record("2.11.0", 65, {kSame}, "fp16")};
  const json changes = library_changes(cases);
  ASSERT_EQ(changes["rows"].size(), 2U) << "one for each mode";
  const json& row = changes["rows"][0];
  EXPECT_EQ(row["backend"], "transformer_engine");
  EXPECT_EQ(row["base"], "2.20.2");
  EXPECT_EQ(row["other"], "2.11.0");
  EXPECT_EQ(row["identical"], 1);
  EXPECT_EQ(row["changed"], 0);
  EXPECT_TRUE(row["changes"].empty());
  EXPECT_EQ(changes["sentences"], json::array({"gemm: bit-identical in 2 of 2 cases"}));
}

TEST(LibraryChanges, names_the_smallest_change) {
  std::vector<json> cases;
  for (const std::int64_t k : {64, 32, 16}) {
    cases.push_back(record("2.20.2", k, {kSame}));
    cases.push_back(record("2.11.0", k, {k == 64 ? kSame : kOther}));
  }
  // The outputs are 8 x 4 for every k; make those of k = 32 larger.
  cases[2]["runs"][0]["outputs"]["d"]["shape"] = {800, 4};
  const json changes = library_changes(cases);
  const json& row = changes["rows"][0];
  EXPECT_EQ(row["cases"], 3);
  EXPECT_EQ(row["identical"], 1);
  EXPECT_EQ(row["changed"], 2);
  const json& first = row["changes"][0];
  EXPECT_EQ(first["elements"], 32);
  EXPECT_EQ(first["case"], cases[4]["digest"]);
  EXPECT_EQ(first["other_case"], cases[5]["digest"]);
  EXPECT_EQ(first["outputs"], json::array({"d"}));
  EXPECT_EQ(first["of"], 1);
  EXPECT_EQ(first["error_over_limit"], (json{{"base", 0.31}, {"other", 0.45}}));
  EXPECT_EQ(row["changes"][1]["elements"], 3200);
  EXPECT_EQ(changes["sentences"][0],
            "gemm: changed in 2 of 3 cases, smallest: gemm/m=8,n=4,k=16/bf16/transformer_engine@2.20.2 (d; error/limit "
            "0.31 -> 0.45)");
}

TEST(LibraryChanges, the_smallest_change_may_be_of_another_mode) {
  std::vector<json> cases = {record("2.20.2", 64, {kSame}), record("2.11.0", 64, {kOther}),
                             record("2.20.2", 8, {kSame}, "fp16"), record("2.11.0", 8, {kOther}, "fp16")};
  cases[0]["runs"][0]["outputs"]["d"]["shape"] = {800, 4};
  const std::string sentence = library_changes(cases)["sentences"][0];
  EXPECT_NE(sentence.find("smallest: gemm/m=8,n=4,k=8/fp16/"), std::string::npos) << sentence;
}

TEST(LibraryChanges, an_output_that_is_missing_has_changed) {
  std::vector<json> cases = {record("2.20.2", 64, {kSame}), record("2.11.0", 64, {kSame})};
  cases[0]["runs"][0]["outputs"]["d_amax"] = cases[0]["runs"][0]["outputs"]["d"];
  const json row = library_changes(cases)["rows"][0];
  EXPECT_EQ(row["changes"][0]["outputs"], json::array({"d_amax"}));
  EXPECT_EQ(row["changes"][0]["of"], 2);
}

TEST(LibraryChanges, says_why_cases_are_not_comparable) {
  const std::vector<json> cases = {record("2.20.2", 64, {kSame}),     refused("2.11.0", 64, "it has no nvte_x"),
                                   record("2.20.2", 65, {kSame}),     refused("2.11.0", 65, "it has no nvte_x"),
                                   refused("2.20.2", 66, "too wide"), record("2.11.0", 66, {kSame}),
                                   refused("2.20.2", 67, "never"),    refused("2.11.0", 67, "never")};
  const json changes = library_changes(cases);
  const json& row = changes["rows"][0];
  EXPECT_EQ(row["cases"], 4);
  EXPECT_EQ(row["not_comparable"], 3);
  EXPECT_EQ(row["neither"], 1);
  EXPECT_EQ(row["reasons"], json::array({{{"text", "2.11.0: unsupported: it has no nvte_x"}, {"cases", 2}},
                                         {{"text", "2.20.2: unsupported: too wide"}, {"cases", 1}}}));
  EXPECT_EQ(
      changes["sentences"][0],
      "gemm: 3 not comparable (2.11.0: unsupported: it has no nvte_x; and 1 other reason); 1 with neither version");
}

TEST(LibraryChanges, nondeterministic_outputs_say_nothing_about_versions) {
  std::vector<json> cases = {record("2.20.2", 64, {kSame}), record("2.11.0", 64, {kOther})};
  cases[1]["runs"][0]["deterministic"] = false;
  const json row = library_changes(cases)["rows"][0];
  EXPECT_EQ(row["changed"], 0);
  EXPECT_EQ(row["reasons"][0]["text"], "2.11.0: bits differ from run to run");
}

TEST(LibraryChanges, compares_every_version_with_the_first) {
  const std::vector<json> cases = {record("2.9.0", 64, {kSame}), record("2.20.2", 64, {kOther}),
                                   record("2.11.0", 64, {kSame})};
  const json changes = library_changes(cases);
  ASSERT_EQ(changes["rows"].size(), 2U);
  EXPECT_EQ(changes["rows"][0]["other"], "2.20.2");
  EXPECT_EQ(changes["rows"][0]["changed"], 1);
  EXPECT_EQ(changes["rows"][1]["identical"], 1);
  EXPECT_EQ(changes["sentences"][1], "gemm (transformer_engine 2.9.0 -> 2.11.0): bit-identical in 1 of 1 case");
}

TEST(LibraryChanges, needs_the_same_case_twice) {
  const plan::Case cublaslt = sample_case("bf16", 64), other = sample_case("bf16", 64, {}, "cuda");
  const std::vector<json> cases = {record("2.20.2", 64, {kSame}), record("2.11.0", 65, {kSame}),
                                   to_json(sample_result(cublaslt, {{}})), to_json(sample_result(other, {{}}))};
  EXPECT_TRUE(library_changes(cases)["rows"].empty());
}

TEST(LibraryChanges, are_in_the_report_and_on_the_console) {
  RunFacts facts;
  const std::vector<json> cases = {record("2.20.2", 64, {kSame}), record("2.11.0", 64, {kOther}),
                                   record("2.20.2", 65, {kSame}, "fp16"), refused("2.11.0", 65, "no /opt/te/lib.so")};
  EXPECT_FALSE(make_report(facts, {cases.front()}).contains("library_changes"));
  const json report = make_report(facts, cases);
  EXPECT_EQ(report.dump().find("/opt"), std::string::npos);
  const std::string text = views::render_console(report, {.width = 0});
  EXPECT_NE(text.find("2.20.2 -> 2.11.0"), std::string::npos) << text;
  EXPECT_NE(text.find("0.31 -> 0.45"), std::string::npos) << text;
  EXPECT_NE(text.find("gemm: changed in 1 of 1 case, smallest: "), std::string::npos) << text;
}

}  // namespace
}  // namespace numcheck::report
