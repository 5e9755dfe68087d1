#include "shard.hpp"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace numcheck::app {
namespace {

Shard parse(std::string_view text, const std::map<std::string, std::string>& variables = {}) {
  return parse_shard(text, [&variables](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(Shard, is_written_from_one) {
  EXPECT_EQ(parse("1/8").index, 0u);
  EXPECT_EQ(parse("8/8").index, 7u);
  EXPECT_EQ(parse("8/8").count, 8u);
}

TEST(Shard, rejects_invalid_shards) {
  for (const char* text : {"", "3", "0/3", "4/3", "1/0", "a/3", "1/b", "-1/3", "1/3/4", " 1/3", "1.0/3", "auto/0"}) {
    EXPECT_THROW(parse(text), core::UsageError) << text;
  }
}

struct Convention {
  const char* name;
  std::map<std::string, std::string> variables;
  std::size_t index;
  std::size_t count;
};

TEST(Shard, reads_the_schedulers_conventions) {
  const Convention conventions[] = {
      {"GoogleTest", {{"GTEST_SHARD_INDEX", "1"}, {"GTEST_TOTAL_SHARDS", "4"}}, 1, 4},
      {"Slurm array from 10 to 16 in steps of 2",
       {{"SLURM_ARRAY_TASK_ID", "14"},
        {"SLURM_ARRAY_TASK_MIN", "10"},
        {"SLURM_ARRAY_TASK_STEP", "2"},
        {"SLURM_ARRAY_TASK_COUNT", "4"}},
       2,
       4},
      {"Slurm task", {{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "4"}}, 3, 4},
      {"Open MPI", {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}, 0, 2},
      {"PMI", {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, 1, 2},
      {"GitLab counts from one", {{"CI_NODE_INDEX", "4"}, {"CI_NODE_TOTAL", "4"}}, 3, 4},
  };
  for (const Convention& convention : conventions) {
    const Shard shard = parse("auto", convention.variables);
    EXPECT_EQ(shard.index, convention.index) << convention.name;
    EXPECT_EQ(shard.count, convention.count) << convention.name;
  }
}

TEST(Shard, kubernetes_gives_no_total) {
  EXPECT_THROW(parse("auto", {{"JOB_COMPLETION_INDEX", "2"}}), core::UsageError);
  EXPECT_EQ(parse("auto/8", {{"JOB_COMPLETION_INDEX", "2"}}).index, 2u);
  EXPECT_THROW(parse("auto/2", {{"JOB_COMPLETION_INDEX", "2"}}), core::UsageError);
}

TEST(Shard, variables_that_contradict_each_other_are_an_error) {
  EXPECT_THROW(parse("auto", {{"GTEST_SHARD_INDEX", "4"}, {"GTEST_TOTAL_SHARDS", "4"}}), core::UsageError);
  EXPECT_THROW(parse("auto", {{"GTEST_SHARD_INDEX", "x"}, {"GTEST_TOTAL_SHARDS", "4"}}), core::UsageError);
  EXPECT_THROW(parse("auto", {{"CI_NODE_INDEX", "0"}, {"CI_NODE_TOTAL", "4"}}), core::UsageError);
  EXPECT_THROW(
      parse("auto", {{"SLURM_ARRAY_TASK_ID", "1"}, {"SLURM_ARRAY_TASK_MIN", "2"}, {"SLURM_ARRAY_TASK_COUNT", "4"}}),
      core::UsageError);
}

TEST(Shard, never_assumes_one) {
  EXPECT_THROW(parse("auto"), core::UsageError);
}

TEST(ShardOf, depends_on_the_group_alone_and_spreads_groups) {
  EXPECT_EQ(shard_of(core::digest_of("some group"), 8), shard_of(core::digest_of("some group"), 8));
  std::set<std::size_t> used;
  for (int i = 0; i < 100; ++i) {
    const std::size_t shard = shard_of(core::digest_of("group " + std::to_string(i)), 8);
    EXPECT_LT(shard, 8u);
    used.insert(shard);
  }
  EXPECT_EQ(used.size(), 8u);
}

}  // namespace
}  // namespace numcheck::app
