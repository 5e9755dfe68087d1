// Random GEMM cases that the libraries of a real device take.
#pragma once

#include <cstdint>
#include <string_view>

#include "plan/case.hpp"

namespace numcheck::detect {

/// Case `index` of random_case, brought within what the backend multiplies (its reasons are in its `unsupported`
/// sentences): cublaslt, cuda, transformer_engine or sim. Where there is a C of D's format, every second
/// case adds in place; of transformer_engine, every one.
[[nodiscard]] plan::Case library_case(std::uint64_t seed, std::uint64_t index, std::string_view backend);

}  // namespace numcheck::detect
