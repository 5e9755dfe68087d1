// How much memory this process may use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace numcheck::machine {

/// Physical memory of the machine, in bytes.
[[nodiscard]] std::uint64_t physical_memory_bytes();

/// The smallest memory limit of this process's control group and its ancestors (version 2 `memory.max`, version 1
/// `memory.limit_in_bytes`); nothing if there is none. `root` replaces "/" in tests.
[[nodiscard]] std::optional<std::uint64_t> cgroup_limit_bytes(const std::filesystem::path& root = "/");

/// The smaller of the two.
[[nodiscard]] std::uint64_t memory_limit_bytes();

/// Default for --memory: 60 % of memory_limit_bytes(). The rest is for what the budget does not count: the workers'
/// CUDA contexts and libraries (0.5 to 1 GiB of host memory each), the page cache and other processes.
[[nodiscard]] std::uint64_t default_memory_bytes();

}  // namespace numcheck::machine
