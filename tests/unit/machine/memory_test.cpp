// Memory limits of control groups, on made-up file trees.
#include "machine/memory.hpp"

#include <cstdint>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/temporary_folder.hpp"

namespace numcheck::machine {
namespace {

class CgroupTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const { (void)root_.write(path, text); }
  [[nodiscard]] std::optional<std::uint64_t> limit_bytes() const { return cgroup_limit_bytes(root_.path()); }

 private:
  test::TemporaryFolder root_;
};

TEST_F(CgroupTest, version_2_takes_the_smallest_of_the_ancestors) {
  write("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n");
  write("proc/self/cgroup", "0::/slurm/job/step\n");
  write("sys/fs/cgroup/slurm/memory.max", "max\n");
  write("sys/fs/cgroup/slurm/job/memory.max", "8000000000\n");
  write("sys/fs/cgroup/slurm/job/step/memory.max", "9000000000\n");
  EXPECT_EQ(limit_bytes(), 8'000'000'000U);
}

TEST_F(CgroupTest, version_1_in_a_container_sees_a_part_of_the_hierarchy) {
  write("proc/self/mountinfo",
        "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
        "36 31 0:33 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n");
  write("proc/self/cgroup", "9:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "4294967296\n");
  EXPECT_EQ(limit_bytes(), 4'294'967'296U);
}

TEST_F(CgroupTest, nothing_where_there_is_no_limit) {
  EXPECT_EQ(limit_bytes(), std::nullopt);
  write("proc/self/mountinfo", "garbage\n31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write("proc/self/cgroup", "garbage\n0::/a/../../b\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(limit_bytes(), std::nullopt);
  write("sys/fs/cgroup/memory.max", "12x\n");
  EXPECT_EQ(limit_bytes(), std::nullopt);
}

TEST(Memory, default_is_a_share_of_the_limit) {
  EXPECT_GT(physical_memory_bytes(), std::uint64_t{64} << 20);
  EXPECT_LE(memory_limit_bytes(), physical_memory_bytes());
  EXPECT_LT(default_memory_bytes(), memory_limit_bytes());
  EXPECT_GT(default_memory_bytes(), memory_limit_bytes() / 2);
}

}  // namespace
}  // namespace numcheck::machine
