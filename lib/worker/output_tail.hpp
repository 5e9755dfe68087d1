// What a worker prints: read so that it never blocks on a full pipe, and its end kept for the report of a crash.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/file_descriptor.hpp"

namespace numcheck::worker {

class OutputTail {
 public:
  OutputTail() = default;
  /// `pipe` must not block.
  explicit OutputTail(core::FileDescriptor pipe) noexcept : pipe_(std::move(pipe)) {}

  /// For poll(2); -1 once the worker has closed its end.
  [[nodiscard]] int fd() const noexcept { return pipe_.get(); }
  /// Reads what is there, up to a few pipes full, and passes it to `sink` if there is one.
  void drain(const std::function<void(std::string_view)>& sink);
  /// "; its last words: ..." with the last lines, or nothing.
  [[nodiscard]] std::string last_words() const;

 private:
  core::FileDescriptor pipe_;
  std::string tail_;
};

}  // namespace numcheck::worker
