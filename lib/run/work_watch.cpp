#include "run/work_watch.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/strings.hpp"

namespace numcheck::run {
namespace {

/// Longer pauses between two checks are counted as this.
constexpr double kMaxPause_s = 1;

}  // namespace

WorkWatch::Work WorkWatch::begin(std::string what, const Limits& limits) {
  const std::lock_guard lock(mutex_);
  Watched& work = work_[++last_number_];
  work.what = std::move(what);
  work.limits = limits;
  work.begun = work.last_check = Clock::now();
  if (stop_all_) {
    work.stop.request_stop();
  }
  return {*this, last_number_, work.stop.get_token()};
}

void WorkWatch::end(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  work_.erase(number);
}

void WorkWatch::start_clock(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  Watched& work = work_.at(number);
  work.counted_s = 0;
  work.last_check = Clock::now();
}

void WorkWatch::throw_if_out_of_time(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const Watched& work = work_.at(number);
  if (work.out_of_time) {
    throw OutOfTime(fmt::format("{} took longer than {} s on the host (--timeout, or timeout_s of the plan)", work.what,
                                core::shortest(work.limits.time_s)));
  }
}

void WorkWatch::stop_all() {
  const std::lock_guard lock(mutex_);
  stop_all_ = true;
  for (auto& [number, work] : work_) {
    work.stop.request_stop();
  }
}

double WorkWatch::longest_s(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  return work_.empty() ? 0 : std::chrono::duration<double>(now - work_.begin()->second.begun).count();
}

std::vector<std::string> WorkWatch::running() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  all.reserve(work_.size());
  for (const auto& [number, work] : work_) {
    all.push_back(work.what);
  }
  return all;
}

std::optional<std::string> WorkWatch::check(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  std::optional<std::string> sentence;
  for (auto& [number, work] : work_) {
    work.counted_s += std::clamp(std::chrono::duration<double>(now - work.last_check).count(), 0.0, kMaxPause_s);
    work.last_check = now;
    if (work.counted_s > work.limits.time_s && !work.stop.stop_requested()) {
      work.out_of_time = true;
      work.stop.request_stop();
    }
    if (!sentence && !work.reported && work.counted_s > work.limits.stuck_s) {
      work.reported = true;
      sentence = fmt::format("{} is stuck: not finished after {} s", work.what, core::shortest(work.limits.stuck_s));
    }
  }
  return sentence;
}

}  // namespace numcheck::run
