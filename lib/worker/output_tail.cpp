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

constexpr int kMaxReads = 64;  ///< of a chunk each: four times what a pipe holds by default
constexpr std::size_t kTailBytes = 8192;
constexpr std::size_t kLastWordsBytes = 600;
constexpr std::size_t kLastLines = 4;

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

std::string OutputTail::last_words() const {
  std::vector<std::string> lines;
  for (const std::string& line : core::split(tail_, '\n')) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) {
      lines.push_back(line);
    }
  }
  std::string words;
  for (std::size_t i = lines.size() - std::min(lines.size(), kLastLines); i < lines.size(); ++i) {
    words += (words.empty() ? "" : " | ") + lines[i];
  }
  if (words.size() > kLastWordsBytes) {
    words.erase(0, words.size() - kLastWordsBytes);
  }
  return words.empty() ? "" : "; its last words: " + printable(words, kLastWordsBytes);
}

}  // namespace numcheck::worker
