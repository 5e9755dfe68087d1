// Random GEMM cases that the libraries of a real device accept.
#pragma once

#include <cstdint>
#include <string_view>

#include "plan/case.hpp"

namespace numcheck::detect {

/// Case `index` of random_case, changed so that the backend accepts it (its limits are in its `unsupported`
/// sentences): cublaslt, cuda, transformer_engine or sim. If there is a C of D's format, every second
/// case accumulates in place; for transformer_engine, every one.
[[nodiscard]] plan::Case library_case(std::uint64_t seed, std::uint64_t index, std::string_view backend);

}  // namespace numcheck::detect
