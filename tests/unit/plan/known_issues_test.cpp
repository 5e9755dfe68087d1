// Files of known issues: what they add to cases, and their mistakes.
#include "plan/known_issues.hpp"

#include <gtest/gtest.h>

#include "support.hpp"

namespace numcheck::plan {
namespace {

Plan two_modes() {
  return testing::load(R"({"version": 1, "cases": [
    {"op": "gemm", "params": {"m": 1, "n": 1, "k": [2, 3]}, "mode": ["bf16", "fp16"],
     "xfail": [{"match": {"k": 3}, "reason": "of the plan"}]}]})");
}

std::string mistakes(const std::string& text) {
  std::vector<Case> cases = two_modes().cases;
  try {
    add_known_issues_from(text, cases, "known.json", testing::vocabulary(), {});
  } catch (const PlanError& error) {
    std::string all;
    for (const Diagnostic& diagnostic : error.diagnostics()) {
      all += render(diagnostic);
    }
    return all;
  }
  return {};
}

TEST(KnownIssueFiles, add_to_the_cases_that_match_after_those_of_the_plan) {
  std::vector<Case> cases = two_modes().cases;
  add_known_issues_from(R"({"version": 1, "known_issues": [
      {"op": "gemm", "match": {"mode": "bf16", "libraries": {"cublaslt": "13.1"}}, "cause": "a tail", "reason": "12"},
      {"op": "gemm", "match": {"k": 4}, "reason": "no case of this plan"}]})",
                        cases, "known.json", testing::vocabulary(), {});
  ASSERT_EQ(cases.size(), 4U);
  std::size_t issues = 0;
  for (const Case& c : cases) {
    const std::size_t own = c.id.find("k=3") == std::string::npos ? 0 : 1;
    const std::size_t added = c.mode->name == "bf16" ? 1 : 0;
    ASSERT_EQ(c.known_issues.size(), own + added) << c.id;
    if (added == 1) {
      EXPECT_EQ(c.known_issues.back().cause, "a tail");
      EXPECT_EQ(c.known_issues.back().where.libraries.front().name, "cublaslt");
    }
    issues += c.known_issues.size();
  }
  EXPECT_EQ(issues, 4U);
}

TEST(KnownIssueFiles, entries_know_their_places_and_who_matches) {
  std::vector<Case> cases = two_modes().cases;
  const KnownIssues known = add_known_issues_from(
      "{\"version\": 1, \"known_issues\": [ {\"op\": \"gemm\", \"match\": {\"k\": 4}, \"reason\": \"\u00e4\"},  "
      "{\"op\": \"gemm\", \"reason\": \"12\"},\n  {\"op\": \"gemm\", \"match\": {\"k\": 5}, \"reason\": \"12\"}]}",
      cases, "known.json", testing::vocabulary(), {});
  EXPECT_EQ(known.entries, 3U);
  ASSERT_EQ(known.unmatched.size(), 2U);
  EXPECT_EQ(known.unmatched[0].text(), "known.json:1:34");
  EXPECT_EQ(known.unmatched[1].text(), "known.json:2:3");
  EXPECT_EQ(cases.front().known_issues.back().place.text(), "known.json:1:85");
}

TEST(KnownIssueFiles, warn_of_entries_that_expire_if_they_are_told_the_day) {
  const auto warnings = [](const std::string& expires, const std::string& today) {
    std::vector<Case> cases = two_modes().cases;
    Limits limits;
    limits.today = today;
    return add_known_issues_from(
               R"({"version": 1, "known_issues": [{"op": "gemm", "reason": "12", "expires": ")" + expires + R"("}]})",
               cases, "known.json", testing::vocabulary(), limits)
        .warnings;
  };
  EXPECT_TRUE(warnings("2026-02-28", "").empty());
  EXPECT_TRUE(warnings("2026-03-31", "2026-02-28").empty()) << "31 days";
  ASSERT_EQ(warnings("2026-03-30", "2026-02-28").size(), 1U);
  EXPECT_EQ(warnings("2026-03-30", "2026-02-28").front().text, "this known failure expires in 30 days");
  EXPECT_EQ(warnings("2026-03-01", "2026-02-28").front().text, "this known failure expires tomorrow");
  EXPECT_EQ(warnings("2026-02-27", "2026-02-28").front().text,
            "this known failure expired on 2026-02-27: it excuses nothing any more");
  EXPECT_EQ(warnings("2026-02-27", "2026-02-28").front().column, 75U);
}

TEST(KnownIssueFiles, ranges_of_integers_include_both_ends_and_may_be_open) {
  const auto matching = [](const std::string& k) {
    std::vector<Case> cases = testing::load(R"({"version": 1, "cases": [
        {"op": "gemm", "params": {"m": 1, "n": 1, "k": [2, 3, 4, 5, 9]}, "mode": "bf16"}]})")
                                  .cases;
    add_known_issues_from(
        R"({"version": 1, "known_issues": [{"op": "gemm", "match": {"k": )" + k + R"(}, "reason": "12"}]})", cases,
        "known.json", testing::vocabulary(), {});
    std::string found;
    for (const Case& c : cases) {
      found += c.known_issues.empty() ? "-" : "x";
    }
    return found;
  };
  EXPECT_EQ(matching(R"({"from": 3, "to": 5})"), "-xxx-");
  EXPECT_EQ(matching(R"({"from": 4})"), "--xxx");
  EXPECT_EQ(matching(R"({"to": 4})"), "xxx--");
  EXPECT_EQ(matching(R"([2, {"from": 5, "to": 5}, {"from": 9}])"), "x--xx");
}

TEST(KnownIssueFiles, ranges_of_numbers) {
  std::vector<Case> cases = testing::load(R"({"version": 1, "cases": [
      {"op": "gemm", "params": {"m": 1, "n": 1, "k": 1, "alpha": [-2.5, -0.5, 0, 0.25]}, "mode": "bf16"}]})")
                                .cases;
  add_known_issues_from(R"({"version": 1, "known_issues": [
      {"op": "gemm", "match": {"alpha": {"to": -0.5}}, "reason": "negative"},
      {"op": "gemm", "match": {"alpha": {"from": -0.5, "to": 0.2}}, "reason": "small"}]})",
                        cases, "known.json", testing::vocabulary(), {});
  std::vector<std::size_t> found;
  for (const Case& c : cases) {
    found.push_back(c.known_issues.size());
  }
  EXPECT_EQ(found, (std::vector<std::size_t>{1, 2, 1, 0}));
}

TEST(KnownIssueFiles, mistakes_are_all_named_with_their_places) {
  const std::string all = mistakes(R"({"version": 2, "issues": [], "known_issues": [
      {"op": "gem", "reason": "12"}, {"op": "gemm", "match": {}, "reason": "12"},
      {"match": {}, "reason": "12"},
      {"op": "gemm", "match": {"rows": 3}, "reason": "12"},
      {"op": "gemm", "cause": "", "expires": "soon"},
      {"op": "gemm", "reason": "12", "until": "2030-01-01"},
      {"op": "gemm", "match": {"k": {"from": 5, "to": 4}, "m": {}, "n": {"from": "1"}, "batch": {"min": 1}}, "reason": "12"},
      {"op": "gemm", "match": {"alpha": {"from": "1"}, "trans_a": {"from": 1}}, "reason": "12"},
      7]})");
  for (const char* part :
       {"known.json:1:13", "unknown key \"issues\"", "did you mean \"gemm\"", "has no \"op\"", "\"match\" is empty",
        "\"rows\" is not a field of a gemm case", "\"cause\" must be a text", "has no \"reason\"", "must be a date",
        "unknown key \"until\"", "known.json:9:7", "a range of \"k\" from 5 to 4 is empty",
        "a range of \"m\" has neither end", "a range of \"n\" must be", "unknown key \"min\"",
        "a range of \"alpha\" must be", "\"trans_a\" must be"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all;
  }
  EXPECT_NE(mistakes("[]").find("must be an object"), std::string::npos) << mistakes("[]");
  EXPECT_NE(mistakes(R"({"version": 1})").find("known_issues"), std::string::npos);
  EXPECT_NE(mistakes("{").find("known.json:1"), std::string::npos);
}

}  // namespace
}  // namespace numcheck::plan
