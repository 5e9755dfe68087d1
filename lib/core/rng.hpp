// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace numcheck::core {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// Ten rounds; four independent uniform 32-bit words for every (counter, key). Known-answer vectors: Random123.
[[nodiscard]] PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) noexcept;

/// Identity of one random tensor: what makes its numbers, and nothing else.
struct StreamId {
  std::uint64_t seed = 0;
  std::uint32_t op = 0;    ///< stream_word("gemm")
  std::uint32_t port = 0;  ///< stream_word("a")
};

/// Stable 32-bit word of a name (part of the format: changing it changes every digest).
[[nodiscard]] std::uint32_t stream_word(std::string_view name) noexcept;

}  // namespace numcheck::core
