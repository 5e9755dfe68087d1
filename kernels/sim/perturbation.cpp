#include "kernels/sim/perturbation.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "core/error.hpp"

namespace numcheck::kernels::sim {
namespace {

using model::PerturbedPart;

constexpr std::array kPerturbations = {
    FaultInfo{"perturb_all", "the first output is 1 + SIZE times what it should be, before rounding"},
    FaultInfo{"perturb_noise", "its values have random relative errors of SIZE (rms) before rounding"},
    FaultInfo{"perturb_row", "its middle row is 1 + SIZE times what it should be, before rounding"},
    FaultInfo{"perturb_tile", "its middle 64 x 64 tile is 1 + SIZE times what it should be, before rounding"},
    FaultInfo{"perturb_element", "the largest value of its middle row is 1 + SIZE times what it should be"},
};
constexpr std::array kParts = {PerturbedPart::all, PerturbedPart::noise, PerturbedPart::row, PerturbedPart::tile,
                               PerturbedPart::element};
static_assert(kParts.size() == kPerturbations.size());

bool holds_perturbed_numbers(const op::Port& port) noexcept {
  return port.role == op::Role::output && port.elements() != 0 && !core::is_integer(port.dtype) &&
         port.dtype != core::Dtype::e8m0;
}

double size_of(std::string_view fault, std::string_view name) {
  double size = 0;
  const std::string_view text = fault.substr(std::min(name.size() + 1, fault.size()));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size() || !(size > 0) || !std::isfinite(size)) {
    throw core::UsageError(fmt::format("the fault {} needs a relative size above 0, such as {}=1e-3", name, name));
  }
  return size;
}

}  // namespace

std::span<const FaultInfo> perturbations() noexcept {
  return kPerturbations;
}

std::optional<model::Perturbation> perturbation_named(std::string_view fault, std::int64_t rows) {
  const std::string_view name = fault.substr(0, fault.find('='));
  const auto* found = std::ranges::find(kPerturbations, name, &FaultInfo::name);
  if (found == kPerturbations.end()) {
    return std::nullopt;
  }
  return model::Perturbation{kParts.at(static_cast<std::size_t>(found - kPerturbations.begin())), size_of(fault, name),
                             rows};
}

bool is_perturbed(const op::Port& port, std::span<const PortMemory> ports) noexcept {
  const auto first =
      std::ranges::find_if(ports, [](const PortMemory& memory) { return holds_perturbed_numbers(*memory.port); });
  return first != ports.end() && first->port == &port;
}

std::string perturbation_obstacle(std::string_view fault, std::span<const op::Port> ports) {
  const bool any = std::ranges::any_of(ports, &holds_perturbed_numbers);
  return any ? "" : fmt::format("the fault {} does not apply: the case has no floating-point outputs", fault);
}

}  // namespace numcheck::kernels::sim
