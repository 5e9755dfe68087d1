#include "core/cancel.hpp"

#include <utility>

namespace numcheck::core {
namespace {

thread_local std::stop_token current;

}  // namespace

StopSection::StopSection(std::stop_token token) : before_(std::exchange(current, std::move(token))) {}

StopSection::~StopSection() {
  current = std::move(before_);
}

const std::stop_token& current_stop() noexcept {
  return current;
}

void throw_if_cancelled() {
  if (current.stop_requested()) {
    throw Cancelled();
  }
}

}  // namespace numcheck::core
