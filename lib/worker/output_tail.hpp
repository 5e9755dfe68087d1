// A worker's output: drained so that the worker never blocks on a full pipe; the last lines are kept for crash reports.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/file_descriptor.hpp"

namespace numcheck::worker {

class OutputTail {
 public:
  OutputTail() = default;
  /// `pipe` must be non-blocking.
  explicit OutputTail(core::FileDescriptor pipe) noexcept : pipe_(std::move(pipe)) {}

  /// For poll(2); -1 once the worker has closed its end.
  [[nodiscard]] int fd() const noexcept { return pipe_.get(); }
  /// Reads what is available, up to a few pipe buffers, and passes it to `sink` if set.
  void drain(const std::function<void(std::string_view)>& sink);
  /// "; its last output: ..." with the last lines; empty if there was no output.
  [[nodiscard]] std::string last_output() const;

 private:
  core::FileDescriptor pipe_;
  std::string tail_;
};

}  // namespace numcheck::worker
