// Tensors in shared memory: a pool of blocks in memfd arenas.
//
// Touching a page of a new arena costs 0.46 s/GiB, touching it again 0.10 (measured), so blocks are reused while warm:
// allocation takes the smallest idle block that is large enough and at most twice the requested size. Arenas are large
// and sparse, since untouched pages are free: a run needs one or two descriptors, and a worker maps each once. Pages of
// idle blocks beyond a limit are returned to the system (fallocate(2), FALLOC_FL_PUNCH_HOLE); workers need not know.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/file_descriptor.hpp"
#include "worker/workers.hpp"

namespace numcheck::worker {

/// A mapping of a whole shared file.
class Mapping {
 public:
  /// Throws core::EnvironmentError if it cannot be mapped.
  Mapping(int fd, std::size_t bytes, bool writable);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

struct Arena {
  std::uint64_t id = 0;  ///< from 1
  BlockUse use = BlockUse::output;
  core::FileDescriptor fd;
  core::FileDescriptor worker_fd;  ///< passed to workers; read-only for inputs
  std::unique_ptr<Mapping> mapping;
  std::size_t used = 0;  ///< bytes already carved into blocks
};

/// Where a block lies; an empty block has no arena.
struct BlockPlace {
  const Arena* arena = nullptr;
  std::size_t offset = 0;
  std::size_t capacity = 0;
};

/// Thread-safe. Blocks keep the pool alive.
class ArenaPool : public std::enable_shared_from_this<ArenaPool> {
 public:
  /// Idle blocks keep at most `max_idle_bytes` of touched pages.
  explicit ArenaPool(std::uint64_t max_idle_bytes);

  /// A block of `bytes`, page-aligned; contents are arbitrary.
  [[nodiscard]] std::shared_ptr<SharedBlock> allocate(std::size_t bytes, BlockUse use = BlockUse::output);
  /// From now on, pages of idle blocks are returned at once, by whoever gives up a block: at the end of a run, a gigabyte of
  /// them takes 0.2 s (measured), in which others still compare.
  void keep_no_more() noexcept;
  /// Bytes of idle blocks whose pages have not been returned.
  [[nodiscard]] std::uint64_t idle_bytes() const;

 private:
  friend class ArenaBlock;
  void release(const BlockPlace& place) noexcept;
  /// Returns the pages of blocks that nobody has, and keeps these as cold ones.
  void chill(const BlockPlace& place) noexcept;
  using Idle = std::multimap<std::size_t, BlockPlace>;  ///< by capacity
  /// Blocks of one use.
  struct Stock {
    Arena* open = nullptr;  ///< the arena that new blocks are carved from
    Idle warm;              ///< pages touched
    Idle cold;              ///< pages returned to the system
  };
  [[nodiscard]] Stock& stock(BlockUse use) { return stocks_.at(static_cast<std::size_t>(use)); }
  [[nodiscard]] static BlockPlace take_idle(Idle& idle, std::size_t capacity, std::size_t largest);
  [[nodiscard]] BlockPlace carve(std::size_t capacity, BlockUse use);
  [[nodiscard]] Arena& new_arena(std::size_t bytes, BlockUse use);

  mutable std::mutex mutex_;
  std::uint64_t max_idle_bytes_;
  std::uint64_t warm_bytes_ = 0;
  std::vector<std::unique_ptr<Arena>> arenas_;
  std::array<Stock, 2> stocks_;
};

class ArenaBlock final : public SharedBlock {
 public:
  ArenaBlock(std::shared_ptr<ArenaPool> pool, const BlockPlace& place, std::size_t bytes) noexcept
      : pool_(std::move(pool)), place_(place), bytes_(bytes) {}
  ~ArenaBlock() override { pool_->release(place_); }
  ArenaBlock(const ArenaBlock&) = delete;
  ArenaBlock& operator=(const ArenaBlock&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() override;
  [[nodiscard]] const BlockPlace& place() const noexcept { return place_; }

 private:
  std::shared_ptr<ArenaPool> pool_;
  BlockPlace place_;
  std::size_t bytes_;
};

}  // namespace numcheck::worker
