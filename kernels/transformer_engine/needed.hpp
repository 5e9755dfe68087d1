// Which shared objects a shared object asks for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace numcheck::kernels::transformer_engine {

/// Sonames of the DT_NEEDED entries of a 64-bit ELF file, in its order; empty for anything that is none.
/// Source: System V ABI, chapter 5, dynamic section.
[[nodiscard]] std::vector<std::string> needed_libraries(const std::filesystem::path& file);

}  // namespace numcheck::kernels::transformer_engine
