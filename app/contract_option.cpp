#include "contract_option.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file.hpp"

namespace numcheck::app {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 20;

report::Contract read_contract(const std::string& path) {
  const core::FileText content = core::read_regular_file(path, kMaxBytes);
  if (!content.problem.empty()) {
    throw core::UsageError(fmt::format("--contract: cannot read {}: {}", path, content.problem));
  }
  try {
    return report::parse_contract(content.text, path);
  } catch (const core::IoError& error) {
    throw core::UsageError(fmt::format("--contract: {}", error.what()));
  }
}

}  // namespace

void add_contract_option(CLI::App& cli, std::string& path) {
  cli.add_option("--contract", path,
                 "a case that this file says must run, but has no verdict, fails the run; --write-contract makes one")
      ->type_name("PATH")
      ->group("Gates");
}

void ContractGate::open(const std::string& path, const std::string& plan) {
  if (path.empty()) {
    return;
  }
  path_ = path;
  plan_ = plan;
  contract_ = read_contract(path);
  if (const std::string problem = report::plan_problem(*contract_, plan_); !problem.empty()) {
    throw core::UsageError(fmt::format("--contract {}: {}", path_, problem));
  }
}

Selection ContractGate::select(std::vector<plan::Case> cases, const SelectionOptions& options) {
  if (contract_.has_value()) {
    std::ranges::transform(cases, std::inserter(left_out_, left_out_.end()), &plan::Case::id);
  }
  Selection chosen = app::select(std::move(cases), options);
  if (contract_.has_value()) {
    for (const plan::Case& c : chosen.cases) {
      left_out_.erase(c.id);
    }
  }
  return chosen;
}

void ContractGate::follow_shards(std::span<const ShardContract> shards) {
  if (!contract_.has_value()) {
    return;
  }
  std::vector<nlohmann::json> checked;
  for (const ShardContract& shard : shards) {
    if (!shard.checked.is_null() && shard.checked.at("digest") != contract_->digest) {
      throw core::UsageError(fmt::format("--contract {}: {} was run with another contract", path_, shard.report));
    }
    checked.push_back(shard.checked);
  }
  left_out_ = report::left_out_of_shards(*contract_, plan_, checked);
}

void ContractGate::require_setting(const report::ContractSetting& setting) const {
  if (!contract_.has_value()) {
    return;
  }
  if (const std::string problem = report::setting_problem(*contract_, plan_, setting); !problem.empty()) {
    throw core::UsageError(
        fmt::format("--contract {}: {}; write a contract for this setting with --write-contract", path_, problem));
  }
}

void ContractGate::check(nlohmann::json& report) const {
  if (contract_.has_value()) {
    report["contract"] = report::check_contract(*contract_, report, left_out_);
  }
}

}  // namespace numcheck::app
