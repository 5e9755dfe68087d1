// Arithmetic modulo the Mersenne prime p = 2^61 - 1.
#pragma once

#include <bit>
#include <cstdint>

namespace numcheck::reference::mersenne61 {

inline constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;

/// x + y mod p, for x, y < p.
[[nodiscard]] inline std::uint64_t add(std::uint64_t x, std::uint64_t y) noexcept {
  const std::uint64_t sum = x + y;
  return sum >= kPrime ? sum - kPrime : sum;
}

/// x y mod p, for x, y < p: the high 61 bits of the product have the same weight as the low ones.
[[nodiscard]] inline std::uint64_t multiply(std::uint64_t x, std::uint64_t y) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(x) * y;
  const auto low = static_cast<std::uint64_t>(product) & kPrime;
  const auto high = static_cast<std::uint64_t>(product >> 61);
  return add(low >= kPrime ? low - kPrime : low, high);
}

/// Residue of a finite double: significand times 2^e, and multiplying by 2^e rotates the 61 bits by e mod 61.
[[nodiscard]] inline std::uint64_t residue(double x) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  const auto biased = static_cast<unsigned>(bits >> 52) & 0x7ffU;
  const std::uint64_t significand = biased == 0 ? fraction : fraction | (std::uint64_t{1} << 52);
  // x = significand 2^(biased - 1075), subnormals have the exponent of biased = 1; 61 * 18 = 1098 keeps it positive.
  const unsigned rotate = ((biased == 0 ? 1U : biased) + 1098U - 1075U) % 61U;
  const std::uint64_t size =
      rotate == 0 ? significand : ((significand << rotate) & kPrime) | (significand >> (61U - rotate));
  return (bits >> 63) == 0 || size == 0 ? size : kPrime - size;
}

}  // namespace numcheck::reference::mersenne61
