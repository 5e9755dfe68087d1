#include "run/stuck_watch.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/strings.hpp"

namespace numcheck::run {
namespace {

/// Longer pauses between two checks are counted as this.
constexpr double kMaxPause_s = 1;

}  // namespace

StuckWatch::Work StuckWatch::begin(std::string what, double limit_s) {
  const std::lock_guard lock(mutex_);
  work_[++last_number_] = {.what = std::move(what), .limit_s = limit_s, .last_check = Clock::now()};
  return {*this, last_number_};
}

void StuckWatch::end(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  work_.erase(number);
}

std::vector<std::string> StuckWatch::running() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  all.reserve(work_.size());
  for (const auto& [number, work] : work_) {
    all.push_back(work.what);
  }
  return all;
}

std::optional<std::string> StuckWatch::check(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  std::optional<std::string> sentence;
  for (auto& [number, work] : work_) {
    work.counted_s += std::clamp(std::chrono::duration<double>(now - work.last_check).count(), 0.0, kMaxPause_s);
    work.last_check = now;
    if (!sentence && !work.reported && work.counted_s > work.limit_s) {
      work.reported = true;
      sentence = fmt::format("{} is stuck: not finished after {} s", work.what, core::shortest(work.limit_s));
    }
  }
  return sentence;
}

}  // namespace numcheck::run
