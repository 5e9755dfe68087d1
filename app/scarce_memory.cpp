#include "scarce_memory.hpp"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "core/error.hpp"

namespace numcheck::app {
namespace {

constexpr int kHeaps = 2;

bool ran_out_of_memory() noexcept {
  try {
    if (const std::exception_ptr current = std::current_exception()) {
      std::rethrow_exception(current);
    }
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
  return false;
}

/// Must not allocate: there is no memory.
[[noreturn]] void end() noexcept {
  if (ran_out_of_memory()) {
    constexpr std::string_view kWords =
        "error: out of memory, with too little left to say where; check its limit (ulimit -v)\n"
        "  Finished cases are in the run's journal; --resume continues from there.\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kWords.data(), kWords.size());
    ::_exit(static_cast<int>(core::ExitCode::environment));
  }
  std::abort();
}

}  // namespace

void prepare_for_scarce_memory() noexcept {
  std::set_terminate(&end);
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    ::mallopt(M_ARENA_MAX, kHeaps);
  }
}

void keep_freed_memory() noexcept {
  constexpr int kLargest = 4 << 20;  // beyond, core::Buffer keeps blocks itself
  constexpr int kAtMost = 64 << 20;  // of a heap
  ::mallopt(M_MMAP_THRESHOLD, kLargest);
  ::mallopt(M_TRIM_THRESHOLD, kAtMost);
}

}  // namespace numcheck::app
