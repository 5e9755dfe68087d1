// Messages between coordinator and worker: one JSON line each over a SOCK_SEQPACKET socket, which keeps their borders,
// with file descriptors beside the bytes (SCM_RIGHTS, unix(7)).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/file_descriptor.hpp"

namespace numcheck::worker {

/// Longest message. Below Linux' default socket buffer (212 992 bytes), which bounds a packet.
inline constexpr std::size_t kMaxMessageBytes = 128u << 10;

struct Message {
  std::string text;
  std::vector<core::FileDescriptor> descriptors;
};

enum class Received { message, closed, nothing, too_long };

class Channel {
 public:
  Channel() = default;
  explicit Channel(core::FileDescriptor socket) noexcept : socket_(std::move(socket)) {}

  /// Two connected ends, closed on exec.
  [[nodiscard]] static std::pair<Channel, Channel> make_pair();

  /// Never blocks and never raises SIGPIPE. False if the other end is closed, or if it does not read and the buffer is
  /// full. Throws core::IoError if the text is longer than kMaxMessageBytes.
  [[nodiscard]] bool send(std::string_view text, std::span<const int> descriptors = {});

  /// The next message; waits for one if `wait`, else `nothing` when there is none.
  [[nodiscard]] Received receive(Message& message, bool wait);

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  void close() noexcept { socket_.reset(); }
  /// Gives up ownership of the descriptor.
  [[nodiscard]] core::FileDescriptor release() noexcept { return std::move(socket_); }

 private:
  core::FileDescriptor socket_;
  std::vector<char> buffer_;  ///< of receive(): made once
};

}  // namespace numcheck::worker
