// The contract of what must run: skips hide regressions, so that a case which ran once with these libraries must not turn
// up unsupported or skipped without anybody's notice.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plan/device_condition.hpp"

namespace numcheck::report {

/// Versions of libraries, by name: one of them; none: it was unknown, so that any will do.
using PromisedVersions = std::map<std::string, std::vector<plan::Version>>;

/// The cases of one plan that ran with a verdict, and the libraries that they ran with.
struct PlanPromises {
  std::string plan;    ///< name
  std::string digest;  ///< of the plan then, for people: the plan may change
  std::string device;  ///< name, for people
  PromisedVersions libraries;
  std::set<std::string> cases;  ///< identifiers
};

struct Contract {
  int sm = 0;
  bool simulated = false;
  std::string derived;  ///< from what the promises follow if no run showed them; empty: reports did
  std::string digest;   ///< of the text that it was read from; empty: it was not read
  std::vector<PlanPromises> plans;
};

/// Where a contract is kept.
struct ContractSetting {
  int sm = 0;
  bool simulated = false;
  std::vector<std::pair<std::string, std::string>> libraries;  ///< as devices report them
};

/// What the cases of full or brief reports promise: those with a verdict, whatever it is. The driver and CUDA's runtime are
/// not part of it. Throws core::IoError if the reports are of different architectures, of no device, or no case of one
/// of them ran, and if they lack what is read.
[[nodiscard]] Contract contract_of(std::span<const nlohmann::json* const> reports);

/// Its JSON text: sorted, one case per line.
[[nodiscard]] std::string contract_text(const Contract& contract);

/// That of one report: a view.
[[nodiscard]] std::string render_contract_file(const nlohmann::json& report);

/// Reads it back; `name` is for messages. Throws core::IoError if the text is not a contract.
[[nodiscard]] Contract parse_contract(std::string_view text, const std::string& name);

inline constexpr std::string_view kContractSchemaName = "te-numcheck/contract";
inline constexpr std::string_view kContractSchemaVersion = "1.1.0";

/// JSON Schema (draft-07) of contracts.
[[nodiscard]] nlohmann::json contract_schema();

/// Why the contract says nothing about a run of this plan, which may be several joined by "+"; empty if it does.
[[nodiscard]] std::string plan_problem(const Contract& contract, std::string_view plan);

/// Why it does not hold in this setting; empty if it does. What a library supports is a property of its version, so that a
/// contract is of exactly the architecture and the versions that it names. A library that is not there is no problem: its
/// cases are.
[[nodiscard]] std::string setting_problem(const Contract& contract, std::string_view plan,
                                          const ContractSetting& setting);

/// The setting of a report; nothing is known about one that needed no device.
[[nodiscard]] ContractSetting setting_of(const nlohmann::json& report);

/// What became of the promises about the plan of this report:
///
///   {"digest": of the contract, "promised", "kept", "not_selected", "absent_libraries": ["cudnn 9.14.0"],
///    "broken": [{"id", "status": "unsupported" | ... | "missing", "reason"}],    in the contract's order
///    "derived": from what, if no run showed what is promised}
///
/// Absent are libraries that the contract names for the plan and the run does not have.
///
/// A promise is kept by a verdict, whatever it is. `left_out` has the identifiers of cases that a selection left out on
/// purpose. Cases of a library version that only --te-lib names ("transformer_engine@2.11.0") are not selected, either,
/// where it does not.
[[nodiscard]] nlohmann::json check_contract(const Contract& contract, const nlohmann::json& report,
                                            const std::set<std::string>& left_out);

/// The promised cases that no shard of a run says it missed, if all of them have checked this contract; none otherwise.
/// Those that did not run in any shard were left out on purpose. `checked` has what check_contract said of each, or null.
[[nodiscard]] std::set<std::string> left_out_of_shards(const Contract& contract, std::string_view plan,
                                                       std::span<const nlohmann::json> checked);

/// Whether a report says that a promise was broken.
[[nodiscard]] bool breaks_contract(const nlohmann::json& report);

}  // namespace numcheck::report
