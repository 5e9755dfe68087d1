#include "run/stuck_watch.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/strings.hpp"

namespace numcheck::run {
namespace {

/// A longer pause between two looks is no time of the work's.
constexpr double kLongestPause_s = 1;

}  // namespace

StuckWatch::Work StuckWatch::begin(std::string what, double limit_s) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
  limit_s_ = limit_s;
  counted_s_ = 0;
  last_look_ = Clock::now();
  return Work(*this);
}

void StuckWatch::end() {
  const std::lock_guard lock(mutex_);
  what_.clear();
}

std::optional<std::string> StuckWatch::look(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  counted_s_ += std::clamp(std::chrono::duration<double>(now - last_look_).count(), 0.0, kLongestPause_s);
  last_look_ = now;
  if (what_.empty() || counted_s_ <= limit_s_) {
    return std::nullopt;
  }
  return fmt::format("{} is stuck: not done within {} s", std::exchange(what_, ""), core::shortest(limit_s_));
}

}  // namespace numcheck::run
