// A binding of the backend `sim`: an op on a device that is modelled on the host.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/contract/backend.hpp"
#include "kernels/contract/binding.hpp"

namespace numcheck::kernels::sim {

/// The simulated device.
struct SimContext {
  int sm = 90;
  std::string tf32_override;  ///< NVIDIA_TF32_OVERRIDE when the device was opened; empty: unset
  std::string evidence;       ///< what the modelled matrix product is based on
};

struct SimBinding : Binding {
  /// Why the device does not compute the case, as a sentence; empty if it does. Ignores the call's fault.
  std::string (*obstacle)(const Call&, const SimContext&) = nullptr;
  /// As many as the case asks for and the device has; with the call's fault, if it names one.
  std::vector<Algorithm> (*algorithms)(const Call&, const SimContext&) = nullptr;
  /// The faults that can be planted in this op, in the order in which they are documented.
  std::span<const FaultInfo> (*faults)() = nullptr;
  /// Why the call's fault cannot change this case, as a sentence; empty if it can. Precondition: faults() has it.
  std::string (*fault_obstacle)(const Call&, const SimContext&) = nullptr;
};

}  // namespace numcheck::kernels::sim
