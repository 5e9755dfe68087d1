#include "machine/memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/strings.hpp"

namespace numcheck::machine {
namespace {

namespace fs = std::filesystem;

/// Where a hierarchy with the memory controller is mounted, and which part of it.
struct Mount {
  std::string root;
  std::string point;
  bool unified = false;
};

bool contains_word(std::string_view list, std::string_view word) {
  const auto words = core::split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// proc(5), mountinfo: "31 23 0:28 ROOT POINT OPTIONS [tags] - TYPE SOURCE SUPER_OPTIONS".
std::vector<Mount> memory_mounts(const fs::path& root) {
  std::vector<Mount> mounts;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) {
      continue;
    }
    std::istringstream head(line.substr(0, dash));
    std::istringstream tail(line.substr(dash + 3));
    std::string skipped;
    std::string type;
    std::string options;
    Mount mount;
    head >> skipped >> skipped >> skipped >> mount.root >> mount.point;
    tail >> type >> skipped >> options;
    mount.unified = type == "cgroup2";
    if (mount.unified || (type == "cgroup" && contains_word(options, "memory"))) {
      mounts.push_back(mount);
    }
  }
  return mounts;
}

/// This process's group in a hierarchy: lines "0::/path" (unified) or "4:memory:/path".
std::string own_group(const fs::path& root, bool unified) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (unified ? controllers.empty() : contains_word(controllers, "memory")) {
      return line.substr(second + 1);
    }
  }
  return "/";
}

std::optional<std::uint64_t> read_limit(const fs::path& path) {
  std::ifstream file(path);
  std::string text;
  std::uint64_t value = 0;
  if (!(file >> text)) {
    return std::nullopt;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;  // "max"
  }
  return value;
}

/// The group's path below the mount point: a container sees only part of the hierarchy.
fs::path below_mount(const Mount& mount, const std::string& group) {
  std::string rest = group;
  if (mount.root != "/" && rest.starts_with(mount.root)) {
    rest.erase(0, mount.root.size());
  }
  const auto start = rest.find_first_not_of('/');
  return start == std::string::npos ? fs::path() : fs::path(rest.substr(start)).lexically_normal();
}

}  // namespace

std::uint64_t physical_memory_bytes() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::optional<std::uint64_t> cgroup_limit_bytes(const fs::path& root) {
  std::optional<std::uint64_t> smallest;
  for (const Mount& mount : memory_mounts(root)) {
    const fs::path point = root / fs::path(mount.point).relative_path();
    const char* name = mount.unified ? "memory.max" : "memory.limit_in_bytes";
    fs::path group = below_mount(mount, own_group(root, mount.unified));
    for (;;) {
      if (const auto limit = read_limit(point / group / name)) {
        smallest = std::min(smallest.value_or(*limit), *limit);
      }
      if (group.empty()) {
        break;
      }
      group = group.parent_path();
    }
  }
  return smallest;
}

std::uint64_t memory_limit_bytes() {
  const std::uint64_t physical = physical_memory_bytes();
  return std::min(physical, cgroup_limit_bytes().value_or(physical));
}

std::uint64_t default_memory_bytes() {
  return memory_limit_bytes() / 10 * 6;
}

}  // namespace numcheck::machine
