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
  what_ = std::move(what);
  limit_s_ = limit_s;
  counted_s_ = 0;
  last_check_ = Clock::now();
  return Work(*this);
}

void StuckWatch::end() {
  const std::lock_guard lock(mutex_);
  what_.clear();
}

std::optional<std::string> StuckWatch::check(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  counted_s_ += std::clamp(std::chrono::duration<double>(now - last_check_).count(), 0.0, kMaxPause_s);
  last_check_ = now;
  if (what_.empty() || counted_s_ <= limit_s_) {
    return std::nullopt;
  }
  return fmt::format("{} is stuck: not finished after {} s", std::exchange(what_, ""), core::shortest(limit_s_));
}

}  // namespace numcheck::run
