#include "worker/pool.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <optional>
#include <typeinfo>
#include <utility>

#include <fmt/format.h>

namespace numcheck::worker {
namespace {

/// "CudaError" of numcheck::kernels::CudaError.
std::string short_type_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                         &std::free);
  std::string name = status == 0 && text ? text.get() : type.name();
  const auto colon = name.find('<') == std::string::npos ? name.rfind("::") : std::string::npos;
  return colon == std::string::npos ? name : name.substr(colon + 2);
}

/// Every way out of an executor comes through here.
Outcome at_boundary(Executor& executor, Outcome outcome) {
  const std::optional<DeviceLoss> loss = executor.device_loss();
  if (!loss) {
    return outcome;
  }
  const bool had_surfaced = outcome.kind == Outcome::Kind::error || outcome.kind == Outcome::Kind::crashed;
  const std::string& first = had_surfaced ? outcome.reason : loss->error;
  return {Outcome::Kind::crashed, fmt::format("{}; {}", first, loss->followed), outcome.device_s};
}

/// Calls `answer`; an exception is an error with type and text.
template <class Answer>
Outcome guarded(const Answer& answer) {
  try {
    return answer();
  } catch (...) {
    return {Outcome::Kind::error, describe_exception(std::current_exception()), 0};
  }
}

}  // namespace

void Ledger::begin() {
  const std::lock_guard lock(mutex_);
  ++open_;
}

void Ledger::end() {
  const std::lock_guard lock(mutex_);
  if (--open_ == 0) {
    even_.notify_all();
  }
}

void Ledger::keep_exception() {
  const std::lock_guard lock(mutex_);
  if (!exception_) {
    exception_ = std::current_exception();
  }
}

void Ledger::wait() {
  std::unique_lock lock(mutex_);
  even_.wait(lock, [&] { return open_ == 0; });
  if (exception_) {
    std::rethrow_exception(std::exchange(exception_, nullptr));
  }
}

bool conclude_task(Task&& finished, const Outcome& outcome, Ledger& ledger) {
  const Task task = std::move(finished);
  try {
    if (task.on_end) {
      task.on_end(outcome);
    }
    return true;
  } catch (...) {
    ledger.keep_exception();
    return false;
  }
}

bool tell_answer(const Question& question, std::size_t index, const Outcome& outcome, Ledger& ledger) {
  try {
    question.on_answer(index, outcome);
    return true;
  } catch (...) {
    ledger.keep_exception();
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
  return at_boundary(executor, guarded([&] { return executor.execute(c, ports, options, sink); }));
}

Outcome support_guarded(Executor& executor, const plan::Case& c, const ExecuteOptions& options) {
  return at_boundary(executor, guarded([&]() -> Outcome {
                       Support support = executor.supports(c, options);
                       return {support.yes ? Outcome::Kind::done : Outcome::Kind::unsupported,
                               std::move(support.reason), 0};
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
