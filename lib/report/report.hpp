// The complete record of a run: report.json. Every view is a function of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "machine/device.hpp"
#include "prepare/stage_times.hpp"

namespace numcheck::report {

/// Version of the format: major breaks readers, minor adds fields, patch corrects. Readers ignore unknown fields.
inline constexpr std::string_view kReportSchemaName = "te-numcheck/report";
inline constexpr std::string_view kReportSchemaVersion = "1.4.0";

struct ToolFacts {
  std::string version;
  std::string revision;
  bool dirty = false;
  std::vector<std::string> argv;  ///< without the program's name
};

/// Where the cases of one of several shards belong; merge_reports puts them there.
struct ShardFacts {
  std::size_t index = 0;
  std::size_t count = 1;
  // The rest is recorded if there are several shards:
  std::size_t of = 0;                   ///< cases of all shards together
  std::vector<std::size_t> places{};    ///< of this shard's cases among those, in the same order
  std::string selection{};              ///< selection_digest() of those
  std::vector<std::string> verified{};  ///< digests of the kernel configurations that this shard has verified
};

struct PlanFacts {
  std::string name;
  std::string digest;
  std::uint64_t seed = 0;
  ShardFacts shard{};
  std::size_t selected = 0;  ///< cases left by filters and shard, of `expanded`
  std::size_t expanded = 0;
};

/// Options that affect numbers or verdicts.
struct SettingFacts {
  int repeat = 0;                           ///< runs of each algorithm
  std::string inject{};                     ///< the planted fault; empty: none
  std::vector<std::string> inject_cases{};  ///< where, as named on the command line; empty: everywhere
  double reference_flops = 0;  ///< floating-point operations of a product from which on its reference is a sample
};

struct HostFacts {
  int cpus = 0;
  std::string isa;
  std::string blas;
  std::string name;  ///< only if the user asks for it; otherwise empty
};

/// Wall-clock time, and stage times summed over all cases; stages overlap.
struct RunTimes {
  double wall_s = 0;
  prepare::StageTimes stages;
};

/// Kernel configurations that shapes of "select": "new_configurations" were surveyed for.
struct ConfigurationFacts {
  std::size_t asked = 0;     ///< shapes
  std::size_t kept = 0;      ///< cases that run
  std::size_t offered = 0;   ///< distinct configurations
  std::size_t verified = 0;  ///< of those, run and judged
};

/// A run that had only so much time.
struct BudgetFacts {
  double limit_s = 0;
  std::size_t not_started = 0;  ///< cases that it left no time for
};

/// Everything in a report except its cases.
struct RunFacts {
  ToolFacts tool;
  PlanFacts plan;
  SettingFacts settings;
  std::optional<machine::Device> device;  ///< nothing if no worker was needed
  std::vector<std::pair<std::string, std::string>> libraries;
  HostFacts host;
  /// Every variable that can affect numbers, as set for the run; nullopt means unset.
  std::vector<std::pair<std::string, std::optional<std::string>>> environment;
  RunTimes times;
  std::string started;  ///< ISO 8601, UTC
  bool interrupted = false;
  std::optional<ConfigurationFacts> configurations;
  std::optional<BudgetFacts> budget;
  std::vector<std::string> notes;  ///< events not tied to a case, such as a worker replaced between two cases
};

/// The report: facts, summary by status, the effect of NVIDIA_TF32_OVERRIDE, the changes between library versions,
/// the precision classes and the causes of failures if the cases show any, and the cases' records in plan order.
/// Absolute paths are reduced to file names.
[[nodiscard]] nlohmann::json make_report(const RunFacts& facts, std::vector<nlohmann::json> cases);

/// Completes a report that has everything except what is computed from its cases: adds the cases, their summary, and the
/// tables. A brief report gets no tables.
void add_cases(nlohmann::json& report, std::vector<nlohmann::json> records);

/// One digest of the digests of cases, in their order.
[[nodiscard]] std::string selection_digest(const std::vector<std::string>& digests);

/// A case's record as a report has it: what devices and libraries said is without absolute paths.
[[nodiscard]] nlohmann::json without_folders(nlohmann::json record);

/// JSON Schema (draft-07) of reports.
[[nodiscard]] nlohmann::json report_schema();

/// Shortest prefix (at least 8 digits) of each digest that is unique among them, in the same order.
[[nodiscard]] std::vector<std::string> short_digests(const std::vector<std::string>& digests);

}  // namespace numcheck::report
