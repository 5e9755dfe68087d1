#include "worker/arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/strings.hpp"

namespace numcheck::worker {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kArenaBytes = std::size_t{1} << 30;  ///< sparse
constexpr std::size_t kMaxBlockBytes = std::size_t{1} << 46;

/// Rounds up to one of eight steps per power of two, so that blocks of similar size can reuse each other's memory.
std::size_t capacity_for(std::size_t bytes) {
  const std::size_t step = std::max(kPage, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

/// Size of a new arena. Address space is free unless it is limited (ulimit -v). In that case an arena takes a small
/// share, since the worker has to map it next to its own heaps and libraries. The file size limit (ulimit -f) also
/// applies to memfds.
std::size_t arena_bytes() {
  constexpr rlim_t kShare = 16;
  const auto limit_of = [](auto resource) {
    rlimit limit{};
    return ::getrlimit(resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
  };
  const rlim_t space = limit_of(RLIMIT_AS);
  const rlim_t limit = std::min(limit_of(RLIMIT_FSIZE), space == RLIM_INFINITY ? space : space / kShare);
  return static_cast<std::size_t>(std::min<rlim_t>(kArenaBytes, limit)) / kPage * kPage;
}

[[noreturn]] void fail(std::size_t bytes, int error) {
  throw core::EnvironmentError(fmt::format("cannot allocate {} of shared memory: {}{}", core::human_bytes(bytes),
                                           std::generic_category().message(error),
                                           error == EFBIG ? " (see ulimit -f)" : ""));
}

}  // namespace

Mapping::Mapping(int fd, std::size_t bytes, bool writable) : size_(bytes) {
  void* address = ::mmap(nullptr, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (address == MAP_FAILED) {
    fail(bytes, errno);
  }
  data_ = static_cast<std::byte*>(address);
}

Mapping::~Mapping() {
  ::munmap(data_, size_);
}

std::span<std::byte> ArenaBlock::bytes() {
  return place_.arena == nullptr ? std::span<std::byte>()
                                 : std::span(place_.arena->mapping->data() + place_.offset, bytes_);
}

ArenaPool::ArenaPool(std::uint64_t max_idle_bytes) : max_idle_bytes_(max_idle_bytes) {}

std::uint64_t ArenaPool::idle_bytes() const {
  const std::lock_guard lock(mutex_);
  return warm_bytes_;
}

std::shared_ptr<SharedBlock> ArenaPool::allocate(std::size_t bytes, BlockUse use) {
  if (bytes == 0) {
    return std::make_shared<ArenaBlock>(shared_from_this(), BlockPlace{}, 0);
  }
  if (bytes > kMaxBlockBytes) {
    fail(bytes, ENOMEM);
  }
  const std::size_t capacity = capacity_for(bytes);
  const std::lock_guard lock(mutex_);
  BlockPlace place = take_idle(stock(use).warm, capacity, 2 * capacity);
  if (place.arena != nullptr) {
    warm_bytes_ -= place.capacity;
  } else {
    place = take_idle(stock(use).cold, capacity, 2 * capacity);
  }
  if (place.arena == nullptr) {
    place = carve(capacity, use);
  }
  return std::make_shared<ArenaBlock>(shared_from_this(), place, bytes);
}

BlockPlace ArenaPool::take_idle(Idle& idle, std::size_t capacity, std::size_t largest) {
  const auto found = idle.lower_bound(capacity);
  if (found == idle.end() || found->first > largest) {
    return {};
  }
  const BlockPlace place = found->second;
  idle.erase(found);
  return place;
}

Arena& ArenaPool::new_arena(std::size_t bytes, BlockUse use) {
  auto arena = std::make_unique<Arena>();
  arena->id = arenas_.size() + 1;
  arena->use = use;
  arena->fd = core::FileDescriptor(::memfd_create("te-numcheck", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // Sealed, because a worker that shrank the file would cause a SIGBUS in the coordinator.
  if (!arena->fd.valid() || ::ftruncate(arena->fd.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(arena->fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    fail(bytes, errno);
  }
  const std::string path = fmt::format("/proc/self/fd/{}", arena->fd.get());
  arena->worker_fd =
      core::FileDescriptor(::open(path.c_str(), (use == BlockUse::input ? O_RDONLY : O_RDWR) | O_CLOEXEC));
  if (!arena->worker_fd.valid()) {
    fail(bytes, errno);
  }
  arena->mapping = std::make_unique<Mapping>(arena->fd.get(), bytes, true);
  return *arenas_.emplace_back(std::move(arena));
}

BlockPlace ArenaPool::carve(std::size_t capacity, BlockUse use) {
  Arena*& open = stock(use).open;
  if (open == nullptr || open->mapping->size() - open->used < capacity) {
    open = &new_arena(std::max(arena_bytes(), capacity), use);
  }
  const BlockPlace place{open, open->used, capacity};
  open->used += capacity;
  return place;
}

void ArenaPool::release(const BlockPlace& place) noexcept {
  if (place.arena == nullptr) {
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (warm_bytes_ + place.capacity <= max_idle_bytes_) {
      stock(place.arena->use).warm.emplace(place.capacity, place);
      warm_bytes_ += place.capacity;
      return;
    }
  }
  // Returns these pages rather than those of the longest-idle block: tracking idle times would cost more than it saves
  // in the rare case that the limit is reached.
  chill(place);
}

void ArenaPool::chill(const BlockPlace& place) noexcept {
  ::fallocate(place.arena->fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(place.offset),
              static_cast<off_t>(place.capacity));
  const std::lock_guard lock(mutex_);
  stock(place.arena->use).cold.emplace(place.capacity, place);
}

void ArenaPool::keep_no_more() noexcept {
  std::vector<BlockPlace> warm;
  {
    const std::lock_guard lock(mutex_);
    max_idle_bytes_ = 0;
    for (Stock& each : stocks_) {
      for (const auto& idle : each.warm) {
        warm.push_back(idle.second);
      }
      each.warm.clear();
    }
    warm_bytes_ = 0;
  }
  for (const BlockPlace& place : warm) {
    chill(place);
  }
}

}  // namespace numcheck::worker
