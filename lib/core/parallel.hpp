// One process-wide thread pool. Work is cut into a fixed grid that does not depend on the number of threads, so that
// results merged in grid order are the same on every machine.
#pragma once

#include <cstddef>
#include <functional>

namespace numcheck::core {

/// Number of threads that parallel_for uses, the caller included (default: the CPUs this process may run on).
[[nodiscard]] int thread_count() noexcept;

/// Sets it (>= 1) for the whole process; call before the first parallel_for or between calls.
void set_thread_count(int threads);

/// While one exists and is active, parallel_for runs inline on this thread: for work that is cheaper than waking others.
class SerialSection {
 public:
  explicit SerialSection(bool active) noexcept;
  ~SerialSection();
  SerialSection(const SerialSection&) = delete;
  SerialSection& operator=(const SerialSection&) = delete;

 private:
  bool before_;
};

/// Calls body(i) for i in [0, count), in no particular order, on the pool and the calling thread; returns when all are
/// done. May be called from several threads at once (they share the pool) and from inside a body (then it runs
/// inline). The first exception of a body is rethrown here after the others have finished. Throws Cancelled, leaving out the
/// bodies that have not started, once the stop of the calling thread's work is requested (core/cancel.hpp).
void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body);

/// Cuts [0, size) into chunks of `chunk` elements and calls body(chunk_index, begin, end).
void parallel_chunks(std::size_t size, std::size_t chunk,
                     const std::function<void(std::size_t, std::size_t, std::size_t)>& body);

}  // namespace numcheck::core
