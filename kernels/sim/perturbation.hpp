// Faults of a chosen size: --inject perturb_row=1e-3.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/contract/backend.hpp"
#include "model/perturbation.hpp"

namespace numcheck::kernels::sim {

/// Relative faults of a case's first output, planted before it is rounded. Every op has them; their names as they are listed,
/// without a size.
[[nodiscard]] std::span<const FaultInfo> perturbations() noexcept;

/// What `fault` ("perturb_row=1e-3") does to an output of so many rows; nothing if it is not one of perturbations(). Throws
/// core::UsageError if the size is missing or not a number above 0.
[[nodiscard]] std::optional<model::Perturbation> perturbation_named(std::string_view fault, std::int64_t rows);

/// True if it changes that port of the case: the first output that holds floating-point numbers.
[[nodiscard]] bool is_perturbed(const op::Port& port, std::span<const PortMemory> ports) noexcept;

/// Why the case has nothing to perturb, as a sentence; empty if it has.
[[nodiscard]] std::string perturbation_obstacle(std::string_view fault, std::span<const op::Port> ports);

}  // namespace numcheck::kernels::sim
