#include "kernels/harness/launcher.hpp"

#include <exception>

#include <fmt/format.h>

namespace numcheck::kernels::harness {
namespace {

/// What the device complains of when it is waited for; empty if nothing.
std::string complaint(DeviceMemory& memory) {
  try {
    memory.synchronize();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

double Launcher::launch(const Algorithm& algorithm, std::string_view purpose, std::span<const PortMemory> ports,
                        std::byte* workspace, DeviceMemory& memory) {
  last_ = fmt::format("{} ({})", algorithm.label, purpose);
  waited_ = false;
  const double seconds = algorithm.launch(ports, workspace);
  memory.synchronize();
  waited_ = true;
  return seconds;
}

std::optional<worker::DeviceLoss> Launcher::loss(DeviceMemory& memory) noexcept {
  const std::string first = complaint(memory);
  if (first.empty() || complaint(memory).empty()) {
    waited_ = true;
    return std::nullopt;
  }
  return worker::DeviceLoss{first, followed()};
}

std::string Launcher::followed() const {
  if (last_.empty()) {
    return "nothing had been launched";
  }
  return waited_ ? fmt::format(
                       "it surfaced after the device had been waited for; the last launch was {}, and whether "
                       "that or an earlier one is to blame cannot be told",
                       last_)
                 : fmt::format("it followed the launch of {}", last_);
}

}  // namespace numcheck::kernels::harness
