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
    FaultInfo{"perturb_mu", "mu is 1 + SIZE times what it should be, and nothing else"},
    FaultInfo{"perturb_rsigma", "rsigma is 1 + SIZE times what it should be, and nothing else"},
    FaultInfo{"perturb_amax", "amax is 1 + SIZE times what it should be, and nothing else"},
};

/// Which values of which output.
struct Place {
  PerturbedPart part;
  std::string_view output;  ///< mu, rsigma or amax; empty: the first one
};
constexpr std::array kPlaces = {Place{PerturbedPart::all, ""},       Place{PerturbedPart::noise, ""},
                                Place{PerturbedPart::row, ""},       Place{PerturbedPart::tile, ""},
                                Place{PerturbedPart::element, ""},   Place{PerturbedPart::all, "mu"},
                                Place{PerturbedPart::all, "rsigma"}, Place{PerturbedPart::all, "amax"}};
static_assert(kPlaces.size() == kPerturbations.size());

/// Null if the fault is not one of them.
const Place* place_of(std::string_view fault) noexcept {
  const auto* found = std::ranges::find(kPerturbations, fault.substr(0, fault.find('=')), &FaultInfo::name);
  return found == kPerturbations.end() ? nullptr
                                       : &kPlaces.at(static_cast<std::size_t>(found - kPerturbations.begin()));
}

bool holds_perturbed_numbers(const op::Port& port) noexcept {
  return port.role == op::Role::output && port.elements() != 0 && !core::is_integer(port.dtype) &&
         port.dtype != core::Dtype::e8m0;
}

bool is_at(const Place& place, const op::Port& port) noexcept {
  return place.output.empty()     ? holds_perturbed_numbers(port)
         : place.output == "amax" ? port.role == op::Role::amax
                                  : port.name == place.output && port.role == op::Role::output && port.elements() != 0;
}

double size_of(std::string_view fault) {
  const std::string_view name = fault.substr(0, fault.find('='));
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
  const Place* place = place_of(fault);
  return place == nullptr ? std::optional<model::Perturbation>()
                          : model::Perturbation{place->part, size_of(fault), rows};
}

bool perturbs_first_output(std::string_view fault) noexcept {
  const Place* place = place_of(fault);
  return place != nullptr && place->output.empty();
}

std::optional<model::Perturbation> perturbation_of(std::string_view fault, const op::Port& port,
                                                   std::span<const PortMemory> ports) {
  const Place* place = place_of(fault);
  if (place == nullptr) {
    return std::nullopt;
  }
  const auto first = std::ranges::find_if(ports, [&](const PortMemory& memory) { return is_at(*place, *memory.port); });
  return first != ports.end() && first->port == &port ? perturbation_named(fault, port.batch * port.rows)
                                                      : std::nullopt;
}

float perturbed_amax(std::string_view fault, float amax) {
  const Place* place = place_of(fault);
  return place == nullptr || place->output != "amax"
             ? amax
             : static_cast<float>(static_cast<double>(amax) * (1 + size_of(fault)));
}

std::string perturbation_obstacle(std::string_view fault, std::span<const op::Port> ports) {
  const Place* place = place_of(fault);
  if (place == nullptr || std::ranges::any_of(ports, [&](const op::Port& port) { return is_at(*place, port); })) {
    return {};
  }
  return place->output.empty()
             ? fmt::format("the fault {} does not apply: the case has no floating-point outputs", fault)
             : fmt::format("the fault {} does not apply: the case has no output {}", fault, place->output);
}

}  // namespace numcheck::kernels::sim
