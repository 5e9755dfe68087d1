#include "worker/pool.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <optional>
#include <typeinfo>
#include <utility>

#include <fmt/format.h>

#include "core/trace.hpp"

namespace numcheck::worker {
namespace {

/// "CudaError" for numcheck::kernels::CudaError.
std::string short_type_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                         &std::free);
  std::string name = status == 0 && text ? text.get() : type.name();
  const auto colon = name.find('<') == std::string::npos ? name.rfind("::") : std::string::npos;
  return colon == std::string::npos ? name : name.substr(colon + 2);
}

/// The outcome, unless the device is lost: then `crashed`. Every result of an executor passes through here.
Outcome with_device_check(Executor& executor, Outcome outcome) {
  const std::optional<DeviceLoss> loss = executor.device_loss();
  if (!loss) {
    return outcome;
  }
  const bool had_surfaced = outcome.kind == Outcome::Kind::error || outcome.kind == Outcome::Kind::crashed;
  const std::string& first = had_surfaced ? outcome.reason : loss->error;
  return {Outcome::Kind::crashed, fmt::format("{}; {}", first, loss->followed), outcome.device_s};
}

/// Calls `answer`; an exception becomes an error with its type and message.
template <class Answer>
Outcome guarded(const Answer& answer) {
  try {
    return answer();
  } catch (...) {
    return {Outcome::Kind::error, describe_exception(std::current_exception()), 0};
  }
}

}  // namespace

void WorkTracker::begin() {
  const std::lock_guard lock(mutex_);
  ++in_flight_;
}

void WorkTracker::end() {
  const std::lock_guard lock(mutex_);
  if (--in_flight_ == 0) {
    idle_.notify_all();
  }
}

void WorkTracker::keep_exception() {
  const std::lock_guard lock(mutex_);
  if (!exception_) {
    exception_ = std::current_exception();
  }
}

void WorkTracker::wait() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return in_flight_ == 0; });
  if (exception_) {
    std::rethrow_exception(std::exchange(exception_, nullptr));
  }
}

bool finish_task(Task&& finished, const Outcome& outcome, WorkTracker& tracker) {
  const Task task = std::move(finished);
  const core::TraceSection section(core::current_trace().trace, "worker", {.name = task.c->id});
  const core::Span span("hand over");
  try {
    if (task.on_end) {
      task.on_end(outcome);
    }
    return true;
  } catch (...) {
    tracker.keep_exception();
    return false;
  }
}

bool deliver_answer(const Question& question, std::size_t index, const Outcome& outcome, WorkTracker& tracker) {
  try {
    question.on_answer(index, outcome);
    return true;
  } catch (...) {
    tracker.keep_exception();
    return false;
  }
}

RunSink guarded_sink(const Task& task, std::exception_ptr& failure) {
  return [&task, &failure](const RunReport& report) {
    if (failure || !task.on_run) {
      return;
    }
    try {
      task.on_run(report);
    } catch (...) {
      failure = std::current_exception();
    }
  };
}

Outcome execute_guarded(Executor& executor, const plan::Case& c, std::span<const HostPort> ports,
                        const ExecuteOptions& options, const RunSink& sink) {
  return with_device_check(executor, guarded([&] { return executor.execute(c, ports, options, sink); }));
}

Outcome support_guarded(Executor& executor, const plan::Case& c, const ExecuteOptions& options) {
  return with_device_check(executor, guarded([&]() -> Outcome {
                             Support support = executor.supports(c, options);
                             return {support.yes ? Outcome::Kind::done : Outcome::Kind::unsupported,
                                     std::move(support.reason), 0, std::move(support.configurations)};
                           }));
}

std::string describe_exception(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    return fmt::format("{}: {}", short_type_name(typeid(error)), error.what());
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

}  // namespace numcheck::worker
