// What we call of xxHash, for hosts that have its library (0.8.0 or newer) but not its header.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct XXH128_hash_t {
  std::uint64_t low64;
  std::uint64_t high64;
};

/// XXH3, 128 bits, seed 0.
XXH128_hash_t XXH3_128bits(const void* data, std::size_t size) noexcept;

}  // extern "C"
