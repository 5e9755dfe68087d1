// The codecs' loops, compiled once per instruction set. Plain types only: nothing here may emit a symbol that another
// translation unit shares.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numcheck::core {

/// What the loops need to know about a format. A "code" is the bit pattern of a magnitude.
struct CodecFormat {
  int shift;                   ///< 52 - fraction_bits: bits of a double's significand that are rounded away
  std::uint64_t rebias;        ///< (emin + 1022) << 52: a normal double's bits minus (code << shift)
  double min_normal;           ///< 2^emin
  double aligner;              ///< 2^(52 + emin - fraction_bits): adding it rounds a subnormal at the right place
  double half_spacing;         ///< half the distance between two subnormals
  double floor;                ///< smallest magnitude of a format without zero (E8M0), else 0
  std::int64_t max_code;       ///< of the largest finite value
  std::int64_t overflow_code;  ///< of everything beyond, infinities included: max_code, infinity or NaN
  std::int64_t nan_code;       ///< with its sign bit, stored unchanged
  std::int64_t sign_code;      ///< sign bit of the format; 0 if it has none
  int word_shift;              ///< the word stored is code << word_shift: 13 for tf32, which lives in fp32 words
};

/// Same order as Rounding.
enum class CodecRounding : int { nearest_even, nearest_away, toward_zero, toward_positive };

/// `words` need no alignment.
struct CodecKernels {
  void (*encode)(const double* values, std::size_t count, const CodecFormat& format, CodecRounding rounding,
                 int word_bytes, void* words);
  void (*encode_fp32)(const double* values, std::size_t count, void* words);  ///< nearest even, IEEE overflow
  void (*decode_fp32)(const void* words, std::size_t count, double* values);
  void (*decode_bf16)(const void* words, std::size_t count, double* values);
  void (*decode_fp16)(const void* words, std::size_t count, double* values);
  void (*fp32_to_bf16)(const void* words, std::size_t count, void* narrow);  ///< nearest even, IEEE overflow
};

namespace baseline {
[[nodiscard]] const CodecKernels& codec_kernels() noexcept;
}
namespace avx2 {
[[nodiscard]] const CodecKernels& codec_kernels() noexcept;
}
namespace avx512 {
[[nodiscard]] const CodecKernels& codec_kernels() noexcept;
}

}  // namespace numcheck::core
