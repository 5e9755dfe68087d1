// Storage formats that our own kernels read and write. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

namespace numcheck::core {
enum class Dtype : std::uint8_t;
}

namespace numcheck::kernels::cuda {

enum class Storage { fp32, bf16, fp16, fp8_e4m3, fp8_e5m2, fp4_e2m1 };

/// The storage of a format (tf32 is stored as fp32). Throws core::InternalError for a format that the kernels do not
/// store.
[[nodiscard]] Storage storage_of(core::Dtype dtype);

[[nodiscard]] constexpr bool is_fp8(Storage storage) noexcept {
  return storage == Storage::fp8_e4m3 || storage == Storage::fp8_e5m2;
}

[[nodiscard]] constexpr int storage_bytes(Storage storage) noexcept {
  return storage == Storage::fp32 ? 4 : is_fp8(storage) || storage == Storage::fp4_e2m1 ? 1 : 2;
}

}  // namespace numcheck::kernels::cuda
