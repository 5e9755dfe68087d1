// Which shared objects a shared object depends on.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace numcheck::kernels::transformer_engine {

/// Sonames of the DT_NEEDED entries of a 64-bit ELF file, in file order; empty for any other file.
/// Source: System V ABI, chapter 5, dynamic section.
[[nodiscard]] std::vector<std::string> needed_libraries(const std::filesystem::path& file);

}  // namespace numcheck::kernels::transformer_engine
