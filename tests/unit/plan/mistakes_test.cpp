// Every diagnostic of the plan language with its exact text. tests/data/plan/*.txt hold sections
//
//   === name
//   plan (or the keys of one case, which plan_support wraps)
//   ---
//   the diagnostics
//
// If a message changes, the test fails; edit the file by hand.
#include <sstream>

#include <gtest/gtest.h>

#include "support.hpp"

namespace numcheck::plan {
namespace {

struct Section {
  std::string name;
  std::string plan;
  std::string expected;
};

std::vector<Section> read_sections(const std::string& file) {
  std::istringstream stream(testing::read_repository_file("tests/data/plan/" + file));
  std::vector<Section> sections;
  bool in_plan = true;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("=== ")) {
      sections.push_back({line.substr(4), "", ""});
      in_plan = true;
    } else if (line == "---") {
      in_plan = false;
    } else {
      (in_plan ? sections.back().plan : sections.back().expected) += line + '\n';
    }
  }
  for (Section& section : sections) {
    section.plan.pop_back();  // the newline before ---
  }
  return sections;
}

class Mistakes : public ::testing::TestWithParam<const char*> {};

TEST_P(Mistakes, are_explained) {
  const std::vector<Section> sections = read_sections(GetParam());
  ASSERT_FALSE(sections.empty());
  for (const Section& section : sections) {
    SCOPED_TRACE(section.name);
    ASSERT_FALSE(section.expected.empty());
    const std::string plan = section.plan.starts_with('"') ? testing::with_case(section.plan) : section.plan;
    EXPECT_EQ(testing::diagnose(plan), section.expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Mistakes,
                         ::testing::Values("syntax.txt", "plan.txt", "values.txt", "settings.txt", "sweep.txt",
                                           "warnings.txt"),
                         [](const auto& file) {
                           const std::string name = file.param;
                           return name.substr(0, name.find('.'));
                         });

TEST(PlanMistakes, are_reported_together_in_the_order_of_the_file) {
  const std::string text = testing::with_case(R"("timeout_s": 0,
"mode": "bf61",
"params": {"q": 1})");
  try {
    static_cast<void>(testing::load(text));
    FAIL() << "no mistake was found";
  } catch (const PlanError& error) {
    ASSERT_EQ(error.diagnostics().size(), 3U);
    EXPECT_EQ(error.diagnostics()[0].line, 2U);
    EXPECT_EQ(error.diagnostics()[1].line, 3U);
    EXPECT_EQ(error.diagnostics()[2].line, 4U);
    EXPECT_EQ(error.summary(), "3 errors; nothing was run");
    EXPECT_EQ(error.exit_code(), core::ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("unknown mode \"bf61\""), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("3 errors; nothing was run"), std::string::npos);
  }
}

TEST(PlanMistakes, are_at_most_twenty) {
  std::string keys;
  for (int i = 0; i < 57; ++i) {
    keys += "\"q" + std::to_string(i) + "\": 1,\n";
  }
  try {
    static_cast<void>(testing::load(testing::with_case(keys + "\"tags\": []")));
    FAIL() << "no mistake was found";
  } catch (const PlanError& error) {
    EXPECT_EQ(error.diagnostics().size(), 20U);
    EXPECT_EQ(error.found(), 57U);
    EXPECT_EQ(error.summary(), "57 errors (the first 20 are shown); nothing was run");
  }
}

TEST(PlanMistakes, one_is_one) {
  try {
    static_cast<void>(testing::load("{}x"));
    FAIL() << "no mistake was found";
  } catch (const PlanError& error) {
    EXPECT_EQ(error.summary(), "1 error; nothing was run");
  }
}

TEST(PlanMistakes, missing_file) {
  const testing::Folder folder;
  EXPECT_EQ(folder.diagnose_file("missing.json"), "missing.json: error: cannot read the plan: no such file\n");
  EXPECT_EQ(folder.diagnose_file(""), ": error: cannot read the plan: it is a folder\n");
}

TEST(PlanMistakes, file_that_is_too_large) {
  const testing::Folder folder;
  folder.write("plan.json", std::string(3000, ' '));
  Limits limits;
  limits.max_file_bytes = 2048;
  EXPECT_EQ(folder.diagnose_file("plan.json", limits),
            "plan.json: error: cannot read the plan: it is larger than 2.0 KiB: it has 2.9 KiB\n");
  EXPECT_EQ(testing::diagnose(std::string(3000, ' '), limits), "plan.json: error: the plan is larger than 2.0 KiB\n");
}

TEST(PlanMistakes, max_cases_is_a_limit_set_by_the_user) {
  Limits limits;
  limits.max_cases = 3;
  const std::string four = testing::with_case(R"("params": {"m": [1, 2], "n": [1, 2]}, "exclude": [{"m": 1}])");
  EXPECT_NE(testing::diagnose(four, limits).find("the plan has 4 cases; more than 3 need --max-cases"),
            std::string::npos)
      << "the limit is on the product of the axes, before exclude";
  limits.max_cases = 4;
  EXPECT_EQ(testing::diagnose(four, limits), "");
}

TEST(PlanMistakes, cases_that_do_not_fit_into_memory_are_refused_before_they_are_created) {
  Limits limits;
  limits.max_cases = 1'000'000'000;
  limits.case_memory_bytes = 1U << 30;
  const std::string many = testing::with_case(
      R"("params": {"m": {"from": 1, "to": 20000, "step": 1}, "n": {"from": 1, "to": 20000, "step": 1}},
                                                 "exclude": [{"k": 4}])");
  const std::string refusal = testing::diagnose(many, limits);
  EXPECT_NE(refusal.find("the plan has 400000000 cases, which take about 411.3 GiB of memory; the limit is 1.0 GiB"),
            std::string::npos)
      << refusal;
  EXPECT_NE(refusal.find("this sweep has 400000000: m 20000 x n 20000"), std::string::npos);
  limits.case_memory_bytes = 3'000;
  EXPECT_NE(testing::diagnose(testing::with_case(R"("params": {"m": [1, 2], "n": [1, 2]})"), limits).find("of memory"),
            std::string::npos);
  EXPECT_EQ(testing::diagnose(testing::with_case(R"("params": {"m": [1, 2]})"), limits), "");
}

}  // namespace
}  // namespace numcheck::plan
