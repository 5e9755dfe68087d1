// Starting threads, which the system may refuse (ulimit -u, a cgroup's pids.max, no memory for a stack).
#pragma once

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"

namespace numcheck::worker {

/// Starts a std::thread or std::jthread. On failure throws a core::EnvironmentError that names `purpose` ("to ...").
template <class Thread = std::thread, class Body>
[[nodiscard]] Thread start_thread(std::string_view purpose, Body&& body) {
  try {
    return Thread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    throw core::EnvironmentError(
        fmt::format("cannot start a thread {}: {}; check ulimit -u and -v", purpose, error.code().message()));
  }
}

}  // namespace numcheck::worker
