// The contracts in configs/contracts/, and the cases that they promise.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "catalog.hpp"
#include "core/file.hpp"
#include "plan/plan.hpp"
#include "report/contract.hpp"

namespace numcheck::app::test {

inline report::Contract shipped_contract(const std::string& architecture) {
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 26;
  const std::string path = std::string(TE_NUMCHECK_SOURCE_DIR) + "/configs/contracts/" + architecture + ".json";
  return report::parse_contract(core::read_regular_file(path, kMaxBytes).text, path);
}

/// Those that the shipped plan of that name has.
inline std::vector<plan::Case> promised_cases(const report::PlanPromises& promises) {
  const std::string path = std::string(TE_NUMCHECK_SOURCE_DIR) + "/configs/plans/" + promises.plan + ".json";
  plan::Plan plan = plan::load_plan(path, vocabulary(), {});
  std::erase_if(plan.cases, [&](const plan::Case& c) { return !promises.cases.contains(c.id); });
  return std::move(plan.cases);
}

}  // namespace numcheck::app::test
