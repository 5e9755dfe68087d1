// The random bits of own kernels.
#pragma once

#include <cstdint>

namespace numcheck::kernels::cuda {

/// Philox4x32-10 of Salmon et al., SC 2011; multipliers and Weyl constants are those of the paper.
__device__ inline uint4 philox(std::uint64_t counter, std::uint64_t seed) {
  uint4 c = make_uint4(static_cast<unsigned>(counter), static_cast<unsigned>(counter >> 32), 0u, 0u);
  unsigned k0 = static_cast<unsigned>(seed), k1 = static_cast<unsigned>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const unsigned high0 = __umulhi(0xD2511F53u, c.x), low0 = 0xD2511F53u * c.x;
    const unsigned high1 = __umulhi(0xCD9E8D57u, c.z), low1 = 0xCD9E8D57u * c.z;
    c = make_uint4(high1 ^ c.y ^ k0, low1, high0 ^ c.w ^ k1, low0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

}  // namespace numcheck::kernels::cuda
