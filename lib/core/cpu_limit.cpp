#include "core/cpu_limit.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "core/strings.hpp"

namespace numcheck::core {
namespace {

/// CPU quota that one folder (of either version) sets, 0 if none.
double quota_in(const std::string& folder) {
  std::string quota;
  double period = 0;
  if (std::ifstream file(folder + "/cpu.max"); file >> quota >> period) {
    return quota == "max" || period <= 0 ? 0 : std::strtod(quota.c_str(), nullptr) / period;
  }
  double quota_us = 0;
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  if (quota_file >> quota_us && period_file >> period && quota_us > 0 && period > 0) {
    return quota_us / period;
  }
  return 0;
}

/// Smallest quota of `mount` + `path` and of all its parents up to the mount.
double smallest_quota(const std::string& mount, std::string path) {
  double smallest = 0;
  for (;;) {
    const double quota = quota_in(mount + path);
    if (quota > 0 && (smallest == 0 || quota < smallest)) {
      smallest = quota;
    }
    if (path.empty()) {
      return smallest;
    }
    const std::size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
  }
}

bool has_cpu_controller(const std::string& controllers) {
  const std::vector<std::string> names = split(controllers, ',');
  return std::find(names.begin(), names.end(), "cpu") != names.end();
}

/// Processors of the affinity mask, for machines of any size.
int affinity_cpus() {
  constexpr int kLargestMachine = 1 << 18;
  for (int cpus = 1024; cpus <= kLargestMachine; cpus *= 2) {
    const std::size_t bytes = CPU_ALLOC_SIZE(cpus);
    std::vector<cpu_set_t> mask(bytes / sizeof(cpu_set_t) + 1);
    if (sched_getaffinity(0, bytes, mask.data()) == 0) {
      return CPU_COUNT_S(bytes, mask.data());
    }
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

double cgroup_cpu_quota(const std::string& root, const std::string& cgroup_file) {
  double smallest = 0;
  for (const std::string& line : split(cgroup_file, '\n')) {
    // "hierarchy:controllers:path"; version 2 has hierarchy 0 and no controllers.
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") {
      path.clear();
    }
    if (!controllers.empty() && !has_cpu_controller(controllers)) {
      continue;
    }
    for (const std::string& mount : {root, root + "/cpu", root + "/cpu,cpuacct"}) {
      const double quota = smallest_quota(mount, path);
      if (quota > 0 && (smallest == 0 || quota < smallest)) {
        smallest = quota;
      }
    }
  }
  return smallest;
}

int available_cpus() {
  std::ifstream file("/proc/self/cgroup");
  std::stringstream text;
  text << file.rdbuf();
  const double quota = cgroup_cpu_quota("/sys/fs/cgroup", text.str());
  const int cpus = std::max(1, affinity_cpus());
  return quota > 0 ? std::clamp(static_cast<int>(std::ceil(quota)), 1, cpus) : cpus;
}

}  // namespace numcheck::core
