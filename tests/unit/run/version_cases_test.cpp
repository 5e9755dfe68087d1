// Two versions of a library in one run: one reference for both, and what the record says of them.
#include <atomic>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "copy.hpp"
#include "plan/backend_name.hpp"
#include "prepare/grouping.hpp"
#include "report/library_table.hpp"
#include "run/pipeline.hpp"

namespace numcheck::run::copy {
namespace {

std::atomic<int> references = 0;
op::Values (*plain_values)(const op::ReferenceRequest&) = nullptr;

/// The catalog with a reference that is counted.
std::vector<prepare::CatalogRow> counting_catalog() {
  std::vector<prepare::CatalogRow> catalog = copy_catalog();
  plain_values = catalog[0].reference.values;
  catalog[0].reference.values = [](const op::ReferenceRequest& request) {
    ++references;
    return plain_values(request);
  };
  return catalog;
}

/// Sizes under both versions; what the tags say happens under the second one only.
std::vector<plan::Case> both_versions(const std::vector<std::string>& tags) {
  const std::vector<std::string> names = {"lib@2.20.2", "lib@2.11.0"};
  std::vector<plan::Case> plan;
  for (std::size_t i = 0; i < tags.size(); ++i) {
    plan.push_back(make_case(40 + static_cast<std::int64_t>(i), "fp32"));
    plan.back().backend = "lib";
    plan::identify(plan.back());
  }
  std::vector<plan::Case> cases = plan::one_case_per_version(std::move(plan), "lib", names);
  for (std::size_t i = 0; i < tags.size(); ++i) {
    cases[2 * i + 1].tags = {tags[i]};
  }
  return cases;
}

std::vector<nlohmann::json> records_of(PipelineResult result) {
  std::vector<nlohmann::json> records;
  for (FinishedCase& finished : result.cases) {
    records.push_back(std::move(finished.record));
  }
  return records;
}

TEST(VersionCases, share_inputs_and_reference) {
  const std::vector<plan::Case> cases = both_versions({""});
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(prepare::group_cases(cases, {0, 1}).size(), 1U);
  const std::vector<prepare::CatalogRow> catalog = counting_catalog();
  references = 0;
  (void)run_cases({cases[0]}, catalog, in_process());
  const int alone = references.exchange(0);
  const PipelineResult both = run_cases(cases, catalog, in_process());
  EXPECT_GT(alone, 0);
  EXPECT_EQ(references, alone) << "the second version costs no reference";
  EXPECT_EQ(both.cases[0].status, verdict::Status::pass);
  EXPECT_EQ(both.cases[1].status, verdict::Status::pass);
}

TEST(VersionCases, are_compared_in_the_record) {
  const std::vector<prepare::CatalogRow> catalog = copy_catalog();
  const auto records = records_of(run_cases(both_versions({"", "wrong", "unsupported", ""}), catalog, in_process()));
  const nlohmann::json row = report::library_changes(records).at("rows").at(0);
  EXPECT_EQ(row["base"], "2.20.2");
  EXPECT_EQ(row["other"], "2.11.0");
  EXPECT_EQ(row["identical"], 2);
  EXPECT_EQ(row["changed"], 1);
  EXPECT_EQ(row["not_comparable"], 1);
  EXPECT_EQ(row["changes"][0]["id"], "copy/n=41/fp32/lib@2.20.2");
  EXPECT_EQ(row["changes"][0]["error_over_limit"]["base"], 0.0);
  EXPECT_EQ(row["changes"][0]["error_over_limit"]["other"], "Infinity");
  EXPECT_EQ(row["reasons"][0]["text"], "2.11.0: unsupported: this device cannot copy");
}

}  // namespace
}  // namespace numcheck::run::copy
