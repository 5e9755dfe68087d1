// `grouped_gemm` on a simulated device: which group multiplies what, and the faults that confuse groups.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/contract/backend.hpp"
#include "kernels/sim/gemm.hpp"

namespace numcheck::kernels::sim {

/// What the device does for one group; without a fault, its own product.
struct GroupTask {
  SimGemm gemm;
  bool runs = true;                        ///< false: D is left as it is
  bool stale = false;                      ///< D holds ones, as if from an earlier call
  std::size_t a_of = 0, b_of = 0;          ///< groups whose operands are multiplied
  std::size_t bias_of = 0, scales_of = 0;  ///< groups whose bias is added, and whose scales operands have
  std::optional<std::int64_t> products;    ///< of each sum; nothing: k
  std::string fault;                       ///< of sim_faults() or perturbations(), in this group alone
};

using GroupTasks = std::vector<GroupTask>;

/// The faults of groups, in the order in which they are documented.
[[nodiscard]] std::span<const FaultInfo> group_faults() noexcept;

/// Why the fault of that name cannot change the case, as a sentence; empty if it can. Precondition: group_faults() has it.
[[nodiscard]] std::string group_fault_obstacle(std::string_view fault, const GroupTasks& groups);

/// Changes the tasks so that they have the fault: one of group_faults(), or of perturbations() for the first group that has
/// outputs. An empty name changes nothing. Precondition: it has no obstacle.
void plant_group_fault(const std::string& fault, GroupTasks& groups);

}  // namespace numcheck::kernels::sim
