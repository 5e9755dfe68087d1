#include "kernels/harness/launcher.hpp"

#include <exception>

#include <fmt/format.h>

namespace numcheck::kernels::harness {
namespace {

/// The error of waiting for the device; empty if there is none.
std::string sync_error(DeviceMemory& memory) {
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
  synchronized_ = false;
  const double seconds = algorithm.launch(ports, workspace);
  memory.synchronize();
  synchronized_ = true;
  return seconds;
}

std::optional<worker::DeviceLoss> Launcher::loss(DeviceMemory& memory) noexcept {
  const std::string first = sync_error(memory);
  if (first.empty() || sync_error(memory).empty()) {
    synchronized_ = true;
    return std::nullopt;
  }
  return worker::DeviceLoss{first, last_launch_text()};
}

std::string Launcher::last_launch_text() const {
  if (last_.empty()) {
    return "nothing had been launched";
  }
  return synchronized_ ? fmt::format(
                             "it surfaced after the device had synchronized without an error; the last launch was {}, "
                             "but an earlier one may be the cause",
                             last_)
                       : fmt::format("it followed the launch of {}", last_);
}

}  // namespace numcheck::kernels::harness
