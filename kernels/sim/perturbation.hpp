// Faults of a chosen size: --inject perturb_row=1e-3.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/contract/backend.hpp"
#include "model/perturbation.hpp"

namespace numcheck::kernels::sim {

/// Relative faults of a case's first output, planted before it is rounded, which every op has, and of its mu, rsigma and amax;
/// their names as they are listed, without a size.
[[nodiscard]] std::span<const FaultInfo> perturbations() noexcept;

/// What `fault` ("perturb_row=1e-3") does to the port that it changes, if that has so many rows; nothing if it is not one of
/// perturbations(). Throws core::UsageError if the size is missing or not a number above 0.
[[nodiscard]] std::optional<model::Perturbation> perturbation_named(std::string_view fault, std::int64_t rows);

/// True if it is one that changes the first output that holds floating-point numbers.
[[nodiscard]] bool perturbs_first_output(std::string_view fault) noexcept;

/// What it does to that port of the case, which is the first output that holds floating-point numbers, or the one that the
/// fault names; nothing if it changes another one.
[[nodiscard]] std::optional<model::Perturbation> perturbation_of(std::string_view fault, const op::Port& port,
                                                                 std::span<const PortMemory> ports);

/// The amax with it.
[[nodiscard]] float perturbed_amax(std::string_view fault, float amax);

/// Why the case has nothing to perturb, as a sentence; empty if it has.
[[nodiscard]] std::string perturbation_obstacle(std::string_view fault, std::span<const op::Port> ports);

}  // namespace numcheck::kernels::sim
