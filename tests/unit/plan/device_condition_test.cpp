// Known issues of certain architectures and library versions.
#include "plan/device_condition.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "plan/case.hpp"

namespace numcheck::plan {
namespace {

using Libraries = std::vector<std::pair<std::string, std::string>>;

const Libraries kLibraries = {
    {"cublaslt", "13.1.0 (libcublasLt.so.13)"}, {"cuda_driver", "13.0"}, {"lost", "not found"}};

bool holds_on_h200(const DeviceCondition& condition) {
  return holds(condition, {90, "580.159.04", kLibraries});
}

DeviceCondition library(const char* name, VersionRange range) {
  return {{}, {{name, {std::move(range)}}}};
}

TEST(DeviceCondition, without_conditions_it_applies_to_every_device) {
  EXPECT_TRUE(holds_on_h200({}));
}

TEST(DeviceCondition, architectures_are_ranges_with_both_ends) {
  EXPECT_TRUE(holds_on_h200({{{90, 90}}, {}}));
  EXPECT_TRUE(holds_on_h200({{{80, 90}}, {}}));
  EXPECT_TRUE(holds_on_h200({{{90, 120}}, {}}));
  EXPECT_FALSE(holds_on_h200({{{80, 89}}, {}}));
  EXPECT_FALSE(holds_on_h200({{{100, 120}}, {}}));
  EXPECT_TRUE(holds_on_h200({{{100, 120}, {89, 90}}, {}})) << "one of them";
}

TEST(DeviceCondition, a_version_stands_for_all_that_begin_with_it) {
  EXPECT_TRUE(holds_on_h200(library("cublaslt", {{13}, {13}})));
  EXPECT_TRUE(holds_on_h200(library("cublaslt", {{13, 1}, {13, 1}})));
  EXPECT_TRUE(holds_on_h200(library("cublaslt", {{13, 1, 0}, {13, 1, 0}})));
  EXPECT_FALSE(holds_on_h200(library("cublaslt", {{13, 1, 1}, {13, 1, 1}})));
  EXPECT_FALSE(holds_on_h200(library("cublaslt", {{13, 0}, {13, 0}})));
  EXPECT_TRUE(holds_on_h200(library("cuda_driver", {{13, 0, 0}, {13, 0, 0}}))) << "13.0 is 13.0.0";
}

TEST(DeviceCondition, versions_are_ranges_with_both_ends) {
  EXPECT_TRUE(holds_on_h200(library("cublaslt", {{12, 9}, {13, 1}})));
  EXPECT_TRUE(holds_on_h200(library("cublaslt", {{13, 1}, {}})));
  EXPECT_TRUE(holds_on_h200(library("cublaslt", {{}, {13}})));
  EXPECT_FALSE(holds_on_h200(library("cublaslt", {{}, {13, 0}})));
  EXPECT_FALSE(holds_on_h200(library("cublaslt", {{13, 1, 1}, {}})));
  EXPECT_FALSE(holds_on_h200(library("cublaslt", {{13, 10}, {}}))) << "numbers, not texts";
  EXPECT_TRUE(holds_on_h200(library("driver", {{580}, {580}})));
  EXPECT_FALSE(holds_on_h200(library("driver", {{}, {570}})));
}

TEST(DeviceCondition, unknown_versions_are_in_no_range) {
  EXPECT_FALSE(holds_on_h200(library("cudnn", {})));
  EXPECT_FALSE(holds_on_h200(library("lost", {})));
  EXPECT_FALSE(holds(library("driver", {}), {90, "", {}}));
}

TEST(DeviceCondition, all_of_them_must_hold) {
  EXPECT_FALSE(holds_on_h200({{{80, 80}}, {{"cublaslt", {{{13}, {13}}}}}}));
  EXPECT_FALSE(holds_on_h200({{{90, 90}}, {{"cublaslt", {{{13}, {13}}}}, {"driver", {{{590}, {}}}}}}));
  EXPECT_TRUE(holds_on_h200({{{90, 90}}, {{"cublaslt", {{{12}, {12}}, {{13}, {13}}}}, {"driver", {{{580}, {}}}}}}));
}

TEST(DeviceCondition, reads_the_version_at_the_start_of_a_text) {
  EXPECT_EQ(leading_version("13.1.0 (path/9.9)"), (Version{13, 1, 0}));
  EXPECT_EQ(leading_version("580.159.04"), (Version{580, 159, 4}));
  EXPECT_EQ(leading_version("9"), (Version{9}));
  EXPECT_EQ(leading_version("9."), (Version{9}));
  EXPECT_TRUE(leading_version("").empty());
  EXPECT_TRUE(leading_version("v9").empty());
  EXPECT_TRUE(leading_version("-9").empty());
  EXPECT_TRUE(leading_version("99999999999999999999").empty());
}

TEST(DeviceCondition, knows_empty_ranges) {
  EXPECT_FALSE(is_empty({{13, 1}, {13}}));
  EXPECT_FALSE(is_empty({{13, 1}, {13, 1}}));
  EXPECT_FALSE(is_empty({{}, {1}}));
  EXPECT_TRUE(is_empty({{13, 1}, {13, 0, 9}}));
  EXPECT_TRUE(is_empty({{14}, {13, 9}}));
}

TEST(KnownIssues, the_first_that_applies_counts) {
  Case c;
  EXPECT_TRUE(known_issues_on(c, DeviceFacts{90, "", {}}).empty());
  c.known_issues = {{"old", "", {{{80, 80}}, {}}}, {"new", "", {{{90, 90}}, {}}}, {"all", "", {}}};
  EXPECT_EQ(known_issues_on(c, DeviceFacts{90, "", {}}).front().reason, "new");
  EXPECT_EQ(known_issues_on(c, DeviceFacts{80, "", {}}).front().reason, "old");
  EXPECT_EQ(known_issues_on(c, DeviceFacts{75, "", {}}).front().reason, "all");
}

}  // namespace
}  // namespace numcheck::plan
