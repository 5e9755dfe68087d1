// The generator's loops, compiled once per instruction set. Plain types only: nothing here may emit a symbol that
// another translation unit shares.
//
// Element e of a stream belongs to group e / 256 and there to word (e % 256) / 64 of the Philox block
// 64 * group + e % 64, so that each of the four words of consecutive blocks lands in consecutive elements, whatever the
// vector width. This order is part of the format: changing it changes every digest.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numcheck::data {

inline constexpr std::size_t kGroup = 256;       ///< elements of a group
inline constexpr std::size_t kGroupBlocks = 64;  ///< Philox blocks of a group, four words each

/// Key and counter of a stream: key {seed low, seed high}, counter {block low, block high + draw * 2^24, op, port}.
/// `draw` numbers the words that one element uses: 0 makes its value, further ones make choices.
struct WordStream {
  std::uint64_t seed;
  std::uint32_t op;
  std::uint32_t port;
  std::uint32_t draw;
};

/// All fill `groups` whole groups from `first_group` on; values are doubles rounded to FP32.
struct GeneratorKernels {
  /// The raw 32-bit words.
  void (*words)(const WordStream& stream, std::uint64_t first_group, std::size_t groups, std::uint32_t* out);
  /// mean + sigma * z with z normal by Box and Muller (Ann. Math. Stat. 29, 1958): sqrt(-2 ln u) cos(2 pi v) and sin;
  /// |z| <= 6.8, because u >= 2^-33.
  void (*normal)(const WordStream& stream, std::uint64_t first_group, std::size_t groups, double mean, double sigma,
                 double* out);
  /// low + (high - low) * (word + offset) / 2^32.
  void (*uniform)(const WordStream& stream, std::uint64_t first_group, std::size_t groups, double low, double high,
                  double offset, double* out);
  /// 2^x with x uniform between low and high, in 2^31 steps, and the word's top bit as sign if `with_sign`.
  void (*power)(const WordStream& stream, std::uint64_t first_group, std::size_t groups, double low, double high,
                bool with_sign, double* out);
};

namespace baseline {
[[nodiscard]] const GeneratorKernels& generator_kernels() noexcept;
}
namespace avx2 {
[[nodiscard]] const GeneratorKernels& generator_kernels() noexcept;
}
namespace avx512 {
[[nodiscard]] const GeneratorKernels& generator_kernels() noexcept;
}

/// Those of the active instruction set.
[[nodiscard]] const GeneratorKernels& generator_kernels() noexcept;

}  // namespace numcheck::data
