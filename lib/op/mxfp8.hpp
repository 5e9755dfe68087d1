// MXFP8 outputs: FP8 codes with one power of two per 32 elements of a row, or of a column.
//
//   e     = E8M0, rounded up, of RN32(amax RN32(1 / max))   amax: max |v| of the block, NaN dropped; max: of the codes
//   code  = sat(RN(v 2^(127 - e)))
//   value = code 2^(e - 127)                                NaN for e = 255
//
// v is the op's result, rounded to the format of its inputs. A block of zeros has e = 0; an infinity yields e = 254 and
// the largest code.
// Source: OCP MX 1.0 for the format; TransformerEngine common/cast/mxfp8/quantize_mxfp8.cuh for the rule.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "op/op.hpp"

namespace numcheck::op {

inline constexpr std::int64_t kMxfp8Block = 32;

/// True for the output formats "mxfp8_e4m3" and "mxfp8_e5m2".
[[nodiscard]] bool is_mxfp8(std::string_view output) noexcept;

/// Format of the codes. Precondition: is_mxfp8(output).
[[nodiscard]] core::Dtype mxfp8_codes(std::string_view output);

/// The names of an MXFP8 output's ports. Codes of both layouts have the same orientation.
struct Mxfp8Names {
  std::string_view rowwise;
  std::string_view rowwise_scales;
  std::string_view columnwise;
  std::string_view columnwise_scales;
};

/// Which of the ports exist in the layout: rowwise | columnwise | both.
[[nodiscard]] bool has_rowwise(std::string_view layout) noexcept;
[[nodiscard]] bool has_columnwise(std::string_view layout) noexcept;

/// The scales of a matrix of codes: [rows, ceil(cols / 32)], or [ceil(rows / 32), cols].
struct Mxfp8Grid {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};
[[nodiscard]] Mxfp8Grid rowwise_grid(std::int64_t rows, std::int64_t cols) noexcept;
[[nodiscard]] Mxfp8Grid columnwise_grid(std::int64_t rows, std::int64_t cols) noexcept;

/// Adds the ports of the layout: codes like `output`, whose format is that of the codes, and their scales.
void add_mxfp8_output(std::vector<Port>& ports, const Port& output, const Mxfp8Names& names, std::string_view layout);

/// A layout given to an output that is not MXFP8: the mistake as a sentence, or nothing.
[[nodiscard]] std::vector<std::string> check_layout(std::string_view op, const std::string& output,
                                                    const std::string& layout);

}  // namespace numcheck::op
