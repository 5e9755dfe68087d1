#include "core/trace.hpp"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace numcheck::core {
namespace {

constinit thread_local TraceContext current;

/// Asking the system once is enough.
pid_t this_thread() {
  thread_local const pid_t number = ::gettid();
  return number;
}

}  // namespace

std::vector<Trace::Event> Trace::events() const {
  std::vector<Event> events;
  {
    const std::lock_guard lock(mutex_);
    events.assign(events_.begin(), events_.end());
  }
  std::ranges::stable_sort(events, std::less(), &Event::begin);
  return events;
}

std::vector<Trace::Thread> Trace::threads() const {
  std::vector<Thread> threads;
  {
    const std::lock_guard lock(mutex_);
    threads = threads_;
  }
  std::map<std::string, std::size_t> of_role;
  for (const Thread& thread : threads) {
    ++of_role[thread.name];
  }
  std::map<std::string, std::size_t> numbered;
  for (Thread& thread : threads) {
    if (of_role[thread.name] > 1) {
      const std::size_t number = ++numbered[thread.name];
      thread.name += fmt::format(" {}", number);
    }
  }
  return threads;
}

std::string_view Trace::keep_locked(std::string_view text) {
  return text.empty() ? std::string_view() : *texts_.emplace(text).first;
}

std::string_view Trace::keep(std::string_view text) {
  const std::lock_guard lock(mutex_);
  return keep_locked(text);
}

void Trace::add_thread(pid_t number, std::string_view role) {
  const std::lock_guard lock(mutex_);
  if (known_threads_.insert(number).second) {
    threads_.push_back({number, std::string(role)});
  }
}

Trace::Event* Trace::begin(Event event) {
  const std::lock_guard lock(mutex_);
  event.detail = keep_locked(event.detail);
  return &events_.emplace_back(event);
}

void Trace::set_detail(Event& event, std::string_view detail) {
  const std::lock_guard lock(mutex_);
  event.detail = keep_locked(detail);
}

void Trace::end(Event& event) noexcept {
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(mutex_);
  event.end = now;
}

const TraceContext& current_trace() noexcept {
  return current;
}

TraceSection::TraceSection(Trace* trace, std::string_view role, const TraceSubject& subject) noexcept
    : before_(std::exchange(current, TraceContext{})) {
  if (trace == nullptr) {
    return;
  }
  try {
    const pid_t number = this_thread();
    trace->add_thread(number, role);
    current = {trace, {}, trace->keep(subject.name), subject.cases, number};
  } catch (const std::exception&) {  // no memory: this section is not recorded
  }
}

TraceSection::TraceSection(const TraceContext& helped, std::string_view role) noexcept
    : before_(std::exchange(current, TraceContext{})) {
  if (helped.trace == nullptr) {
    return;
  }
  try {
    const pid_t number = this_thread();
    helped.trace->add_thread(number, role);
    current = helped;
    current.thread = number;
  } catch (const std::exception&) {  // as above
  }
}

TraceSection::~TraceSection() {
  current = before_;
}

Span::Span(std::string_view stage, std::string_view detail) noexcept {
  if (current.trace == nullptr) {
    return;
  }
  try {
    event_ = current.trace->begin({stage, current.subject, current.cases, detail, current.thread, Trace::Clock::now(),
                                   Trace::Clock::time_point::max()});
  } catch (const std::exception&) {  // no memory: this span is not recorded
    return;
  }
  trace_ = current.trace;
  stage_before_ = std::exchange(current.stage, stage);
}

Span::~Span() {
  if (event_ != nullptr) {
    trace_->end(*event_);
    current.stage = stage_before_;
  }
}

void Span::note_text(std::string_view detail) noexcept {
  try {
    trace_->set_detail(*event_, detail);
  } catch (const std::exception&) {  // no memory: the span has no detail
  }
}

}  // namespace numcheck::core
