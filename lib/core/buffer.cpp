#include "core/buffer.hpp"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "core/kept_blocks.hpp"

namespace numcheck::core {
namespace {

constexpr std::size_t kAlignment = 64;                   // a cache line, and an AVX-512 register
constexpr std::size_t kHugePage = std::size_t{2} << 20;  // x86-64 and 4 KiB-granule AArch64
constexpr std::size_t kHugeFrom = 2 * kHugePage;

std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// Released blocks, the oldest first.
class Kept {
 public:
  /// One of at least `size` bytes, and of no more than half as much again; null if there is none.
  void* take(std::size_t size) noexcept {
    const std::lock_guard lock(mutex_);
    auto best = blocks_.end();
    for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
      if (block->size >= size && block->size <= size + size / 2 &&
          (best == blocks_.end() || block->size < best->size)) {
        best = block;
      }
    }
    if (best == blocks_.end()) {
      return nullptr;
    }
    void* const data = best->data;
    bytes_ -= best->size;
    blocks_.erase(best);
    return data;
  }

  /// False if it is not kept.
  bool put(void* data, std::size_t size) noexcept {
    const std::lock_guard lock(mutex_);
    if (size > limit_) {
      return false;
    }
    shrink(limit_ - size);
    try {
      blocks_.push_back({data, size});
    } catch (const std::bad_alloc&) {
      return false;
    }
    bytes_ += size;
    return true;
  }

  void limit(std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
    shrink(bytes);
  }

  /// Gives all of them back. False if there is none.
  bool give_back() noexcept {
    const std::lock_guard lock(mutex_);
    const bool any = !blocks_.empty();
    shrink(0);
    return any;
  }

  [[nodiscard]] std::size_t bytes() noexcept {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  struct Block {
    void* data;
    std::size_t size;
  };

  void shrink(std::size_t bytes) noexcept {
    auto first = blocks_.begin();
    for (; first != blocks_.end() && bytes_ > bytes; ++first) {
      std::free(first->data);
      bytes_ -= first->size;
    }
    blocks_.erase(blocks_.begin(), first);
  }

  std::mutex mutex_;
  std::vector<Block> blocks_;
  std::size_t bytes_ = 0, limit_ = 0;
};

/// Never destroyed: buffers that are static themselves may be released after it would be.
Kept& kept() {
  static Kept* const blocks = new Kept;
  return *blocks;
}

}  // namespace

void* allocate_block(std::size_t bytes) {
  if (bytes == 0) {
    return nullptr;
  }
  const std::size_t alignment = bytes >= kHugeFrom ? kHugePage : kAlignment;
  const std::size_t size = rounded_up(bytes, alignment);
  if (alignment == kHugePage && size >= bytes) {
    if (void* const block = kept().take(size); block != nullptr) {
      return block;
    }
  }
  void* block = size < bytes ? nullptr : std::aligned_alloc(alignment, size);
  if (block == nullptr && size >= bytes && kept().give_back()) {
    block = std::aligned_alloc(alignment, size);
  }
  if (block == nullptr) {
    throw std::bad_alloc();
  }
  if (alignment == kHugePage) {
    (void)madvise(block, size, MADV_HUGEPAGE);  // best effort: without huge pages it is only slower
  }
  return block;
}

void release_block(void* block) noexcept {
  if (block == nullptr) {
    return;
  }
  const std::size_t size = malloc_usable_size(block) / kHugePage * kHugePage;
  if (size < kHugeFrom || !kept().put(block, size)) {
    std::free(block);
  }
}

void keep_blocks(std::size_t bytes) noexcept {
  kept().limit(bytes);
}

std::size_t kept_bytes() noexcept {
  return kept().bytes();
}

}  // namespace numcheck::core
