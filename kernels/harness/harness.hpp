// Runs one case on a backend under guards: upload, poison, run twice, check, download, digest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/buffer.hpp"
#include "kernels/contract/backend.hpp"
#include "kernels/harness/classify.hpp"
#include "kernels/harness/launcher.hpp"
#include "worker/execution.hpp"

namespace numcheck::kernels::harness {

/// Poison pattern of output buffers, padding and guards: a NaN in every format.
inline constexpr std::uint8_t kPoisonByte = 0xFF;

/// Bytes of poison before and after every buffer.
inline constexpr std::size_t kGuardBytes = 4096;

/// The faults that the harness itself plants in device memory after a launch; `ExecuteOptions::inject` names one.
/// Names that are not among them are handed to the backend (Call::inject).
[[nodiscard]] std::span<const FaultInfo> harness_faults() noexcept;

/// Runs cases one after the other; keeps host staging memory and the classes of simulated algorithms between them.
class Harness {
 public:
  /// For every algorithm of the case: classify it (probe G6, where it applies), poison outputs, padding, workspace and
  /// the guard bytes around every buffer, launch, check guards, compare the inputs with what was uploaded, download,
  /// digest, and again (options.repeats, each time with another workspace pattern), comparing bits. Then calls the sink
  /// with the outputs of the first launch in the host buffers. Padding of host buffers is not read; that of outputs
  /// comes back as the device left it.
  ///
  /// An algorithm that throws is a report with an error, as long as the device still answers. What has cost the device
  /// comes through as it is, and so do other exceptions: a lack of device memory, host ports that do not fit.
  [[nodiscard]] worker::Outcome run(Backend& backend, const plan::Case& c, std::span<const worker::HostPort> ports,
                                    const worker::ExecuteOptions& options, const worker::RunSink& sink);

  /// Nothing if the device of that memory still answers; else what it says, and what was launched last.
  [[nodiscard]] std::optional<worker::DeviceLoss> device_loss(DeviceMemory& memory) noexcept;

 private:
  core::Buffer<std::byte> staging_;
  Launcher launcher_;
  std::map<std::string, Classification, std::less<>> simulated_classes_;
};

/// Harness().run(...).
[[nodiscard]] worker::Outcome run_case(Backend& backend, const plan::Case& c, std::span<const worker::HostPort> ports,
                                       const worker::ExecuteOptions& options, const worker::RunSink& sink);

}  // namespace numcheck::kernels::harness
