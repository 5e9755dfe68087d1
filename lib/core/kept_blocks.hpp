// Large blocks of released buffers, kept for the next ones.
#pragma once

#include <cstddef>

namespace numcheck::core {

/// From now on released blocks of Buffers of 4 MiB or more are kept for later ones of about their size, up to so many bytes in all;
/// those beyond are given back, the oldest first. 0, as at first: none is kept. The kernel clears the pages that it gives out,
/// which takes longer than it takes to verify what is written there.
void keep_blocks(std::size_t bytes) noexcept;

/// How many bytes are kept at present.
[[nodiscard]] std::size_t kept_bytes() noexcept;

/// Keeps blocks in its lifetime.
class KeptBlocks {
 public:
  explicit KeptBlocks(std::size_t bytes) noexcept { keep_blocks(bytes); }
  ~KeptBlocks() { keep_blocks(0); }
  KeptBlocks(const KeptBlocks&) = delete;
  KeptBlocks& operator=(const KeptBlocks&) = delete;
};

}  // namespace numcheck::core
