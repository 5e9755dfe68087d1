// Known issues of certain devices: architectures and library versions. Plans expand without a device, so these
// conditions travel with the case and are evaluated once there is one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace numcheck::plan {

/// 13.1.0 as {13, 1, 0}. A shorter one stands for all versions that begin with it: 13.1 for 13.1.0, 13.1.1, ...
using Version = std::vector<int>;

/// Both ends are inclusive; an empty end is open.
struct VersionRange {
  Version from;
  Version to;
  bool operator==(const VersionRange&) const = default;
};

struct LibraryCondition {
  std::string name;  ///< "cublaslt", ..., or "driver"
  std::vector<VersionRange> versions;
  bool operator==(const LibraryCondition&) const = default;
};

/// sm_80 to sm_90, both included.
struct ArchitectureRange {
  int from = 0;
  int to = 0;
  bool operator==(const ArchitectureRange&) const = default;
};

/// All conditions must hold; without conditions it holds on every device.
struct DeviceCondition {
  std::vector<ArchitectureRange> architectures;  ///< one of them; empty: any
  std::vector<LibraryCondition> libraries;       ///< each in one of its ranges
  bool operator==(const DeviceCondition&) const = default;
};

/// What a worker reports about its device.
struct DeviceFacts {
  int sm = 0;
  std::string_view driver;
  std::span<const std::pair<std::string, std::string>> libraries;
};

/// A library that the device lacks, or whose version is unknown, is in no range.
[[nodiscard]] bool holds(const DeviceCondition& condition, const DeviceFacts& device);

/// The version at the start of a text: {13, 1, 0} for "13.1.0 (libcublasLt.so.13)"; empty if there is none.
[[nodiscard]] Version leading_version(std::string_view text);

/// True if no version is in the range.
[[nodiscard]] bool is_empty(const VersionRange& range);

}  // namespace numcheck::plan
