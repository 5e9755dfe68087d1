// Plans that consist of several files.
#include <sys/stat.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "support.hpp"

namespace numcheck::plan {
namespace {

constexpr const char* kCase = R"({"op": "gemm", "params": {"m": 1, "n": 1, "k": 1}, "mode": "bf16"})";

std::string plan_of(const std::string& keys) {
  return "{\"version\": 1, " + keys + "}";
}

TEST(Extends, merges_objects_deeply_and_replaces_lists) {
  const testing::Folder folder;
  folder.write("common.json", R"({"version": 1, "name": "common", "seed": 7,
    "defaults": {"op": "gemm", "params": {"m": 2, "n": 3, "k": 4, "trans_b": true}, "mode": ["fp32", "tf32"]},
    "cases": [{}]})");
  folder.write("plan.json", R"({"version": 1, "name": "mine", "extends": "common.json",
    "defaults": {"params": {"k": 5, "bias": true}, "mode": ["bf16"]}})");
  const Plan plan = load_plan(folder.path("plan.json"), testing::vocabulary(), {});
  EXPECT_EQ(plan.name, "mine");
  EXPECT_EQ(plan.seed, 7U);
  EXPECT_EQ(testing::ids(plan), (std::vector<std::string>{"gemm/m=2,n=3,k=5,tb=1,bias=1/bf16/auto"}));
}

TEST(Extends, later_files_win) {
  const testing::Folder folder;
  folder.write("a.json", plan_of(std::string("\"seed\": 1, \"name\": \"a\", \"cases\": [") + kCase + "]"));
  folder.write("sub/b.json", plan_of("\"seed\": 2, \"extends\": \"../c.json\""));
  folder.write("c.json", plan_of("\"seed\": 3, \"description\": \"from c\""));
  folder.write("plan.json", plan_of("\"extends\": [\"a.json\", \"sub/b.json\"]"));
  const Plan plan = load_plan(folder.path("plan.json"), testing::vocabulary(), {});
  EXPECT_EQ(plan.seed, 2U);
  EXPECT_EQ(plan.name, "a");
  EXPECT_EQ(plan.description, "from c");
  EXPECT_EQ(plan.cases.size(), 1U);
}

TEST(Extends, null_in_an_environment_is_a_value) {
  const testing::Folder folder;
  folder.write("a.json", R"({"version": 1, "defaults": {"environment": {"NVIDIA_TF32_OVERRIDE": "0"}}})");
  folder.write("plan.json", R"({"version": 1, "extends": "a.json",
    "defaults": {"environment": {"NVIDIA_TF32_OVERRIDE": null}},
    "cases": [{"op": "gemm", "params": {"m": 1, "n": 1, "k": 1}, "mode": "tf32"}]})");
  const Plan plan = load_plan(folder.path("plan.json"), testing::vocabulary(), {});
  EXPECT_EQ(testing::ids(plan), (std::vector<std::string>{"gemm/m=1,n=1,k=1/tf32/auto/NVIDIA_TF32_OVERRIDE=unset"}));
}

TEST(Extends, the_same_file_twice_is_not_a_circle) {
  const testing::Folder folder;
  folder.write("base.json", plan_of(std::string("\"cases\": [") + kCase + "]"));
  folder.write("left.json", plan_of("\"extends\": \"base.json\""));
  folder.write("plan.json", plan_of("\"extends\": [\"left.json\", \"./base.json\"]"));
  EXPECT_EQ(folder.diagnose_file("plan.json"), "");
}

TEST(Extends, circles_are_shown_in_full) {
  const testing::Folder folder;
  folder.write("plan.json", plan_of("\"extends\": \"a.json\""));
  folder.write("a.json", plan_of("\"extends\": \"b.json\""));
  folder.write("b.json", plan_of("\"extends\": \"./plan.json\""));
  EXPECT_EQ(folder.diagnose_file("plan.json"),
            R"(b.json:1:27: error: "extends" is circular: plan.json -> a.json -> b.json -> plan.json
    1 | {"version": 1, "extends": "./plan.json"}
      |                           ^~~~~~~~~~~~~
)");
}

TEST(Extends, itself_through_a_link_is_a_circle) {
  const testing::Folder folder;
  folder.write("plan.json", plan_of("\"extends\": \"link.json\""));
  std::filesystem::create_symlink("plan.json", folder.path("link.json"));
  EXPECT_EQ(folder.diagnose_file("plan.json"),
            R"(plan.json:1:27: error: "extends" is circular: plan.json -> plan.json
    1 | {"version": 1, "extends": "link.json"}
      |                           ^~~~~~~~~~~
)");
}

TEST(Extends, missing_files_are_reported_where_they_are_named) {
  const testing::Folder folder;
  folder.write("plan.json", plan_of("\"extends\": [\"gone.json\", \"folder\"]"));
  folder.write("folder/x", "");
  EXPECT_EQ(folder.diagnose_file("plan.json"), R"(plan.json:1:28: error: cannot read "gone.json": no such file
    1 | {"version": 1, "extends": ["gone.json", "folder"]}
      |                            ^~~~~~~~~~~
   hint: paths are relative to the file that names them
plan.json:1:41: error: cannot read "folder": it is a folder
    1 | {"version": 1, "extends": ["gone.json", "folder"]}
      |                                         ^~~~~~~~
   hint: paths are relative to the file that names them
)");
}

TEST(Extends, devices_are_not_read) {
  const testing::Folder folder;
  folder.write("plan.json", plan_of("\"extends\": \"/dev/zero\""));
  EXPECT_EQ(folder.diagnose_file("plan.json"),
            R"(plan.json:1:27: error: cannot read "/dev/zero": it is a device, not a regular file
    1 | {"version": 1, "extends": "/dev/zero"}
      |                           ^~~~~~~~~~~
   hint: paths are relative to the file that names them
)");
}

TEST(Extends, virtual_files_and_pipes_are_not_read) {
  const testing::Folder folder;
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);  // has no writer: reading would wait forever
  folder.write("plan.json", plan_of("\"extends\": [\"/proc/self/environ\", \"pipe\"]"));
  const std::string text = folder.diagnose_file("plan.json");
  EXPECT_NE(text.find("it shows the state of the system (/proc, /sys)"), std::string::npos) << text;
  EXPECT_NE(text.find("it is a pipe, not a regular file"), std::string::npos) << text;
}

TEST(Extends, a_file_that_is_not_a_plan_is_not_quoted) {
  const testing::Folder folder;
  folder.write("plan.json", plan_of("\"extends\": \"secret\""));
  for (const char* content : {"token = hunter2\n", "// words\n /* more */ hunter2", "", "[\"hunter2\"]", "\x01hunter2",
                              "\xFF\xFEh\0u\0n\0t\0", "\"hunter2\""}) {
    folder.write("secret", content);
    const std::string text = folder.diagnose_file("plan.json");
    EXPECT_NE(text.find(R"(cannot read "secret": it is not a plan)"), std::string::npos) << text;
    EXPECT_EQ(text.find("hunter2"), std::string::npos) << text;
  }
}

TEST(Extends, the_files_of_a_plan_are_known) {
  const testing::Folder folder;
  folder.write("base.json", plan_of("\"cases\": [" + std::string(kCase) + "]"));
  folder.write("plan.json", plan_of("\"extends\": \"base.json\""));
  const Plan plan = load_plan(folder.path("plan.json"), testing::vocabulary(), {});
  EXPECT_EQ(plan.files, (std::vector<std::string>{folder.path("plan.json"), folder.path("base.json")}));
}

TEST(Extends, wrong_types) {
  const testing::Folder folder;
  folder.write("plan.json", plan_of("\"extends\": 1"));
  EXPECT_EQ(folder.diagnose_file("plan.json"),
            R"(plan.json:1:27: error: "extends" must be a file name or a list of file names, not a number
    1 | {"version": 1, "extends": 1}
      |                           ^
)");
  folder.write("plan.json", plan_of("\"extends\": [null, \"\", \"a\\u0000b\"]"));
  EXPECT_EQ(folder.diagnose_file("plan.json"), R"(plan.json:1:28: error: "extends" must be a file name, not null
    1 | {"version": 1, "extends": [null, "", "a\u0000b"]}
      |                            ^~~~
plan.json:1:34: error: "extends" must be the name of a file
    1 | {"version": 1, "extends": [null, "", "a\u0000b"]}
      |                                  ^~
plan.json:1:38: error: "extends" must be the name of a file
    1 | {"version": 1, "extends": [null, "", "a\u0000b"]}
      |                                      ^~~~~~~~~~
)");
}

TEST(Extends, mistakes_are_shown_in_the_file_that_has_them) {
  const testing::Folder folder;
  folder.write("common.json",
               "{\"version\": 1,\n \"defaults\": {\"mode\": \"bf61\", \"params\": {\"output\": \"fp16\"}}}");
  folder.write("plan.json", plan_of("\"extends\": \"common.json\",\n \"cases\": [" + std::string(kCase) + "]"));
  EXPECT_EQ(folder.diagnose_file("plan.json"),
            R"(plan.json:2:37: error: gemm: mode bf16 has no output "fp16"; it has bf16 and fp32
    2 |  "cases": [{"op": "gemm", "params": {"m": 1, "n": 1, "k": 1}, "mode": "bf16"}]}
      |                                     ^
   note: parameters come from here and from "defaults" (common.json:2)
   at /cases/0/params
common.json:2:23: error: unknown mode "bf61"
    2 |  "defaults": {"mode": "bf61", "params": {"output": "fp16"}}}
      |                       ^~~~~~
   hint: did you mean "bf16"? modes are: fp32 fp32_pedantic tf32 fp32_fast16f fp32_fast16bf bf16x9 bf16 fp16 fp16_acc16 fp8_e4m3 fp8_hybrid fp4_e2m1
   at /defaults/mode
)");
}

TEST(Extends, syntax_errors_and_versions_of_bases) {
  const testing::Folder folder;
  folder.write("common.json", "{\"version\": 2}");
  folder.write("broken.json", "{\"version\": 1,}");
  folder.write("list.json", "[]");
  folder.write("plan.json", plan_of("\"extends\": [\"common.json\", \"broken.json\", \"list.json\"], \"cases\": [" +
                                    std::string(kCase) + "]"));
  EXPECT_EQ(folder.diagnose_file("plan.json"),
            R"(plan.json:1:58: error: cannot read "list.json": it is not a plan: a plan begins with "{"
    1 | …xtends": ["common.json", "broken.json", "list.json"], "cases": [{"op": "gemm", "params": {"m": 1, "n…
      |                                          ^~~~~~~~~~~
   hint: paths are relative to the file that names them
common.json:1:13: error: plan version 2 is newer than this program
    1 | {"version": 2}
      |             ^
   hint: this program reads version 1; use a newer te-numcheck
broken.json:1:14: error: trailing comma
    1 | {"version": 1,}
      |              ^
   hint: JSON has no comma after the last element
)");
}

TEST(Extends, sandbox_allows_only_the_plans_folder) {
  const testing::Folder folder;
  folder.write("outside.json", plan_of("\"seed\": 1"));
  folder.write("in/side.json", plan_of("\"seed\": 2"));
  folder.write("in/plan.json", plan_of("\"extends\": \"../outside.json\", \"cases\": [" + std::string(kCase) + "]"));
  Limits limits;
  EXPECT_EQ(folder.diagnose_file("in/plan.json", limits), "");
  limits.sandbox = true;
  EXPECT_EQ(folder.diagnose_file("in/plan.json", limits),
            R"(in/plan.json:1:27: error: "../outside.json" is outside the plan's folder
    1 | {"version": 1, "extends": "../outside.json", "cases": [{"op": "gemm", "params": {"m": 1, "n": 1, "k"…
      |                           ^~~~~~~~~~~~~~~~~
   hint: --sandbox allows only files in or below the plan's folder
)");
  std::filesystem::create_symlink("../outside.json", folder.path("in/link.json"));
  folder.write("in/plan.json", plan_of("\"extends\": \"link.json\", \"cases\": [" + std::string(kCase) + "]"));
  EXPECT_NE(folder.diagnose_file("in/plan.json", limits).find("outside the plan's folder"), std::string::npos);
  folder.write("in/plan.json", plan_of("\"extends\": \"../in/side.json\", \"cases\": [" + std::string(kCase) + "]"));
  EXPECT_EQ(folder.diagnose_file("in/plan.json", limits), "");
}

TEST(Extends, doubling_is_bounded) {
  const testing::Folder folder;
  for (int i = 0; i < 20; ++i) {
    const std::string next = std::to_string(i + 1) + ".json";
    folder.write(std::to_string(i) + ".json", plan_of("\"extends\": [\"" + next + "\", \"" + next + "\"]"));
  }
  folder.write("20.json", plan_of("\"seed\": 1"));
  EXPECT_NE(folder.diagnose_file("0.json").find("error: the plan reads more than 64 files\n"), std::string::npos);
}

TEST(Extends, size_limit_holds_for_all_files_together) {
  const testing::Folder folder;
  Limits limits;
  limits.max_file_bytes = 1000;
  folder.write("a.json", plan_of("\"seed\": 1") + std::string(600, ' '));
  folder.write("b.json", plan_of("\"seed\": 1") + std::string(600, ' '));
  folder.write("plan.json", plan_of("\"extends\": [\"a.json\", \"b.json\"], \"cases\": [" + std::string(kCase) + "]"));
  EXPECT_NE(folder.diagnose_file("plan.json", limits).find("cannot read \"b.json\": it is larger than"),
            std::string::npos);
}

}  // namespace
}  // namespace numcheck::plan
