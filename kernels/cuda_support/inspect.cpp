#include "kernels/cuda_support/inspect.hpp"

#include <cstddef>

#include <fmt/format.h>

#include "core/error.hpp"

namespace numcheck::kernels::cuda_support {

Inspection inspect_library(const LibraryName& name, const std::string& lib_dir) {
  Inspection inspection;
  try {
    const SharedLibrary library(name, lib_dir);
    inspection.file = library.path();
    // major * 10000 + minor * 100 + patch, for cuBLASLt since 11 and for cuDNN since 9.
    const std::size_t version = library.symbol<std::size_t (*)()>(name.version_function)();
    inspection.version = fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
    inspection.usable = true;
  } catch (const core::EnvironmentError& error) {
    inspection.remark = error.what();
  }
  return inspection;
}

}  // namespace numcheck::kernels::cuda_support
