#include "shard.hpp"

#include <fcntl.h>

#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "arguments.hpp"
#include "core/error.hpp"
#include "core/file_descriptor.hpp"

namespace numcheck::app {
namespace {

constexpr std::uint64_t kMaxShards = 1'000'000;

/// One scheduler's convention. `total` is null if the scheduler does not set it.
struct Scheduler {
  const char* name;
  const char* index;
  const char* total;
  std::uint64_t base;
};

constexpr std::array kSchedulers = {
    Scheduler{"GoogleTest", "GTEST_SHARD_INDEX", "GTEST_TOTAL_SHARDS", 0},
    Scheduler{"Slurm task", "SLURM_PROCID", "SLURM_NTASKS", 0},
    Scheduler{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", 0},
    Scheduler{"PMI", "PMI_RANK", "PMI_SIZE", 0},
    Scheduler{"Kubernetes indexed job", "JOB_COMPLETION_INDEX", nullptr, 0},
    Scheduler{"GitLab parallel", "CI_NODE_INDEX", "CI_NODE_TOTAL", 1},
};

Shard checked(std::uint64_t index, std::uint64_t count, std::string_view where) {
  if (count == 0 || index >= count) {
    throw core::UsageError(
        fmt::format("--shard: {} names shard {} of {}, which does not exist", where, index + 1, count));
  }
  return {index, count};
}

/// Slurm arrays have their own first index and step.
std::optional<Shard> slurm_array(const Lookup& lookup) {
  const auto id = lookup("SLURM_ARRAY_TASK_ID");
  const auto count = lookup("SLURM_ARRAY_TASK_COUNT");
  if (!id.has_value() || !count.has_value()) {
    return std::nullopt;
  }
  const auto number = [&lookup](const char* name, const std::string& fallback) {
    return parse_count(lookup(name).value_or(fallback), name, 0, UINT32_MAX);
  };
  const std::uint64_t first = number("SLURM_ARRAY_TASK_MIN", "0");
  const std::uint64_t step = number("SLURM_ARRAY_TASK_STEP", "1");
  const std::uint64_t own = number("SLURM_ARRAY_TASK_ID", "0");
  if (own < first || step == 0) {
    throw core::UsageError("--shard auto: the SLURM_ARRAY_TASK_* variables contradict each other");
  }
  return checked((own - first) / step, number("SLURM_ARRAY_TASK_COUNT", "0"), "the Slurm array");
}

Shard automatic(std::optional<std::uint64_t> total, const Lookup& lookup) {
  if (!total.has_value()) {
    if (const auto shard = slurm_array(lookup)) {
      return *shard;
    }
  }
  for (const Scheduler& scheduler : kSchedulers) {
    const auto index = lookup(scheduler.index);
    const auto own_total = scheduler.total == nullptr ? std::nullopt : lookup(scheduler.total);
    if (!index.has_value() || (!own_total.has_value() && !total.has_value())) {
      continue;
    }
    const std::uint64_t count = total.has_value() ? *total : parse_count(*own_total, scheduler.total, 1, kMaxShards);
    const std::uint64_t own = parse_count(*index, scheduler.index, scheduler.base, kMaxShards);
    return checked(own - scheduler.base, count, scheduler.name);
  }
  throw core::UsageError(
      "--shard auto: no scheduler's variables are set (GTEST_SHARD_INDEX, SLURM_ARRAY_TASK_ID, SLURM_PROCID, "
      "OMPI_COMM_WORLD_RANK, PMI_RANK, CI_NODE_INDEX; JOB_COMPLETION_INDEX needs a total: --shard auto/N)");
}

}  // namespace

Shard parse_shard(std::string_view text, const Lookup& lookup) {
  const std::size_t slash = text.find('/');
  const std::string_view first = text.substr(0, slash);
  if (first == "auto") {
    std::optional<std::uint64_t> total;
    if (slash != std::string_view::npos) {
      total = parse_count(text.substr(slash + 1), "--shard", 1, kMaxShards);
    }
    return automatic(total, lookup);
  }
  if (slash == std::string_view::npos) {
    throw core::UsageError(fmt::format("--shard: \"{}\" is not I/N (such as 2/8), auto or auto/N", text));
  }
  const std::uint64_t count = parse_count(text.substr(slash + 1), "--shard", 1, kMaxShards);
  return checked(parse_count(first, "--shard", 1, kMaxShards) - 1, count, "the command line");
}

std::size_t shard_of(const core::Digest& group_key, std::size_t count) {
  return static_cast<std::size_t>(group_key.high % count);
}

void acknowledge_shard(std::string_view shard) {
  const char* path = std::getenv("GTEST_SHARD_STATUS_FILE");
  if (path != nullptr && shard.starts_with("auto")) {
    // O_NONBLOCK: a pipe must not block us.
    const core::FileDescriptor touched(
        ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0666));
  }
}

}  // namespace numcheck::app
