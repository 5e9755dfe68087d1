#include "stack.hpp"

#include <pthread.h>
#include <sys/resource.h>

#include <cstddef>
#include <system_error>
#include <thread>

namespace numcheck::app {
namespace {

/// What threads and programs usually have.
constexpr std::size_t kUsual = std::size_t{8} << 20;
/// Enough for all that is done here; Eigen alone takes up to 128 KiB for a product.
constexpr std::size_t kEnough = std::size_t{2} << 20;

rlim_t limit_of(__rlimit_resource resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

/// The stack of a thread is mapped at once, that of the program grows: where the address space is limited, there may be
/// no room left for it, and the answer is SIGSEGV. The size that is needed; 0 if the program's own stack will do.
std::size_t stack_of_our_own() {
  if (limit_of(RLIMIT_AS) != RLIM_INFINITY) {
    return kEnough;
  }
  return limit_of(RLIMIT_STACK) < kEnough ? kUsual : 0;
}

/// The system derives the size of a thread's stack from the limit, too.
void give_threads(std::size_t bytes) {
  pthread_attr_t attributes{};
  if (::pthread_attr_init(&attributes) == 0) {
    if (::pthread_attr_setstacksize(&attributes, bytes) == 0) {
      ::pthread_setattr_default_np(&attributes);
    }
    ::pthread_attr_destroy(&attributes);
  }
}

}  // namespace

int with_enough_stack(const std::function<int()>& body) {
  const std::size_t bytes = stack_of_our_own();
  if (bytes == 0) {
    return body();
  }
  give_threads(bytes);
  int result = 0;
  std::thread thread;
  try {
    thread = std::thread([&] { result = body(); });
  } catch (const std::system_error&) {
    return body();  // most commands need little
  }
  thread.join();
  return result;
}

}  // namespace numcheck::app
