#include "core/cancel.hpp"

#include <utility>

namespace numcheck::core {
namespace {

/// A pointer: a token would need a destructor at the end of its thread, and registering that needs memory that may be short.
thread_local const std::stop_token* current = nullptr;

}  // namespace

StopSection::StopSection(std::stop_token token) : token_(std::move(token)), before_(std::exchange(current, &token_)) {}

StopSection::~StopSection() {
  current = before_;
}

std::stop_token current_stop() noexcept {
  return current == nullptr ? std::stop_token() : *current;
}

void throw_if_cancelled() {
  if (current != nullptr && current->stop_requested()) {
    throw Cancelled();
  }
}

}  // namespace numcheck::core
