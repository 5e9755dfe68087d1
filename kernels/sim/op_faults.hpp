// The faults of an op that computes in FP32: its own, then those of its stores.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/sim/binding.hpp"
#include "kernels/sim/tensor_io.hpp"

namespace numcheck::kernels::sim {

/// A fault in the op's arithmetic, with the sentence that says why it cannot change a case (empty: it can).
struct OpFault {
  FaultInfo info;
  std::string (*obstacle)(const Call&) = nullptr;  ///< null: it always can
};

/// For SimBinding::faults.
[[nodiscard]] inline std::vector<FaultInfo> with_store_faults(std::span<const OpFault> own) {
  std::vector<FaultInfo> all;
  for (const OpFault& fault : own) {
    all.push_back(fault.info);
  }
  const std::span<const FaultInfo> stores = store_faults();
  all.insert(all.end(), stores.begin(), stores.end());
  return all;
}

/// For SimBinding::fault_obstacle.
[[nodiscard]] inline std::string obstacle_of(std::span<const OpFault> own, const Call& call) {
  const auto found =
      std::find_if(own.begin(), own.end(), [&call](const OpFault& fault) { return fault.info.name == call.inject; });
  if (found == own.end()) {
    return store_fault_obstacle(call.inject, call.ports);
  }
  const std::string reason = found->obstacle == nullptr ? std::string() : found->obstacle(call);
  return reason.empty() ? reason : "the fault " + call.inject + " does not apply: " + reason;
}

}  // namespace numcheck::kernels::sim
