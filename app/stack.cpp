#include "stack.hpp"

#include <pthread.h>
#include <sys/resource.h>

#include <cstddef>
#include <system_error>
#include <thread>

namespace numcheck::app {
namespace {

/// What threads and programs usually have; Eigen alone takes up to 128 KiB for a product.
constexpr std::size_t kUsual = std::size_t{8} << 20;
constexpr std::size_t kEnough = std::size_t{1} << 20;

bool is_short_of_stack() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < kEnough;
}

/// The system derives the size of a thread's stack from the limit, too.
void give_threads_the_usual() {
  pthread_attr_t attributes{};
  if (::pthread_attr_init(&attributes) == 0) {
    if (::pthread_attr_setstacksize(&attributes, kUsual) == 0) {
      ::pthread_setattr_default_np(&attributes);
    }
    ::pthread_attr_destroy(&attributes);
  }
}

}  // namespace

int with_enough_stack(const std::function<int()>& body) {
  if (!is_short_of_stack()) {
    return body();
  }
  give_threads_the_usual();
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
