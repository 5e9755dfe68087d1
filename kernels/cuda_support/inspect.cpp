#include "kernels/cuda_support/inspect.hpp"

#include <array>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "core/error.hpp"

namespace numcheck::kernels::cuda_support {

namespace {

/// For cuBLASLt since 11 and for cuDNN since 9.
std::string version_of(const SharedLibrary& library, const char* function) {
  const std::size_t version = library.symbol<std::size_t (*)()>(function)();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

/// By a function of CUDA's libraries that takes a libraryPropertyType: major, minor, patch.
std::string version_by_parts(const SharedLibrary& library, const char* function) {
  const auto property = library.symbol<int (*)(int, int*)>(function);
  std::array<int, 3> parts{};
  for (int part = 0; part < 3; ++part) {
    property(part, &parts.at(static_cast<std::size_t>(part)));
  }
  return fmt::format("{}.{}.{}", parts[0], parts[1], parts[2]);
}

}  // namespace

Inspection inspect_library(const LibraryName& name, const std::string& lib_dir) {
  Inspection inspection;
  try {
    const SharedLibrary library(name, lib_dir);
    inspection.file = library.path();
    inspection.version = name.version_function != nullptr ? version_of(library, name.version_function)
                                                          : version_by_parts(library, name.property_function);
    inspection.usable = true;
  } catch (const core::EnvironmentError& error) {
    inspection.remark = error.what();
  }
  return inspection;
}

}  // namespace numcheck::kernels::cuda_support
