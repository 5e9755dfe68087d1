// --contract: the option of commands whose report must keep a contract.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli_forward.hpp"
#include "report/contract.hpp"
#include "selection.hpp"

namespace numcheck::app {

void add_contract_option(CLI::App& cli, std::string& path);

/// What a shard's report says of its contract; null if it had none.
struct ShardContract {
  std::string report;  ///< name
  nlohmann::json checked;
};

/// The contract, if there is one, that the run of one plan must keep. Everything that is wrong with its file is a
/// core::UsageError: a gate that cannot be checked must not look as if it had been passed.
class ContractGate {
 public:
  /// Reads it, unless the path is empty; throws if it is not a contract, or promises nothing about this plan.
  void open(const std::string& path, const std::string& plan);

  /// Selects, and remembers what that leaves out on purpose.
  [[nodiscard]] Selection select(std::vector<plan::Case> cases, const SelectionOptions& options);

  /// For a run in shards: leaves out what all of them, having kept this contract, left out. Throws if one was run with another.
  void follow_shards(std::span<const ShardContract> shards);

  /// Throws if it is about another architecture, or other versions of libraries.
  void require_setting(const report::ContractSetting& setting) const;

  /// Adds to the report what became of the promises.
  void check(nlohmann::json& report) const;

 private:
  std::string path_;
  std::string plan_;
  std::optional<report::Contract> contract_;
  std::set<std::string> left_out_;  ///< identifiers of cases
};

}  // namespace numcheck::app
