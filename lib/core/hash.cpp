#include "core/hash.hpp"

#include <fmt/format.h>
#include <xxhash.h>

namespace numcheck::core {
namespace {

Digest digest(const void* data, std::size_t size) noexcept {
  const XXH128_hash_t hash = XXH3_128bits(data, size);
  return {hash.high64, hash.low64};
}

}  // namespace

std::string Digest::hex() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

std::string Digest::short_hex() const {
  return hex().substr(0, 8);
}

Digest digest_of(std::span<const std::byte> bytes) noexcept {
  return digest(bytes.data(), bytes.size());
}

Digest digest_of(std::string_view text) noexcept {
  return digest(text.data(), text.size());
}

}  // namespace numcheck::core
