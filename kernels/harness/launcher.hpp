// The only place that launches algorithms, so that a fault of the device can be reported with the launch before it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/contract/backend.hpp"
#include "worker/execution.hpp"

namespace numcheck::kernels::harness {

/// Remembers the last launch across cases, so it must live as long as the process uses the device.
class Launcher {
 public:
  /// Launches and waits for the whole device, so that launches never overlap. Returns device seconds; throws what the
  /// launch or the device throws. `purpose` distinguishes this launch in messages: "run 2".
  double launch(const Algorithm& algorithm, std::string_view purpose, std::span<const PortMemory> ports,
                std::byte* workspace, DeviceMemory& memory);

  /// Synchronizes twice: an error that a library left behind is reported once and then cleared, which is not a loss.
  [[nodiscard]] std::optional<worker::DeviceLoss> loss(DeviceMemory& memory) noexcept;

 private:
  [[nodiscard]] std::string last_launch_text() const;

  std::string last_;           ///< the last launch, in words; empty: none yet
  bool synchronized_ = false;  ///< without an error, since the last launch
};

}  // namespace numcheck::kernels::harness
