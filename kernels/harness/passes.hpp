// Cases that run several ops one after another (op::Op::passes), as one algorithm of any backend that computes them all.
#pragma once

#include <string>
#include <vector>

#include "kernels/contract/backend.hpp"

namespace numcheck::kernels::harness {

/// Whether the backend takes the case, which it does if it takes every pass of it. A planted fault is planted in every pass
/// that knows it.
[[nodiscard]] Support supports(Backend& backend, const Call& call);

/// The algorithms of the last pass, each after the first algorithm of the passes before it: one launch of each pass on the
/// same memory, in order. They declare together what the passes declare. Throws NotSupported if a pass does.
[[nodiscard]] std::vector<Algorithm> algorithms_of(Backend& backend, const Call& call);

/// Kernel configurations of all passes.
[[nodiscard]] std::vector<std::string> configurations_of(Backend& backend, const Call& call);

}  // namespace numcheck::kernels::harness
