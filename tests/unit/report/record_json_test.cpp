#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"
#include "report/report.hpp"
#include "report/summary.hpp"
#include "sample_record.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using testing::sample_case;
using testing::sample_result;
using testing::SampleRun;

TEST(Number, writes_what_json_has_no_number_for_by_name) {
  EXPECT_EQ(number(std::nan("")), "NaN");
  EXPECT_EQ(number(std::numeric_limits<double>::infinity()), "Infinity");
  EXPECT_EQ(number(-std::numeric_limits<double>::infinity()), "-Infinity");
  EXPECT_EQ(number(0.1).dump(), "0.1");
}

TEST(Number, reads_back_what_it_wrote) {
  for (const double value : {0.0, -1.5, 1e-300, std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(number_value(number(value)), value);
  }
  EXPECT_TRUE(std::isnan(number_value(number(std::nan("")))));
  EXPECT_TRUE(std::isnan(number_value(json("nonsense"))));
  EXPECT_TRUE(std::isnan(number_value(json())));
}

TEST(Record, has_the_case_with_every_default_filled_in) {
  const plan::Case c = sample_case("fp32", 64, {{"NVIDIA_TF32_OVERRIDE", std::nullopt}});
  const json record = to_json(sample_result(c, {{}}));
  EXPECT_EQ(record["id"], c.id);
  EXPECT_EQ(record["digest"], c.digest.hex());
  EXPECT_EQ(record["params"]["k"], 64);
  EXPECT_EQ(record["params"]["epilogue"], "none");
  EXPECT_EQ(record["params"].size(), c.op->fields().size());
  EXPECT_TRUE(record["environment"].contains("NVIDIA_TF32_OVERRIDE"));
  EXPECT_TRUE(record["environment"]["NVIDIA_TF32_OVERRIDE"].is_null());
  EXPECT_EQ(record["inputs"]["distribution"], "normal");
  EXPECT_EQ(record["time_s"]["yardsticks"], 0.5);
}

TEST(Record, has_runs_with_outputs_gates_and_worst_elements) {
  const plan::Case c = sample_case("fp32", 64);
  const json record = to_json(sample_result(c, {{}, {.label = "other", .measured = 5.8, .limit = 3}}));
  EXPECT_EQ(record["status"], "fail");
  ASSERT_EQ(record["runs"].size(), 2u);
  const json& output = record["runs"][1]["outputs"]["d"];
  EXPECT_EQ(output["criteria"][0]["ok"], false);
  EXPECT_EQ(output["worst"][0]["index"], json::array({3, 1})) << "13 in an 8 x 4 matrix";
  EXPECT_EQ(output["worst"][0]["got_bits"], "0x3f810000");
  EXPECT_EQ(output["shape"], json::array({8, 4}));
  EXPECT_DOUBLE_EQ(record["error_over_limit"].get<double>(), 5.8 / 3);
  EXPECT_EQ(output["certificate"]["fakes"][0]["outcome"], "rejected");
  EXPECT_TRUE(output["certificate"]["vacuous_with"].is_null());
}

TEST(Record, a_not_a_number_is_beyond_every_limit) {
  const plan::Case c = sample_case("fp32", 64);
  const json record = to_json(sample_result(c, {{.measured = std::nan("")}, {.measured = 0.5}}));
  EXPECT_EQ(record["status"], "fail");
  EXPECT_EQ(record["error_over_limit"], "Infinity");
  EXPECT_EQ(record["runs"][0]["outputs"]["d"]["criteria"][0]["measured"], "NaN");
}

TEST(Record, without_runs_has_no_ratio) {
  const plan::Case c = sample_case("fp32", 64);
  verdict::CaseResult result;
  result.c = &c;
  result.status = verdict::Status::unsupported;
  result.reason = "this device has none";
  const json record = to_json(result);
  EXPECT_TRUE(record["error_over_limit"].is_null());
  EXPECT_EQ(record["status"], "unsupported");
}

TEST(Record, batched_positions_have_three_coordinates) {
  plan::Case c = sample_case("fp32", 64);
  op::GemmParams params = op::from_params<op::GemmParams>(c.params);
  params.batch = 3;
  c.params = op::to_params(params);
  const json record = to_json(sample_result(c, {{}}));
  EXPECT_EQ(record["runs"][0]["outputs"]["d"]["worst"][0]["index"], json::array({0, 3, 1}));
}

json statuses(std::initializer_list<const char*> names) {
  std::vector<json> cases;
  for (const char* name : names) {
    cases.push_back({{"status", name}});
  }
  return summarise(cases);
}

TEST(Summary, counts_every_status_and_the_total) {
  const json summary = statuses({"pass", "pass", "fail", "timeout"});
  EXPECT_EQ(summary["cases"], 4);
  EXPECT_EQ(summary["pass"], 2);
  EXPECT_EQ(summary["crashed"], 0);
  EXPECT_EQ(summary.size(), verdict::all_statuses().size() + 1);
}

TEST(Summary, status_names_read_back) {
  for (const verdict::Status status : verdict::all_statuses()) {
    EXPECT_EQ(verdict::parse_status(verdict::status_name(status)), status);
  }
  EXPECT_FALSE(verdict::parse_status("passed").has_value());
}

TEST(ExitCode, follows_the_documented_table) {
  using core::ExitCode;
  EXPECT_EQ(exit_code_of(statuses({"pass", "warn"}), {}), ExitCode::success);
  EXPECT_EQ(exit_code_of(statuses({"pass", "unsupported", "skipped"}), {}), ExitCode::success);
  EXPECT_EQ(exit_code_of(statuses({"xfail"}), {}), ExitCode::nothing_verified);
  EXPECT_EQ(exit_code_of(statuses({"xfail", "pass"}), {}), ExitCode::success);
  EXPECT_EQ(exit_code_of(statuses({"pass", "fail"}), {}), ExitCode::numerics_differ);
  EXPECT_EQ(exit_code_of(statuses({"pass", "xpass"}), {}), ExitCode::numerics_differ);
  for (const char* broken : {"error", "crashed", "timeout"}) {
    EXPECT_EQ(exit_code_of(statuses({"pass", broken}), {}), ExitCode::environment) << broken;
    EXPECT_EQ(exit_code_of(statuses({"fail", broken}), {}), ExitCode::numerics_differ) << "1 wins over 3";
  }
  EXPECT_EQ(exit_code_of(statuses({}), {}), ExitCode::nothing_verified);
  EXPECT_EQ(exit_code_of(statuses({"unsupported", "skipped"}), {}), ExitCode::nothing_verified);
  EXPECT_EQ(exit_code_of(statuses({"inconclusive"}), {}), ExitCode::nothing_verified);
}

TEST(ExitCode, gates_can_be_made_stricter_or_looser) {
  using core::ExitCode;
  EXPECT_EQ(exit_code_of(statuses({"pass", "inconclusive"}), {}), ExitCode::success);
  using verdict::Status;
  for (const Status status : {Status::warn, Status::inconclusive, Status::unsupported, Status::skipped, Status::xfail,
                              Status::error, Status::crashed, Status::timeout}) {
    const auto summary = statuses({"pass", verdict::status_name(status)});
    EXPECT_EQ(exit_code_of(summary, {.fail_on = {status}}), ExitCode::numerics_differ);
    EXPECT_NE(exit_code_of(summary, {.fail_on = {status == Status::warn ? Status::xfail : Status::warn}}),
              ExitCode::numerics_differ);
  }
  EXPECT_EQ(exit_code_of(statuses({}), {.allow_empty = true}), ExitCode::success);
  EXPECT_EQ(exit_code_of(statuses({"error"}), {.allow_empty = true}), ExitCode::environment);
}

TEST(ExitCode, names_what_gates_only_if_nothing_failed) {
  using verdict::Status;
  using Counts = std::vector<std::pair<Status, std::size_t>>;
  const GatePolicy policy{.fail_on = {Status::skipped, Status::warn, Status::xpass}};
  EXPECT_EQ(gated_by(statuses({"skipped", "pass", "warn", "skipped"}), policy),
            (Counts{{Status::warn, 1}, {Status::skipped, 2}}));
  EXPECT_EQ(gated_by(statuses({"pass", "inconclusive"}), policy), Counts{});
  EXPECT_EQ(gated_by(statuses({"warn", "fail"}), policy), Counts{});
  EXPECT_EQ(gated_by(statuses({"warn", "xpass"}), policy), Counts{});
}

TEST(ShortDigests, are_as_long_as_needed_to_tell_cases_apart) {
  const std::vector<std::string> digests = {"aaaaaaaa00000000", "aaaaaaaa0000ffff", "bbbbbbbbbbbbbbbb"};
  EXPECT_EQ(short_digests(digests), (std::vector<std::string>{"aaaaaaaa00000", "aaaaaaaa0000f", "bbbbbbbb"}));
  EXPECT_EQ(short_digests({"aaaaaaaa00000000", "aaaaaaaa00000000"}).front(), "aaaaaaaa") << "the same case twice";
}

RunFacts sample_facts() {
  RunFacts facts;
  facts.tool = {
      "0.1.0", "a1b2c3d", false, {"run", "/home/somebody/my plans/plan.json", "--out=/tmp/x", "--mode", "bf16"}};
  facts.plan = {.name = "sample", .digest = "xxh128:0", .seed = 7, .selected = 1, .expanded = 2};
  facts.device = machine::Device{.name = "NVIDIA H200", .sm = 90, .driver = "580.65"};
  facts.libraries = {{"cublaslt", "13.1.0 (/usr/local/cuda/lib64/libcublasLt.so.13)"}};
  facts.environment = {{"NVIDIA_TF32_OVERRIDE", std::nullopt}, {"CUBLAS_WORKSPACE_CONFIG", ":4096:8"}};
  return facts;
}

TEST(Report, names_no_folder_of_the_machine) {
  const std::string text = make_report(sample_facts(), {}).dump();
  EXPECT_EQ(text.find("somebody"), std::string::npos);
  EXPECT_EQ(text.find("my plans"), std::string::npos);
  EXPECT_EQ(text.find("/tmp"), std::string::npos);
  EXPECT_EQ(text.find("/usr/local"), std::string::npos);
  EXPECT_NE(text.find("plan.json"), std::string::npos);
  EXPECT_NE(text.find("13.1.0 (libcublasLt.so.13)"), std::string::npos);
}

TEST(Report, paths_in_messages_are_cut_down_to_file_names) {
  const plan::Case c = sample_case("fp32", 64);
  verdict::CaseResult result = sample_result(c, {{}});
  result.reason = "cannot load \"/opt/secret/libx.so\": no such file (see /opt/secret/log), 3/4 done, a/b";
  result.runs[0].run.error = "/opt/secret/libx.so";
  const json record = make_report(sample_facts(), {to_json(result)})["cases"][0];
  EXPECT_EQ(record["reason"], "cannot load \"libx.so\": no such file (see log), 3/4 done, a/b");
  EXPECT_EQ(record["runs"][0]["error"], "libx.so");
}

TEST(Report, records_variables_that_are_unset) {
  const json report = make_report(sample_facts(), {});
  EXPECT_TRUE(report["environment"].contains("NVIDIA_TF32_OVERRIDE"));
  EXPECT_TRUE(report["environment"]["NVIDIA_TF32_OVERRIDE"].is_null());
  EXPECT_EQ(report["environment"]["CUBLAS_WORKSPACE_CONFIG"], ":4096:8");
}

TEST(Report, has_an_override_table_only_if_cases_set_the_variable) {
  const plan::Case plain = sample_case("fp32", 64);
  EXPECT_FALSE(make_report(sample_facts(), {to_json(sample_result(plain, {{}}))}).contains("override_effect"));
  const plan::Case one = sample_case("fp32", 64, {{"NVIDIA_TF32_OVERRIDE", "1"}});
  const json report =
      make_report(sample_facts(), {to_json(sample_result(plain, {{}})), to_json(sample_result(one, {{}}))});
  EXPECT_EQ(report.at("override_effect").at("rows").size(), 1u);
}

}  // namespace
}  // namespace numcheck::report
