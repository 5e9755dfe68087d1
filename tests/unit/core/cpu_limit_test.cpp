#include "core/cpu_limit.hpp"

#include <sched.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/temporary_folder.hpp"

namespace numcheck::test {
namespace {

class CgroupTree : public testing::Test {
 protected:
  void write(const std::filesystem::path& folder, const std::string& file, const std::string& text) const {
    (void)root_.write(folder / file, text);
  }
  [[nodiscard]] double quota(const std::string& cgroup_file) const {
    return core::cgroup_cpu_quota(root_.path().string(), cgroup_file);
  }

 private:
  TemporaryFolder root_;
};

TEST_F(CgroupTree, no_limit_is_zero) {
  EXPECT_EQ(quota(""), 0);
  EXPECT_EQ(quota("0::/a/b\n"), 0);
  EXPECT_EQ(quota("nonsense\n::\n0:\n"), 0);
  write("a", "cpu.max", "max 100000\n");
  EXPECT_EQ(quota("0::/a\n"), 0);
}

TEST_F(CgroupTree, version_2_takes_the_smallest_on_the_path) {
  write("a/b", "cpu.max", "max 100000\n");
  write("a", "cpu.max", "250000 100000\n");
  EXPECT_EQ(quota("0::/a/b\n"), 2.5);
  write("a/b", "cpu.max", "50000 100000\n");
  EXPECT_EQ(quota("0::/a/b\n"), 0.5);
  write("", "cpu.max", "20000 100000\n");
  EXPECT_EQ(quota("0::/\n"), 0.2);
  EXPECT_EQ(quota("0::/a/b\n"), 0.2);
}

TEST_F(CgroupTree, version_1_reads_its_controller) {
  write("cpu,cpuacct/x", "cpu.cfs_quota_us", "300000\n");
  write("cpu,cpuacct/x", "cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota("5:memory:/x\n"), 0);
  EXPECT_EQ(quota("5:memory:/x\n4:cpu,cpuacct:/x\n"), 3);
  write("cpu,cpuacct/x", "cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(quota("4:cpu,cpuacct:/x\n"), 0);
}

TEST_F(CgroupTree, broken_files_are_ignored) {
  write("a", "cpu.max", "");
  EXPECT_EQ(quota("0::/a\n"), 0);
  write("a", "cpu.max", "100000 0\n");
  EXPECT_EQ(quota("0::/a\n"), 0);
  write("a", "cpu.max", "-5 100000\n");
  EXPECT_EQ(quota("0::/a\n"), 0);
}

TEST(AvailableCpus, follows_the_affinity_mask) {
  EXPECT_GE(core::available_cpus(), 1);
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(core::available_cpus(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_LE(core::available_cpus(), CPU_COUNT(&before));
}

}  // namespace
}  // namespace numcheck::test
