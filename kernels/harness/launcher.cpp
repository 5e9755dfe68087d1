#include "kernels/harness/launcher.hpp"

#include <exception>
#include <utility>

#include <fmt/format.h>

namespace numcheck::kernels::harness {
namespace {

/// What a step throws; empty if nothing.
template <class Step>
std::string error_of(const Step& step) {
  try {
    step();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// The error of waiting for the device; empty if there is none.
std::string sync_error(DeviceMemory& memory) {
  return error_of([&memory] { memory.synchronize(); });
}

}  // namespace

ReadScope::~ReadScope() {
  if (std::uncaught_exceptions() > exceptions_) {
    static_cast<void>(sync_error(memory_));  // the exception says what is wrong
  }
}

DeviceSeconds Launcher::start(const Algorithm& algorithm, std::string_view purpose, std::span<const PortMemory> ports,
                              std::byte* workspace) {
  last_ = fmt::format("{} ({})", algorithm.label, purpose);
  if (std::exchange(synchronized_, false) || launches_ == 0) {
    first_ = last_;
    launches_ = 0;
  }
  ++launches_;
  settled_ = false;
  return algorithm.launch(ports, workspace);
}

void Launcher::finish(DeviceMemory& memory) {
  memory.synchronize();
  synchronized_ = settled_ = true;
}

std::optional<worker::DeviceLoss> Launcher::loss(DeviceMemory& memory) noexcept {
  if (settled_ && error_of([&memory] { memory.poll(); }).empty()) {
    return std::nullopt;
  }
  const std::string first = sync_error(memory);
  if (first.empty() || sync_error(memory).empty()) {
    synchronized_ = settled_ = true;
    return std::nullopt;
  }
  return worker::DeviceLoss{first, last_launch_text()};
}

std::string Launcher::last_launch_text() const {
  if (last_.empty()) {
    return "nothing had been launched";
  }
  if (synchronized_) {
    return fmt::format(
        "it surfaced after the device had synchronized without an error; the last launch was {}, "
        "but an earlier one may be the cause",
        last_);
  }
  return launches_ == 1 ? fmt::format("it followed the launch of {}", last_)
                        : fmt::format("it followed {} launches, from {} to {}", launches_, first_, last_);
}

}  // namespace numcheck::kernels::harness
