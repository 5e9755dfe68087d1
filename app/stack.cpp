#include "stack.hpp"

#include <pthread.h>
#include <sys/resource.h>

#include <cstddef>
#include <system_error>
#include <thread>

namespace numcheck::app {
namespace {

/// What threads and processes usually have.
constexpr std::size_t kUsual = std::size_t{8} << 20;
/// Enough for everything done here; Eigen alone takes up to 128 KiB for a product.
constexpr std::size_t kEnough = std::size_t{2} << 20;

rlim_t limit_of(__rlimit_resource resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

/// The stack size that is needed; 0 if the process's own stack will do. A thread's stack is mapped at once; the stack of
/// the process grows, and if the address space is limited, it may find no room and die with SIGSEGV.
std::size_t stack_of_our_own() {
  if (limit_of(RLIMIT_AS) != RLIM_INFINITY) {
    return kEnough;
  }
  return limit_of(RLIMIT_STACK) < kEnough ? kUsual : 0;
}

/// By default the system derives the size of threads' stacks from the limit, too.
void set_thread_stacks(std::size_t bytes) {
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
  set_thread_stacks(bytes);
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
