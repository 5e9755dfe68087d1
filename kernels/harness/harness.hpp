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
/// Any other name is passed on to the backend (Call::inject).
[[nodiscard]] std::span<const FaultInfo> harness_faults() noexcept;

/// Runs one case after another; keeps host staging memory and the classes of simulated algorithms between them.
class Harness {
 public:
  /// For every algorithm of the case: classifies it (probe G6, where it applies), poisons outputs, padding, workspace
  /// and the guard bytes around every buffer, launches, checks the guards, compares the inputs with what was uploaded,
  /// downloads and digests; then repeats this (options.repeats, each time with another workspace pattern) and compares
  /// bits. Then calls the sink with the outputs of the first launch in the host buffers. Padding of host buffers is not
  /// read; that of outputs comes back as the device left it.
  ///
  /// An algorithm that throws yields a report with an error, as long as the device still works. Exceptions that come
  /// with a lost device propagate, and so do others: too little device memory, host ports that do not fit.
  [[nodiscard]] worker::Outcome run(Backend& backend, const plan::Case& c, std::span<const worker::HostPort> ports,
                                    const worker::ExecuteOptions& options, const worker::RunSink& sink);

  /// Nothing if the device still works; otherwise its error and the last launch.
  [[nodiscard]] std::optional<worker::DeviceLoss> device_loss(DeviceMemory& memory) noexcept;
  /// To be called after a backend was asked something outside of run(): what it may have started is waited for.
  void note_call() noexcept { launcher_.note_call(); }

 private:
  core::Buffer<std::byte> staging_;
  Launcher launcher_;
  std::map<std::string, Classification, std::less<>> simulated_classes_;
};

/// Harness().run(...).
[[nodiscard]] worker::Outcome run_case(Backend& backend, const plan::Case& c, std::span<const worker::HostPort> ports,
                                       const worker::ExecuteOptions& options, const worker::RunSink& sink);

}  // namespace numcheck::kernels::harness
