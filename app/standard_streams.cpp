#include "standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <initializer_list>

namespace numcheck::app {

void open_standard_streams() noexcept {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    if (::fcntl(number, F_GETFD) == -1 && errno == EBADF) {
      // open() returns the lowest free number, which is this one. Standard output is opened for reading, so writes fail.
      (void)::open("/dev/null", number == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

void set_up_signals() noexcept {
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);
  sigset_t ours;
  sigemptyset(&ours);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
    sigaddset(&ours, signal);
  }
  ::pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
}

}  // namespace numcheck::app
