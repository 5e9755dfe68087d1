// 128-bit content digests (XXH3): equality of two digests is how the tool says "the same bits".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace numcheck::core {

struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  [[nodiscard]] std::string hex() const;        ///< 32 lower-case digits
  [[nodiscard]] std::string short_hex() const;  ///< the first 8
  friend bool operator==(const Digest&, const Digest&) = default;
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

[[nodiscard]] Digest digest_of(std::span<const std::byte> bytes) noexcept;
[[nodiscard]] Digest digest_of(std::string_view text) noexcept;

}  // namespace numcheck::core
