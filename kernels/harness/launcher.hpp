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
  /// Starts an algorithm; throws what its launch throws. `purpose` distinguishes this launch in messages: "run 2".
  void start(const Algorithm& algorithm, std::string_view purpose, std::span<const PortMemory> ports,
             std::byte* workspace);
  /// Waits for the whole device, so that launches never overlap. Returns device seconds; throws what the device throws.
  double finish(DeviceMemory& memory);

  /// Looks for a lost device. Waits for it only if something may still run: twice, since an error that a library left
  /// behind is reported once and then cleared, which is not a loss.
  [[nodiscard]] std::optional<worker::DeviceLoss> loss(DeviceMemory& memory) noexcept;
  /// To be called when a library has been asked something other than to launch.
  void note_call() noexcept { settled_ = false; }

 private:
  [[nodiscard]] std::string last_launch_text() const;

  std::string last_;           ///< the last launch, in words; empty: none yet
  DeviceSeconds seconds_;      ///< of the launch that was started
  bool synchronized_ = false;  ///< without an error, since the last launch
  bool settled_ = false;       ///< and nothing else has been called since that could have started work
};

}  // namespace numcheck::kernels::harness
