#include "worker/output_tail.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "core/strings.hpp"
#include "worker/protocol.hpp"

namespace numcheck::worker {
namespace {

constexpr int kMaxReads = 64;  ///< one chunk each: four times the default pipe capacity
constexpr std::size_t kTailBytes = 8192;
constexpr std::size_t kMaxLastOutputBytes = 600;
constexpr std::size_t kMaxLastLines = 4;

}  // namespace

void OutputTail::drain(const std::function<void(std::string_view)>& sink) {
  std::array<char, 4096> chunk;
  for (int reads = 0; pipe_.valid() && reads < kMaxReads; ++reads) {
    const ssize_t got = ::read(pipe_.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got == 0) {
      pipe_.reset();
    }
    if (got <= 0) {
      return;
    }
    const std::string_view text(chunk.data(), static_cast<std::size_t>(got));
    tail_.append(text);
    if (tail_.size() > kTailBytes) {
      tail_.erase(0, tail_.size() - kTailBytes);
    }
    if (sink) {
      sink(text);
    }
  }
}

std::string OutputTail::last_output() const {
  std::vector<std::string> lines;
  for (const std::string& line : core::split(tail_, '\n')) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) {
      lines.push_back(line);
    }
  }
  std::string words;
  for (std::size_t i = lines.size() - std::min(lines.size(), kMaxLastLines); i < lines.size(); ++i) {
    words += (words.empty() ? "" : " | ") + lines[i];
  }
  if (words.size() > kMaxLastOutputBytes) {
    words.erase(0, words.size() - kMaxLastOutputBytes);
  }
  return words.empty() ? "" : "; its last output: " + printable(words, kMaxLastOutputBytes);
}

}  // namespace numcheck::worker
