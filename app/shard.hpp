// Divides a plan among machines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/hash.hpp"

namespace numcheck::app {

struct Shard {
  std::size_t index = 0;  ///< 0-based
  std::size_t count = 1;
};

/// Value of an environment variable, or nothing.
using Lookup = std::function<std::optional<std::string>(const char* name)>;

/// "2/8" (1-based), or "auto" and "auto/8": index and total from the scheduler's variables (GoogleTest, Slurm array and
/// task, Open MPI, PMI, Kubernetes indexed jobs, GitLab). A shard is never assumed just because a variable happens to
/// be set. Throws core::UsageError if the text or the variables make no sense.
[[nodiscard]] Shard parse_shard(std::string_view text, const Lookup& lookup);

/// The shard of a reference group, by hash: groups stay whole, and adding a case moves no other case.
[[nodiscard]] std::size_t shard_of(const core::Digest& group_key, std::size_t count);

/// Test runners that follow the GoogleTest protocol expect a sign that sharding is supported: the file that
/// GTEST_SHARD_STATUS_FILE names, if the shard came from their variables ("auto").
void acknowledge_shard(std::string_view shard);

}  // namespace numcheck::app
