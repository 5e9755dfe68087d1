// What ran when, and on which thread. A thread's work has a trace and a subject, as it has a stop token (core/cancel.hpp);
// parallel_for passes both on to the threads that help. Without a trace, spans cost a look at a variable of the thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace numcheck::core {

/// What time is spent on: a case, or several cases that share inputs, named after the first of them.
struct TraceSubject {
  std::string_view name{};  ///< identifier of the case; empty: none in particular
  std::size_t cases = 1;
};

/// Spans of time. Thread-safe.
class Trace {
 public:
  using Clock = std::chrono::steady_clock;

  /// Texts live as long as the trace.
  struct Event {
    std::string_view stage;
    std::string_view subject;
    std::size_t cases = 1;
    std::string_view detail;
    pid_t thread = 0;  ///< as the system numbers it
    Clock::time_point begin;
    Clock::time_point end;  ///< Clock::time_point::max() if it has not ended
  };
  struct Thread {
    pid_t number;
    std::string name;
  };

  [[nodiscard]] Clock::time_point start() const noexcept { return start_; }
  /// All so far, in the order in which they began, so that those of a thread lie after those around them.
  [[nodiscard]] std::vector<Event> events() const;
  /// Those that have had a TraceSection, in that order: "judge 1", "judge 2", or "coordinator" if there is only one.
  [[nodiscard]] std::vector<Thread> threads() const;

 private:
  friend class TraceSection;
  friend class Span;

  /// The trace's own copy of a text.
  [[nodiscard]] std::string_view keep(std::string_view text);
  void add_thread(pid_t number, std::string_view role);
  [[nodiscard]] Event* begin(Event event);
  void set_detail(Event& event, std::string_view detail);
  void end(Event& event) noexcept;
  [[nodiscard]] std::string_view keep_locked(std::string_view text);

  const Clock::time_point start_ = Clock::now();
  mutable std::mutex mutex_;
  std::deque<Event> events_;  ///< where they are never moves
  std::unordered_set<std::string> texts_;
  std::vector<Thread> threads_;  ///< named after their roles
  std::unordered_set<pid_t> known_threads_;
};

/// What a thread's spans are recorded as.
struct TraceContext {
  Trace* trace = nullptr;  ///< null: they are not recorded
  std::string_view stage{};
  std::string_view subject{};
  std::size_t cases = 1;
  pid_t thread = 0;
};

/// That of this thread's work.
[[nodiscard]] const TraceContext& current_trace() noexcept;

/// While one exists, spans of this thread go to that trace and have that subject; then again as before. Memory that is short
/// costs spans, never the work.
class TraceSection {
 public:
  /// `role`: what threads that have had no section before are called, with a number.
  TraceSection(Trace* trace, std::string_view role, const TraceSubject& subject = {}) noexcept;
  /// The work of another thread, which this one helps with.
  TraceSection(const TraceContext& helped, std::string_view role) noexcept;
  ~TraceSection();
  TraceSection(const TraceSection&) = delete;
  TraceSection& operator=(const TraceSection&) = delete;

 private:
  TraceContext before_;
};

/// The time from its creation to its end, on one thread. Spans of a thread lie within each other, or apart.
class Span {
 public:
  /// `stage` is a literal: what is being done. `detail`: with what, such as the name of a port.
  explicit Span(std::string_view stage, std::string_view detail = {}) noexcept;
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

  /// Sets the detail to what make() returns, unless nothing is recorded.
  template <class Make>
  void note(const Make& make) {
    if (event_ != nullptr) {
      note_text(make());
    }
  }

 private:
  void note_text(std::string_view detail) noexcept;

  Trace* trace_ = nullptr;
  Trace::Event* event_ = nullptr;
  std::string_view stage_before_;
};

}  // namespace numcheck::core
