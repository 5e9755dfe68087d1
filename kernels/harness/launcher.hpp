// The one place where algorithms are launched, so that a fault of the device can be told with the launch that it
// followed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/contract/backend.hpp"
#include "worker/execution.hpp"

namespace numcheck::kernels::harness {

/// Lives as long as the process' device is used: what it remembers spans cases.
class Launcher {
 public:
  /// Launches and waits for the whole device, so that no two launches are under way at a time. Returns device seconds;
  /// throws what the launch or the device throws. `purpose` tells this launch from others: "run 2".
  double launch(const Algorithm& algorithm, std::string_view purpose, std::span<const PortMemory> ports,
                std::byte* workspace, DeviceMemory& memory);

  /// Asks the device twice, because an error that a library left behind is no loss: it is forgotten once it is told.
  [[nodiscard]] std::optional<worker::DeviceLoss> loss(DeviceMemory& memory) noexcept;

 private:
  [[nodiscard]] std::string followed() const;

  std::string last_;     ///< the last launch, in words; empty: none yet
  bool waited_ = false;  ///< the device has worked since
};

}  // namespace numcheck::kernels::harness
