// What compare makes of every pair of statuses, and of numbers that moved.
#include "report/comparison.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "report/views/comparison_views.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

/// A case in a report; without bits it did not run.
struct Sample {
  std::string status = "pass";
  std::string bits = "aaaa";
  double measured = 0.5;
  std::string implementation = "algo 67, split-k 4";
};

json record_of(const Sample& sample, const std::string& digest = "0123456789abcdef0123456789abcdef") {
  json runs = json::array();
  if (!sample.bits.empty()) {
    const json criteria = json::array({{{"name", "G1 bound"}, {"measured", sample.measured}, {"limit", 1}}});
    runs.push_back({{"implementation", sample.implementation},
                    {"outputs", {{"d", {{"xxh128", sample.bits}, {"criteria", criteria}}}}}});
  }
  return {{"digest", digest}, {"id", "gemm/k=" + digest}, {"status", sample.status}, {"runs", runs}};
}

json report_of(const std::vector<json>& cases) {
  return {{"schema", "te-numcheck/report"},
          {"machine", {{"driver", "570.1"}, {"libraries", {{"cublaslt", "13.1.0"}}}}},
          {"environment", {{"NVIDIA_TF32_OVERRIDE", nullptr}}},
          {"cases", cases}};
}

json with(const std::optional<Sample>& sample) {
  return report_of(sample ? std::vector{record_of(*sample)} : std::vector<json>());
}

CaseChange changed(const std::optional<Sample>& base, const std::optional<Sample>& now,
                   const ComparisonOptions& options = {}) {
  return compare_reports(with(base), with(now), options).cases.at(0);
}

const Sample kPass;
const Sample kFail{.status = "fail", .bits = "bbbb", .measured = 9};
const Sample kCrashed{.status = "crashed", .bits = ""};
const Sample kUnsupported{.status = "unsupported", .bits = ""};
const Sample kKnown{.status = "xfail", .bits = "bbbb", .measured = 9};
const Sample kKnownWorse{.status = "xfail", .bits = "cccc", .measured = 90};
const Sample kWarn{.status = "warn"};
const Sample kWarnChanged{.status = "warn", .bits = "cccc"};
const Sample kInconclusive{.status = "inconclusive"};
const Sample kInconclusiveChanged{.status = "inconclusive", .bits = "cccc"};

TEST(Comparison, of_a_run_and_its_baseline_counts_what_the_run_has) {
  const Sample skipped{.status = "skipped", .bits = ""};
  EXPECT_EQ(compare_reports(with(kPass), with(std::nullopt), {.only_new = true}).sentence(), "no cases");
  EXPECT_EQ(compare_reports(with(kPass), with(skipped), {.only_new = true}).regressions, 1U);
  EXPECT_EQ(compare_reports(with(kPass), with(skipped), {.only_new = true, .skip_skipped = true}).sentence(),
            "no cases");
  EXPECT_EQ(compare_reports(with(kPass), with(kUnsupported), {.only_new = true, .skip_skipped = true}).regressions, 1U);
}

TEST(Comparison, a_record_lists_only_so_many_regressions) {
  std::vector<json> good, bad;
  for (std::size_t i = 0; i < kRecordedRegressions + 5; ++i) {
    good.push_back(record_of(kPass, std::to_string(i)));
    bad.push_back(record_of(i == 0 ? kPass : kFail, std::to_string(i)));
  }
  const json record = comparison_record(compare_reports(report_of(good), report_of(bad), {}), "h200.json");
  EXPECT_EQ(record.at("baseline"), "h200.json");
  EXPECT_EQ(record.at("regressions").size(), kRecordedRegressions);
  EXPECT_EQ(record.at("regressions").front().at("id"), "gemm/k=1");
  EXPECT_EQ(record.at("summary").at("regressions"), kRecordedRegressions + 4);
}

TEST(Comparison, follows_from_both_statuses) {
  struct Row {
    std::optional<Sample> base, now;
    Change change;
    bool gates;
  };
  const std::vector<Row> rows = {
      {kPass, kPass, Change::identical, false},
      {kPass, kFail, Change::newly_failing, true},
      {kPass, kCrashed, Change::newly_failing, true},
      {kUnsupported, kFail, Change::newly_failing, true},
      {std::nullopt, kFail, Change::newly_failing, true},
      {kKnown, kFail, Change::newly_failing, true},
      {kPass, kUnsupported, Change::gone, true},
      {kFail, kUnsupported, Change::gone, true},
      {kPass, std::nullopt, Change::gone, true},
      {kUnsupported, std::nullopt, Change::identical, false},
      {kUnsupported, kUnsupported, Change::identical, false},
      {kUnsupported, kPass, Change::appeared, false},
      {std::nullopt, kPass, Change::appeared, false},
      {std::nullopt, kKnown, Change::appeared, false},
      {kFail, kPass, Change::fixed, false},
      {kCrashed, kPass, Change::fixed, false},
      {kKnown, kPass, Change::fixed, false},
      {kFail, kFail, Change::identical, false},
      {kFail, kKnown, Change::restated, false},
      {kFail, kCrashed, Change::worse, true},
      {kPass, kKnown, Change::restated, false},
      {kKnown, kKnown, Change::identical, false},
      {kKnown, kKnownWorse, Change::same, false},
      {kCrashed, kKnown, Change::restated, false},
      {kPass, kWarn, Change::restated, false},
      {kPass, kWarnChanged, Change::restated, false},
      {kWarn, kPass, Change::restated, false},
      {kPass, kInconclusive, Change::worse, true},
      {kPass, kInconclusiveChanged, Change::worse, true},
      {kFail, kInconclusive, Change::restated, false},
      {kInconclusive, kInconclusive, Change::identical, false},
      {kInconclusive, kPass, Change::restated, false},
  };
  for (const Row& row : rows) {
    const CaseChange change = changed(row.base, row.now);
    const std::string what = change.base_status + " -> " + change.new_status;
    EXPECT_EQ(change_name(change.change), change_name(row.change)) << what;
    EXPECT_EQ(change.gates, row.gates) << what;
  }
  EXPECT_FALSE(changed(kPass, std::nullopt, {.allow_missing = true}).gates);
}

TEST(Comparison, of_other_bits_follows_from_error_over_limit) {
  const auto change = [](double measured, double allowed = 1.1) {
    return changed(kPass, Sample{.bits = "cccc", .measured = measured}, {.allow_worse = allowed}).change;
  };
  EXPECT_EQ(change(0.5), Change::same);
  EXPECT_EQ(change(0.54), Change::same);
  EXPECT_EQ(change(0.46), Change::same);
  EXPECT_EQ(change(0.56), Change::worse);
  EXPECT_EQ(change(0.56, 1.5), Change::same);
  EXPECT_EQ(change(0.4), Change::better);
  const CaseChange worse =
      changed(kPass, Sample{.bits = "cccc", .measured = 0.56, .implementation = "algo 71, split-k 4"});
  EXPECT_EQ(worse.outputs, std::set<std::string>{"d"});
  EXPECT_EQ(worse.implementation, "algo 67 -> algo 71");
  EXPECT_TRUE(worse.gates);
}

/// What correct rounding to 16 bits fills by itself, beside the arithmetic's own error.
json narrow(const std::string& bits, double arithmetic, const std::string& status = "pass") {
  json report = with(Sample{.status = status, .bits = bits, .measured = arithmetic});
  report["cases"][0]["runs"][0]["outputs"]["d"]["criteria"].push_back(
      {{"name", "G4 element"}, {"measured", 0.99}, {"limit", 1}, {"about", "rounding"}});
  return report;
}

TEST(Comparison, sees_arithmetic_that_is_worse_behind_the_rounding_of_the_output) {
  const CaseChange change = compare_reports(narrow("aaaa", 0.3), narrow("bbbb", 0.9), {}).cases[0];
  EXPECT_EQ(change.change, Change::worse);
  EXPECT_TRUE(change.gates);
  EXPECT_EQ(change.base_ratio, 0.3);
  EXPECT_EQ(change.new_ratio, 0.9);
  EXPECT_EQ(compare_reports(narrow("aaaa", 0.3), narrow("bbbb", 0.31), {}).cases[0].change, Change::same);
  EXPECT_EQ(compare_reports(narrow("aaaa", 0.3), narrow("aaaa", 0.9), {}).cases[0].change, Change::identical);
  EXPECT_EQ(compare_reports(with(Sample{.measured = 0.99}), narrow("bbbb", 0.5), {}).cases[0].change, Change::same)
      << "of an older brief report";
}

TEST(Comparison, of_what_is_excused_for_another_gate_says_so) {
  const auto known = [](const char* bits, const char* gate) {
    json report = with(Sample{.status = "xfail", .bits = bits, .measured = 9});
    report["cases"][0]["runs"][0]["outputs"]["d"]["criteria"][0]["name"] = gate;
    return report;
  };
  const CaseChange change = compare_reports(known("aaaa", "G2 rms"), known("bbbb", "G1 bound"), {}).cases[0];
  EXPECT_EQ(change.change, Change::restated);
  EXPECT_FALSE(change.gates);
  EXPECT_EQ(compare_reports(known("aaaa", "G2 rms"), known("bbbb", "G2 rms"), {}).cases[0].change, Change::same);
}

TEST(Comparison, algorithms_that_came_or_went_are_not_the_same_bits) {
  const json one = with(kPass);
  json two = one;
  json& runs = two["cases"][0]["runs"];
  runs.push_back(runs[0]);
  runs[1]["outputs"]["d"]["xxh128"] = "bbbb";
  EXPECT_EQ(compare_reports(two, two, {}).cases[0].change, Change::identical) << "of the same name";
  for (const auto& [base, now] : {std::pair(one, two), std::pair(two, one)}) {
    const CaseChange change = compare_reports(base, now, {}).cases[0];
    EXPECT_EQ(change.change, Change::same);
    EXPECT_EQ(change.outputs, std::set<std::string>{"d"});
    EXPECT_FALSE(change.implementation.empty());
  }
}

TEST(Comparison, of_a_warning_that_is_worse_gates) {
  const CaseChange change = changed(kPass, Sample{.status = "warn", .bits = "cccc", .measured = 0.9});
  EXPECT_EQ(change.change, Change::worse);
  EXPECT_TRUE(change.gates);
  EXPECT_EQ(compare_reports(with(kPass), with(kWarnChanged), {}).sentence(), "1 changed status");
}

TEST(Comparison, names_another_implementation_of_the_same_bits) {
  const CaseChange change = changed(kPass, Sample{.implementation = "algo 67, split-k 1, reduction 2"});
  EXPECT_EQ(change.change, Change::identical);
  EXPECT_EQ(change.implementation, "split-k 4 -> split-k 1, reduction 2");
}

TEST(Comparison, gates_without_a_ratio_are_infinitely_worse) {
  json failed = with(kFail);
  json& criterion = failed["cases"][0]["runs"][0]["outputs"]["d"]["criteria"][0];
  criterion["limit"] = 0;
  EXPECT_EQ(compare_reports(with(kFail), failed, {}).cases[0].change, Change::identical) << "the bits are the same";
  failed["cases"][0]["runs"][0]["outputs"]["d"]["xxh128"] = "dddd";
  EXPECT_EQ(compare_reports(with(kFail), failed, {}).cases[0].change, Change::worse);
  criterion["measured"] = "NaN";
  EXPECT_EQ(compare_reports(with(kFail), failed, {}).cases[0].change, Change::worse);
}

TEST(Comparison, says_what_happened_in_a_sentence) {
  const json base =
      report_of({record_of(kPass, "01"), record_of(kPass, "02"), record_of(kPass, "03"), record_of(kFail, "04")});
  const json now =
      report_of({record_of(kPass, "01"), record_of(kFail, "02"), record_of(kPass, "04"), record_of(kPass, "05")});
  const Comparison comparison = compare_reports(base, now, {});
  EXPECT_EQ(comparison.sentence(), "1 newly failing, 1 gone, 1 fixed, 1 new, 1 identical");
  EXPECT_EQ(comparison.regressions, 2U);
  EXPECT_EQ(comparison.joined, 3U);
  const json written = comparison_json(comparison);
  EXPECT_EQ(written["cases"].size(), 4U) << "identical cases are only counted";
  EXPECT_EQ(written["summary"]["identical"], 1);
  const std::string markdown = views::comparison_markdown(comparison);
  EXPECT_LT(markdown.find("**newly failing**"), markdown.find("| fixed |")) << markdown;
}

TEST(Comparison, names_what_else_differs) {
  json now = with(kPass);
  now["machine"]["driver"] = "580.2";
  now["machine"]["libraries"]["cudnn"] = "9.19.0";
  now["environment"]["NVIDIA_TF32_OVERRIDE"] = "0";
  now["interrupted"] = true;
  now["settings"] = {{"inject", "bit_flip"}, {"repeat", 1}};
  json base = with(kPass);
  base["settings"] = {{"inject", nullptr}, {"repeat", 2}};
  EXPECT_EQ(compare_reports(base, now, {}).settings,
            (std::vector<std::string>{"driver: 570.1 -> 580.2", "the new run has the planted fault bit_flip",
                                      "repeat: 2 -> 1", "cudnn: none -> 9.19.0", "NVIDIA_TF32_OVERRIDE: unset -> 0",
                                      "the new run was interrupted"}));
}

TEST(Comparison, refuses_what_it_cannot_join) {
  const json twice = report_of({record_of(kPass), record_of(kPass)});
  EXPECT_THROW((void)compare_reports(twice, with(kPass), {}), core::IoError);
  EXPECT_THROW((void)compare_reports(with(kPass), twice, {}), core::IoError);
  json broken = with(kPass);
  broken["cases"][0]["runs"][0].erase("outputs");
  EXPECT_THROW((void)compare_reports(with(kPass), broken, {}), core::IoError);
}

TEST(Comparison, markdown_stays_below_what_a_host_takes) {
  constexpr int kCases = 20'000;
  std::vector<json> cases;
  for (int i = 0; i < kCases; ++i) {
    cases.push_back(record_of(kFail, std::to_string(i)));
  }
  const std::string markdown = views::comparison_markdown(compare_reports(with(std::nullopt), report_of(cases), {}));
  EXPECT_LE(markdown.size(), std::size_t{1} << 20);
  EXPECT_NE(markdown.find(" more changes.\n"), std::string::npos);
}

}  // namespace
}  // namespace numcheck::report
