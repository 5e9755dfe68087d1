// Plans that take cases of others.
#include <gtest/gtest.h>

#include "support.hpp"

namespace numcheck::plan {
namespace {

using Strings = std::vector<std::string>;

std::string plan_of(const std::string& keys) {
  return "{\"version\": 1, " + keys + "}";
}

std::string case_of(int m, const std::string& more) {
  return "{\"op\": \"gemm\", \"params\": {\"m\": " + std::to_string(m) + ", \"n\": 1, \"k\": 1}, \"mode\": \"bf16\"" +
         (more.empty() ? "" : ", " + more) + "}";
}

/// With ops.json: m = 1 tagged a, m = 2 tagged a and b, m = 3 without a tag.
struct FolderOfThree : testing::Folder {
  FolderOfThree() {
    write("ops.json", plan_of("\"seed\": 9, \"name\": \"ops\", \"cases\": [" + case_of(1, R"("tags": ["a"])") + ",\n" +
                              case_of(2, R"("tags": ["a", "b"])") + ",\n" + case_of(3, "") + "]"));
  }
};

Strings ids_of(const testing::Folder& folder) {
  return testing::ids(load_plan(folder.path("plan.json"), testing::vocabulary(), {}));
}

TEST(Include, all_cases_come_before_the_plans_own) {
  const FolderOfThree folder;
  folder.write("plan.json", plan_of("\"seed\": 4, \"include\": \"ops.json\", \"cases\": [" + case_of(4, "") + "]"));
  const Plan plan = load_plan(folder.path("plan.json"), testing::vocabulary(), {});
  EXPECT_EQ(testing::ids(plan), (Strings{"gemm/m=1,n=1,k=1/bf16/auto", "gemm/m=2,n=1,k=1/bf16/auto",
                                         "gemm/m=3,n=1,k=1/bf16/auto", "gemm/m=4,n=1,k=1/bf16/auto"}));
  EXPECT_EQ(plan.name, "plan");
  EXPECT_EQ(plan.seed, 4U);
  EXPECT_EQ(plan.cases.front().seed, 4U);
  EXPECT_EQ(plan.files.size(), 2U);
}

TEST(Include, tags_choose) {
  const FolderOfThree folder;
  folder.write("plan.json", plan_of(R"("include": {"file": "ops.json", "tags": ["b"]})"));
  EXPECT_EQ(ids_of(folder), (Strings{"gemm/m=2,n=1,k=1/bf16/auto"}));
  folder.write("plan.json", plan_of(R"("include": [{"file": "ops.json", "tags": ["b", "a"]}, "ops.json"])"));
  EXPECT_EQ(ids_of(folder).size(), 3U) << "equal cases run once";
}

TEST(Include, a_tag_that_no_case_has_is_a_mistake) {
  const FolderOfThree folder;
  folder.write("plan.json", plan_of(R"("include": {"file": "ops.json", "tags": ["bb"]})"));
  EXPECT_EQ(folder.diagnose_file("plan.json"),
            R"(plan.json:1:27: error: no case of "ops.json" has such a tag
    1 | {"version": 1, "include": {"file": "ops.json", "tags": ["bb"]}}
      |                           ^
   hint: did you mean "b"? its tags are: a b
)");
}

TEST(Include, defaults_of_both_plans_hold) {
  const testing::Folder folder;
  folder.write("ops.json", plan_of(R"("defaults": {"op": "gemm", "mode": "fp16", "tags": ["x"]}, "cases": [
    {"params": {"m": 1, "n": 1, "k": 1}}, {"params": {"m": 2, "n": 1, "k": 1}, "mode": "fp32"}])"));
  folder.write("plan.json", plan_of(R"("defaults": {"mode": "bf16", "backend": "cuda"},
    "include": {"file": "ops.json", "tags": ["x"]})"));
  EXPECT_EQ(ids_of(folder), (Strings{"gemm/m=1,n=1,k=1/fp16/cuda", "gemm/m=2,n=1,k=1/fp32/cuda"}));
}

TEST(Include, params_in_the_defaults_of_an_included_plan_are_refused) {
  const testing::Folder folder;
  folder.write("ops.json", plan_of(R"("defaults": {"params": {"k": 1}}, "cases": [{"op": "gemm"}])"));
  folder.write("plan.json", plan_of(R"("include": "ops.json")"));
  EXPECT_NE(folder.diagnose_file("plan.json").find("error: an included plan cannot have \"params\" in \"defaults\""),
            std::string::npos);
}

TEST(Include, an_included_plan_may_include_and_extend) {
  const FolderOfThree folder;
  folder.write("sub/b.json", plan_of("\"include\": \"../ops.json\", \"cases\": [" + case_of(5, "") + "]"));
  folder.write("base.json", plan_of("\"cases\": [" + case_of(6, "") + "]"));
  folder.write("c.json", plan_of("\"extends\": \"base.json\""));
  folder.write("plan.json", plan_of(R"("include": ["sub/b.json", "c.json"])"));
  EXPECT_EQ(ids_of(folder).size(), 5U);
}

TEST(Include, replaces_the_cases_of_what_the_plan_extends) {
  const FolderOfThree folder;
  folder.write("base.json", plan_of("\"cases\": [" + case_of(6, "") + "]"));
  folder.write("plan.json", plan_of(R"("extends": "base.json", "include": {"file": "ops.json", "tags": ["b"]})"));
  EXPECT_EQ(ids_of(folder), (Strings{"gemm/m=2,n=1,k=1/bf16/auto"}));
}

TEST(Include, circles_through_both_keys_are_shown) {
  const testing::Folder folder;
  folder.write("plan.json", plan_of(R"("include": "a.json")"));
  folder.write("a.json", plan_of(R"("extends": "plan.json", "cases": [])"));
  EXPECT_NE(folder.diagnose_file("plan.json").find("error: \"extends\" is circular: plan.json -> a.json -> plan.json"),
            std::string::npos);
  folder.write("plan.json", plan_of(R"("include": "plan.json")"));
  EXPECT_NE(folder.diagnose_file("plan.json").find("error: \"include\" is circular: plan.json -> plan.json"),
            std::string::npos);
}

TEST(Include, mistakes_are_placed) {
  const FolderOfThree folder;
  folder.write("list.json", plan_of("\"cases\": {}"));
  folder.write("none.json", plan_of("\"seed\": 1"));
  folder.write("empty.json", plan_of("\"cases\": []"));
  folder.write("keys.json", plan_of("\"case\": [], \"cases\": [" + case_of(1, "") + "]"));
  const auto said = [&folder](const std::string& include) {
    folder.write("plan.json", plan_of("\"include\": " + include));
    return folder.diagnose_file("plan.json");
  };
  const auto says = [&said](const std::string& include, const std::string& words) {
    const std::string text = said(include);
    EXPECT_NE(text.find(words), std::string::npos) << include << "\n" << text;
  };
  says("7", "an entry of \"include\" must be a file name, or an object with a \"file\", not a number");
  says("{}", "an entry of \"include\" must be a file name");
  says("[]", "\"cases\" is empty: there is nothing to run");
  says(R"({"file": "ops.json", "tag": ["a"]})", "did you mean \"tags\"?");
  says(R"({"file": "ops.json", "tags": []})", "\"tags\" is empty");
  says(R"({"file": "ops.json", "tags": "a"})", "\"tags\" must be a list of words");
  says(R"("gone.json")", "plan.json:1:27: error: cannot read \"gone.json\": no such file");
  says(R"("list.json")", "list.json:1:25: error: \"cases\" must be a list of objects");
  says(R"("none.json")", "none.json:1:1: error: an included plan must have \"cases\"");
  says(R"("empty.json")", "there is nothing to include");
  says(R"("keys.json")", "keys.json:1:16: error: ");
  folder.write("cases.json",
               plan_of("\"cases\": [7, " + case_of(1, R"("tags": ["a"])") + "," + case_of(2, R"("tags": "a")") + "]"));
  says(R"({"file": "cases.json", "tags": ["a"]})", "a case must be an object, not a number");
  says(R"({"file": "cases.json", "tags": ["a"]})", "\"tags\" must be a list of words");
}

TEST(Include, doubling_is_bounded) {
  const testing::Folder folder;
  for (int i = 0; i < 12; ++i) {
    const std::string next = "\"" + std::to_string(i + 1) + ".json\"";
    folder.write(std::to_string(i) + ".json", plan_of("\"include\": [" + next + ", " + next + "]"));
  }
  folder.write("12.json", plan_of("\"cases\": [" + case_of(1, "") + "]"));
  EXPECT_NE(folder.diagnose_file("0.json").find("error: the plan reads more than 64 files"), std::string::npos);
}

}  // namespace
}  // namespace numcheck::plan
