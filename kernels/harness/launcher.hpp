// The only place that launches algorithms, so that a fault of the device can be reported with the launch before it.
#pragma once

#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/contract/backend.hpp"
#include "worker/execution.hpp"

namespace numcheck::kernels::harness {

/// For a scope in which reads wait for synchronize() (DeviceMemory::download_at_sync): if it is left by an exception, the
/// device is waited for, because the memory that is read into goes with the scope.
class ReadScope {
 public:
  explicit ReadScope(DeviceMemory& memory) noexcept : memory_(memory), exceptions_(std::uncaught_exceptions()) {}
  ~ReadScope();
  ReadScope(const ReadScope&) = delete;
  ReadScope& operator=(const ReadScope&) = delete;

 private:
  DeviceMemory& memory_;
  int exceptions_;
};

/// Remembers the last launch across cases, so it must live as long as the process uses the device.
class Launcher {
 public:
  /// Starts an algorithm; throws what its launch throws. `purpose` distinguishes this launch in messages: "run 2". The
  /// result may be asked after finish().
  DeviceSeconds start(const Algorithm& algorithm, std::string_view purpose, std::span<const PortMemory> ports,
                      std::byte* workspace);
  /// Waits for the whole device; throws what the device throws.
  void finish(DeviceMemory& memory);

  /// Looks for a lost device. Waits for it only if something may still run: twice, since an error that a library left
  /// behind is reported once and then cleared, which is not a loss.
  [[nodiscard]] std::optional<worker::DeviceLoss> loss(DeviceMemory& memory) noexcept;
  /// To be called when a library has been asked something other than to launch.
  void note_call() noexcept { settled_ = false; }

 private:
  [[nodiscard]] std::string last_launch_text() const;

  std::string first_;          ///< of the launches since the last wait, in words
  std::string last_;           ///< the last launch; empty: none yet
  int launches_ = 0;           ///< since the last wait
  bool synchronized_ = false;  ///< without an error, since the last launch
  bool settled_ = false;       ///< and nothing else has been called since that could have started work
};

}  // namespace numcheck::kernels::harness
