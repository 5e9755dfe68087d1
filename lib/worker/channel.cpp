#include "worker/channel.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <fmt/format.h>

#include "core/error.hpp"

namespace numcheck::worker {
namespace {

/// Per message; a task's ports lie in a few arenas. The kernel's limit is 253.
constexpr std::size_t kMaxDescriptors = 64;
constexpr int kSocketBufferBytes = 512 << 10;

void take_descriptors(msghdr& header, Message& message) {
  for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr; item = CMSG_NXTHDR(&header, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const std::size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(item) + i * sizeof(int), sizeof(int));
      message.descriptors.emplace_back(fd);
    }
  }
}

}  // namespace

std::pair<Channel, Channel> Channel::make_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw core::IoError("cannot create a socket for a worker: " + std::generic_category().message(errno));
  }
  for (const int end : ends) {
    ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &kSocketBufferBytes, sizeof(kSocketBufferBytes));
  }
  return {Channel(core::FileDescriptor(ends[0])), Channel(core::FileDescriptor(ends[1]))};
}

bool Channel::send(std::string_view text, std::span<const int> descriptors) {
  if (text.size() > kMaxMessageBytes || descriptors.size() > kMaxDescriptors) {
    throw core::IoError(
        fmt::format("a message of {} bytes with {} descriptors exceeds the limit of {} bytes and {} descriptors",
                    text.size(), descriptors.size(), kMaxMessageBytes, kMaxDescriptors));
  }
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control{};
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(item), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(text.size());
}

Received Channel::receive(Message& message, bool wait) {
  buffer_.resize(kMaxMessageBytes);
  message.text.clear();
  message.descriptors.clear();
  iovec part{buffer_.data(), buffer_.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control{};
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t got = -1;
  do {
    got = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    return Received::nothing;
  }
  take_descriptors(header, message);
  if (got <= 0) {  // we never send empty packets; errors such as ECONNRESET mean that the peer died
    return Received::closed;
  }
  message.text.assign(buffer_.data(), static_cast<std::size_t>(got));
  return (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ? Received::too_long : Received::message;
}

}  // namespace numcheck::worker
