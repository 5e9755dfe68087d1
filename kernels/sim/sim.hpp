// The simulated device: ops on the modelled arithmetic of an architecture, in host memory.
#pragma once

#include <memory>
#include <span>

#include "kernels/contract/backend.hpp"
#include "kernels/contract/binding.hpp"

namespace numcheck::kernels::sim {

/// A simulated device of that architecture (80, 86, 89, 90, 100, 120, or one that is modelled as an earlier one of
/// them). It honours NVIDIA_TF32_OVERRIDE as the libraries do: the variable is read here, once. Computes the ops that
/// `bindings` list for `sim`; only `gemm` if there are none. Throws core::EnvironmentError for architectures before
/// sm_80.
[[nodiscard]] std::unique_ptr<Backend> make_backend(int sm, Bindings bindings = {});

/// The arithmetic faults of `gemm` (Call::inject), in the order in which they are documented. A fault that cannot
/// change a case makes it unsupported, with a sentence that says why; memory faults are planted by the harness.
[[nodiscard]] std::span<const FaultInfo> sim_faults() noexcept;

/// The faults of all ops that the bindings list for `sim`, each name once.
[[nodiscard]] std::vector<FaultInfo> faults_of(Bindings bindings);

}  // namespace numcheck::kernels::sim
