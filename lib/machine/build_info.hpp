// What this binary is: recorded in every report and compared before a run is resumed.
#pragma once

#include <string>

namespace numcheck::machine {

struct BuildInfo {
  std::string version;       ///< "0.1.0"
  std::string revision;      ///< commit, 12 hex digits; "unknown" when built from an archive
  std::string date;          ///< of that commit: "2025-01-31"; empty when built from an archive
  bool dirty = false;        ///< tracked files differed from that commit when the binary was built
  std::string compiler;      ///< "GNU 12.2.0"
  std::string build_type;    ///< "Release"
  std::string cuda_toolkit;  ///< toolkit found at configure time; empty if none
};

[[nodiscard]] const BuildInfo& build_info();

/// "0.1.0 (a1b2c3d4e5f6, with local changes)".
[[nodiscard]] std::string version_text();

}  // namespace numcheck::machine
