// Bits for derived inputs that look random whatever the distribution of the draws that they are made of.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace numcheck::reference {

/// 64 bits that follow from all bits of a draw and from its place, so that neighbours differ even where all draws are the same.
/// Source of the mixing steps: Stafford's variant 13 of MurmurHash3's finaliser, as in SplitMix64.
[[nodiscard]] inline std::uint64_t scrambled(double draw, std::size_t place) noexcept {
  constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio
  std::uint64_t bits = std::bit_cast<std::uint64_t>(draw) + (place + 1) * kGolden;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
  return bits ^ (bits >> 31);
}

}  // namespace numcheck::reference
