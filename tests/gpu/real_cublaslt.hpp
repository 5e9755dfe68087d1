// The cuBLASLt behind a wrapping library. Everything but cublasLtMatmul goes there (forwarded_cublaslt.cpp).
#pragma once

#include <cublasLt.h>

namespace numcheck::wrapping {

/// Says why this library cannot go on and ends the process.
[[noreturn]] void stop(const char* why);

/// The address of a function in the real library.
[[nodiscard]] void* real_address(const char* name);

template <class Function>
[[nodiscard]] Function real(const char* name) {
  return reinterpret_cast<Function>(real_address(name));
}

/// Appends a line to the file that NUMCHECK_FAULT_LOG names, if it is set. Workers are processes of their own and share
/// the file.
void log_line(const char* line);

}  // namespace numcheck::wrapping
