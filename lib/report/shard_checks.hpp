// Whether reports are the shards of one run.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/merge.hpp"

namespace numcheck::report {

/// A sentence for each reason why the reports, one at least, are not all the shards of one run; see merge_reports. Throws
/// nlohmann::json::exception if a report lacks what is checked.
[[nodiscard]] std::vector<std::string> shard_problems(std::span<const NamedReport> reports);

/// Variables that choose a device: they may differ between shards, since devices are compared themselves.
[[nodiscard]] std::span<const std::string_view> device_variables() noexcept;

}  // namespace numcheck::report
