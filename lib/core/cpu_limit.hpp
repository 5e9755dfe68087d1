// How many CPUs this process may use.
#pragma once

#include <string>

namespace numcheck::core {

/// The CPUs of the affinity mask, limited by the control group's quota (rounded up) where there is one; at least 1.
[[nodiscard]] int available_cpus();

/// The smallest CPU quota on the path of control groups in `cgroup_file` (the text of /proc/self/cgroup), in CPUs; 0 if
/// there is none. `root` is where the hierarchy is mounted. Reads cpu.max (version 2) and cpu.cfs_quota_us (version 1).
/// Source: Linux, Documentation/admin-guide/cgroup-v2.rst, "CPU Interface Files".
[[nodiscard]] double cgroup_cpu_quota(const std::string& root, const std::string& cgroup_file);

}  // namespace numcheck::core
