#include "run/stop_control.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "core/strings.hpp"

namespace numcheck::run {
namespace {

/// After an interrupt, work of this process that takes no longer is finished. Schedulers kill what has not ended after some
/// 30 s, and the report has to be written by then.
constexpr double kGrace_s = 3;

}  // namespace

StopControl::StopControl(const PipelineOptions& options, const ResultCollector& results, worker::WorkerPool& pool)
    : options_(options), results_(results), pool_(pool) {}

StopControl::Cause StopControl::check() const {
  if (options_.interrupted && options_.interrupted() != 0) {
    return Cause::interrupt;
  }
  if (options_.stop_after_failures != 0 && results_.failed() >= options_.stop_after_failures) {
    return Cause::failures;
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  return options_.budget_s > 0 && elapsed.count() >= options_.budget_s ? Cause::budget : Cause::none;
}

bool StopControl::must_stop() {
  const Cause cause = check();
  // An interrupt overrides any earlier cause, because it determines the exit code.
  Cause expected = Cause::none;
  if (cause == Cause::interrupt) {
    cause_ = cause;
  } else if (cause != Cause::none) {
    cause_.compare_exchange_strong(expected, cause);
  }
  return cause_ != Cause::none;
}

bool StopControl::gives_up(double since_s) {
  return options_.interrupted() >= 2 || (since_s >= kGrace_s && work_.longest_s() >= kGrace_s);
}

void StopControl::watch(const std::stop_token& stop) {
  constexpr auto kPollInterval = std::chrono::milliseconds(50);
  constexpr double kSayAfter_s = 1;
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  bool cancelled = false;
  std::optional<std::chrono::steady_clock::time_point> interrupted_at;
  bool told = !options_.on_waiting;
  while (!stop.stop_requested()) {
    if (!cancelled && must_stop()) {
      pool_.cancel_pending();
      cancelled = true;
    }
    if (must_stop() && interrupted()) {
      const auto now = std::chrono::steady_clock::now();
      interrupted_at = interrupted_at.value_or(now);
      const double since_s = std::chrono::duration<double>(now - *interrupted_at).count();
      if (!gave_up_ && gives_up(since_s)) {
        pool_.kill_workers();
        work_.stop_all();
        gave_up_ = true;
      }
      if (!told && since_s >= kSayAfter_s) {
        options_.on_waiting(work_.running());
        told = true;
      }
    }
    if (const auto sentence = work_.check(); sentence && options_.on_stuck) {
      options_.on_stuck(*sentence);
    }
    stopped.wait_for(lock, stop, kPollInterval, [&stop] { return stop.stop_requested(); });
  }
}

std::string StopControl::why_skipped(bool started) const {
  const std::string_view what = started && gave_up_ ? "not finished" : "not started";
  switch (cause_.load()) {
    case Cause::interrupt:
      return fmt::format("{}: the run was interrupted", what);
    case Cause::failures:
      return fmt::format("{}: --fail-fast stopped the run", what);
    case Cause::budget:
      return fmt::format("{}: the budget of {} s was used up", what, core::shortest(options_.budget_s));
    case Cause::none:
      break;
  }
  return std::string(what);
}

}  // namespace numcheck::run
