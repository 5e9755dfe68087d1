#include "report/merge.hpp"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "report/brief.hpp"
#include "report/report.hpp"
#include "report/shard_checks.hpp"
#include "sample_record.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using testing::sample_case;
using testing::sample_result;

constexpr std::size_t kCases = 7;
constexpr std::size_t kShards = 3;

std::vector<json> sample_records() {
  std::vector<json> records;
  for (std::size_t i = 0; i < kCases; ++i) {
    const plan::Case c = sample_case("fp32", static_cast<std::int64_t>(i + 1));
    records.push_back(to_json(sample_result(c, {{.measured = i == 4 ? 2.0 : 0.5}})));
    records.back()["reproduce"] = "te-numcheck run";
  }
  return records;
}

RunFacts sample_facts() {
  RunFacts facts;
  facts.plan.name = "sample";
  facts.plan.digest = "of the plan";
  facts.plan.selected = facts.plan.expanded = kCases;
  facts.settings.repeat = 2;
  facts.device = machine::Device{};
  facts.device->name = "NVIDIA X";
  facts.device->uuid = "GPU-1";
  facts.libraries = {{"cudnn", "9.1"}};
  facts.environment = {{"CUDA_VISIBLE_DEVICES", std::nullopt}, {"NVIDIA_TF32_OVERRIDE", std::nullopt}};
  facts.started = "2025-01-02T03:04:05Z";
  return facts;
}

/// The cases dealt out in turn.
std::vector<NamedReport> sample_shards() {
  const std::vector<json> records = sample_records();
  std::vector<std::string> digests;
  for (const json& record : records) {
    digests.push_back(record.at("digest"));
  }
  std::vector<NamedReport> shards;
  for (std::size_t index = 0; index < kShards; ++index) {
    RunFacts facts = sample_facts();
    facts.plan.shard = {.index = index, .count = kShards, .of = kCases, .selection = selection_digest(digests)};
    facts.times.wall_s = static_cast<double>(index + 1);
    facts.times.stages.device_s = 1;
    std::vector<json> own;
    for (std::size_t i = index; i < kCases; i += kShards) {
      facts.plan.shard.places.push_back(i);
      own.push_back(records[i]);
    }
    facts.plan.selected = own.size();
    shards.push_back({"shard " + std::to_string(index + 1), make_report(facts, std::move(own))});
  }
  return shards;
}

/// Everything but what a merged report may have otherwise.
json without_times(json report) {
  for (const char* member : {"time_s", "shards"}) {
    report.erase(member);
  }
  return report;
}

TEST(Merge, gives_the_report_of_the_whole_run) {
  const json whole = make_report(sample_facts(), sample_records());
  std::vector<NamedReport> shards = sample_shards();
  EXPECT_EQ(without_times(merge_reports(shards)), without_times(whole));
  std::ranges::reverse(shards);
  EXPECT_EQ(without_times(merge_reports(shards)), without_times(whole));
  EXPECT_EQ(whole["summary"]["fail"], 1);
}

TEST(Merge, of_brief_reports_is_the_brief_report_of_the_merged_one) {
  std::vector<NamedReport> brief = sample_shards();
  for (NamedReport& one : brief) {
    one.report = brief_report(one.report);
  }
  EXPECT_EQ(merge_reports(brief), brief_report(merge_reports(sample_shards())));
}

TEST(Merge, sums_stage_times_and_keeps_the_longest_wall_clock_time) {
  const json merged = merge_reports(sample_shards());
  EXPECT_EQ(merged["time_s"]["wall"], 3.0);
  EXPECT_EQ(merged["time_s"]["device"], 3.0);
  EXPECT_EQ(merged["shards"].size(), kShards);
  EXPECT_EQ(merged["shards"][1]["wall_s"], 2.0);
}

TEST(Merge, configurations_that_several_shards_verified_count_once) {
  std::vector<NamedReport> shards = sample_shards();
  for (NamedReport& one : shards) {
    one.report["configurations"] = {{"asked", 9}, {"kept", kCases}, {"offered", 5}, {"verified", 2}};
  }
  shards[0].report["plan"]["shard"]["verified"] = {"a", "b"};
  shards[1].report["plan"]["shard"]["verified"] = {"b", "c"};
  EXPECT_EQ(merge_reports(shards)["configurations"],
            (json{{"asked", 9}, {"kept", kCases}, {"offered", 5}, {"verified", 3}}));
}

TEST(Merge, a_shard_without_cases_needs_no_device) {
  std::vector<NamedReport> shards = sample_shards();
  RunFacts facts = sample_facts();
  facts.device.reset();
  facts.libraries.clear();
  facts.plan.shard = {.index = kShards, .count = kShards + 1, .of = kCases};
  facts.plan.selected = 0;
  facts.plan.shard.selection = shards[0].report["plan"]["shard"]["selection"];
  shards.insert(shards.begin(), {"shard 4", make_report(facts, {})});
  for (NamedReport& one : shards) {
    one.report["plan"]["shard"]["count"] = kShards + 1;
  }
  EXPECT_EQ(without_times(merge_reports(shards)), without_times(make_report(sample_facts(), sample_records())));
}

TEST(Merge, names_every_reason_to_refuse) {
  std::vector<NamedReport> shards = sample_shards();
  shards[1].report["machine"]["driver"] = "2";
  shards[1].report["interrupted"] = true;
  shards.pop_back();
  EXPECT_EQ(shard_problems(shards),
            (std::vector<std::string>{"shard 2 was interrupted: continue that run with --resume",
                                      "shard 3/3 is missing", "shard 2: the driver is 2, but shard 1 has none"}));
  EXPECT_THROW((void)merge_reports(shards), core::UsageError);
}

TEST(Merge, refuses_cases_that_are_not_the_selection) {
  std::vector<NamedReport> shards = sample_shards();
  std::swap(shards[0].report["plan"]["shard"]["places"][0], shards[0].report["plan"]["shard"]["places"][1]);
  EXPECT_THROW((void)merge_reports(shards), core::UsageError);
  shards = sample_shards();
  shards[0].report["plan"]["shard"]["places"][0] = kCases;
  EXPECT_THROW((void)merge_reports(shards), core::UsageError);
  shards = sample_shards();
  shards[0].report["cases"][0]["digest"] = "another";
  EXPECT_THROW((void)merge_reports(shards), core::UsageError);
}

TEST(Merge, of_what_lacks_members_is_an_error_of_the_file) {
  for (const char* member : {"plan", "machine", "environment", "time_s", "interrupted", "tool", "started"}) {
    std::vector<NamedReport> shards = sample_shards();
    shards[1].report.erase(member);
    EXPECT_ANY_THROW((void)merge_reports(shards)) << member;
    shards[1].report[member] = 3;
    EXPECT_ANY_THROW((void)merge_reports(shards)) << member;
  }
}

}  // namespace
}  // namespace numcheck::report
