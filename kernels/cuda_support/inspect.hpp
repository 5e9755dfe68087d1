// What `doctor` says about a library.
#pragma once

#include <string>

#include "kernels/cuda_support/library.hpp"

namespace numcheck::kernels::cuda_support {

struct Inspection {
  bool usable = false;
  std::string version;  ///< "13.1.0"; empty if unknown
  std::string file;     ///< that was loaded, or would have been; empty if none was found
  std::string remark;   ///< if usable: what it lacks, or nothing; otherwise: why it cannot be used
};

/// Finds the library, loads it and asks for its version. Needs no device.
[[nodiscard]] Inspection inspect_library(const LibraryName& name, const std::string& lib_dir);

}  // namespace numcheck::kernels::cuda_support
