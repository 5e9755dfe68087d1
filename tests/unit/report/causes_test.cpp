// Failures with one cause are grouped; gates and passing runs are not.
#include "report/causes.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sample_record.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using testing::sample_case;
using testing::sample_result;

/// A failed case whose output has findings.
json failed(std::int64_t k, std::string_view mode, const std::vector<op::Finding>& findings, const std::string& split) {
  const plan::Case c = sample_case(mode, k);
  verdict::CaseResult result = sample_result(c, {{.measured = 2}});
  result.status = verdict::Status::fail;
  result.runs.front().status = verdict::Status::fail;
  result.runs.front().failing = "d: G1 bound";
  result.runs.front().run.details = {{"id", "66"}, {"tile", std::to_string(k)}, {"split_k", split}};
  result.runs.front().outputs.front().findings = findings;
  return to_json(result);
}

op::Finding missing() {
  return {.name = "range_of_k", .port = "d", .measured = 1, .text = "all of it", .cause = "the last 1 of k is missing"};
}

TEST(Causes, are_grouped_by_cause_and_kernel) {
  const std::vector<json> cases = {failed(5, "bf16", {missing()}, "2"), failed(7, "fp16", {missing()}, "2"),
                                   failed(9, "bf16", {missing()}, "4"), failed(11, "bf16", {}, "2")};
  const json rows = causes(cases);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].at("cause"), "the last 1 of k is missing");
  EXPECT_EQ(rows[0].at("implementation"), "algo 66, split-k 2");
  EXPECT_EQ(rows[0].at("cases"), 2);
  EXPECT_EQ(rows[0].at("modes"), (json{"bf16", "fp16"}));
  EXPECT_EQ(rows[0].at("first"), cases[0].at("digest"));
  EXPECT_EQ(rows[1].at("implementation"), "algo 66, split-k 4");
}

TEST(Causes, of_passing_runs_and_of_findings_without_a_cause_are_none) {
  json passed = failed(5, "bf16", {missing()}, "2");
  passed["runs"][0]["status"] = "pass";
  op::Finding statistic = missing();
  statistic.cause.clear();
  EXPECT_TRUE(causes(std::vector<json>{passed, failed(7, "bf16", {statistic}, "2")}).empty());
}

TEST(Causes, a_sentence_names_the_cause_or_the_gate) {
  EXPECT_EQ(failure_sentence(failed(5, "bf16", {missing()}, "2")),
            "gemm/m=8,n=4,k=5/bf16/cublaslt: the last 1 of k is missing (algo 66, split-k 2)");
  EXPECT_EQ(failure_sentence(failed(5, "bf16", {}, "2")), "gemm/m=8,n=4,k=5/bf16/cublaslt: d: G1 bound");
}

}  // namespace
}  // namespace numcheck::report
