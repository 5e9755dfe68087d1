#include "core/buffer.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace numcheck::core {
namespace {

constexpr std::size_t kAlignment = 64;                   // a cache line, and an AVX-512 register
constexpr std::size_t kHugePage = std::size_t{2} << 20;  // x86-64 and 4 KiB-granule AArch64
constexpr std::size_t kHugeFrom = 2 * kHugePage;

std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

void* allocate_block(std::size_t bytes) {
  if (bytes == 0) {
    return nullptr;
  }
  const std::size_t alignment = bytes >= kHugeFrom ? kHugePage : kAlignment;
  const std::size_t size = rounded_up(bytes, alignment);
  void* block = size < bytes ? nullptr : std::aligned_alloc(alignment, size);
  if (block == nullptr) {
    throw std::bad_alloc();
  }
  if (alignment == kHugePage) {
    (void)madvise(block, size, MADV_HUGEPAGE);  // best effort: without huge pages it is only slower
  }
  return block;
}

void release_block(void* block) noexcept {
  std::free(block);
}

}  // namespace numcheck::core
