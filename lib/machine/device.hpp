// Devices: what the user asks for, and what a worker found.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace numcheck::machine {

/// Identity of the device that a worker owns. sm = 10 * major + minor.
struct Device {
  std::string name;  ///< "NVIDIA H200", or "simulated sm_90"
  int sm = 0;
  bool simulated = false;
  int index = 0;
  std::string uuid;
  std::string driver;  ///< "580.65", empty on simulated devices
  std::uint64_t memory_bytes = 0;
  int multiprocessors = 0;
};

/// A parsed "auto", "cuda:1" or "sim:sm_90".
struct DeviceChoice {
  enum class Kind { automatic, cuda, sim } kind = Kind::automatic;
  int index = 0;  ///< cuda
  int sm = 90;    ///< sim

  [[nodiscard]] std::string text() const;
};

/// The architectures that `--device sim:sm_N` offers.
[[nodiscard]] std::span<const int> simulated_architectures() noexcept;

/// Throws core::UsageError that lists what would be valid.
[[nodiscard]] DeviceChoice parse_device(std::string_view text);

}  // namespace numcheck::machine
