// Messages between coordinator and worker: one JSON object per packet over a SOCK_SEQPACKET socket, which preserves
// message boundaries, with file descriptors attached (SCM_RIGHTS, unix(7)).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/file_descriptor.hpp"

namespace numcheck::worker {

/// Below Linux's default socket buffer size (212 992 bytes), which limits the size of a packet.
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

  /// Two connected ends, close-on-exec.
  [[nodiscard]] static std::pair<Channel, Channel> make_pair();

  /// Never blocks and never raises SIGPIPE. False if the other end is closed, or if the buffer is full because it does
  /// not read. Throws core::IoError if the text is longer than kMaxMessageBytes.
  [[nodiscard]] bool send(std::string_view text, std::span<const int> descriptors = {});

  /// The next message. If there is none, waits for one if `wait` is true and returns `nothing` otherwise.
  [[nodiscard]] Received receive(Message& message, bool wait);

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  void close() noexcept { socket_.reset(); }
  /// Gives up ownership of the descriptor.
  [[nodiscard]] core::FileDescriptor release() noexcept { return std::move(socket_); }

 private:
  core::FileDescriptor socket_;
  std::vector<char> buffer_;  ///< of receive(), allocated once
};

}  // namespace numcheck::worker
