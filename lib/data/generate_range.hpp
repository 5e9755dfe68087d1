// Ranges of a stream with arbitrary ends, from kernels that fill whole groups.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "core/rng.hpp"
#include "data/generator_kernels.hpp"

namespace numcheck::data {

[[nodiscard]] inline WordStream word_stream(const core::StreamId& stream, std::uint32_t draw = 0) {
  return {stream.seed, stream.op, stream.port, draw};
}

/// Calls fill(first group, groups, target) for the groups that hold elements [first, first + out.size()): in place for
/// groups that lie wholly inside, through a buffer at the ends.
template <class T, class Fill>
void fill_range(std::uint64_t first, std::span<T> out, const Fill& fill) {
  std::size_t done = 0;
  while (done < out.size()) {
    const std::uint64_t group = (first + done) / kGroup;
    const auto skipped = static_cast<std::size_t>((first + done) % kGroup);
    const std::size_t left = out.size() - done;
    if (skipped == 0 && left >= kGroup) {
      fill(group, left / kGroup, out.data() + done);
      done += left / kGroup * kGroup;
      continue;
    }
    std::array<T, kGroup> buffer;
    fill(group, std::size_t{1}, buffer.data());
    const std::size_t taken = std::min(left, kGroup - skipped);
    std::copy_n(buffer.data() + skipped, taken, out.data() + done);
    done += taken;
  }
}

/// Words of elements [first, first + out.size()) of one draw.
inline void generate_words(const WordStream& stream, std::uint64_t first, std::span<std::uint32_t> out) {
  fill_range(first, out, [&](std::uint64_t group, std::size_t groups, std::uint32_t* target) {
    generator_kernels().words(stream, group, groups, target);
  });
}

/// Uniform on 1..max from the low 31 bits, the sign from the top bit.
[[nodiscard]] inline double signed_integer(std::uint32_t word, std::uint64_t max) {
  const std::uint64_t magnitude = 1 + (((word & 0x7FFFFFFF) * max) >> 31);
  const auto value = static_cast<double>(magnitude);
  return (word >> 31) != 0 ? -value : value;
}

}  // namespace numcheck::data
