#include "model/operand_image.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/error.hpp"
#include "core/parallel.hpp"

namespace numcheck::model {
namespace {

using core::Dtype;
using core::Rounding;

/// Rows that one task loads: a transposed matrix is then read in pieces of a cache line.
constexpr std::int64_t kRowsPerTask = 16;

template <class T>
T read(const std::byte* at) {
  T word;
  std::memcpy(&word, at, sizeof(T));
  return word;
}

/// FP16's exponent and fraction moved to their places in FP32; multiplying by 2^112 corrects the bias, also for
/// subnormals.
float from_fp16(std::uint16_t word) {
  const std::uint32_t sign = (word & 0x8000U) << 16;
  const std::uint32_t magnitude = word & 0x7FFFU;
  const float special = std::bit_cast<float>(sign | 0x7F800000U | ((magnitude & 0x3FFU) << 13));
  const float finite = std::bit_cast<float>(sign | (magnitude << 13)) * 0x1p112F;
  return magnitude >= 0x7C00U ? special : finite;
}

const std::array<float, 256>& byte_values(Dtype dtype) {
  const auto make = [](Dtype d) {
    std::array<float, 256> table{};
    for (std::size_t byte = 0; byte < table.size(); ++byte) {
      table[byte] = static_cast<float>(core::decode(byte, d));
    }
    return table;
  };
  static const std::array<float, 256> kE4m3 = make(Dtype::fp8_e4m3);
  static const std::array<float, 256> kE5m2 = make(Dtype::fp8_e5m2);
  static const std::array<float, 256> kE2m1 = make(Dtype::fp4_e2m1);
  return dtype == Dtype::fp8_e4m3 ? kE4m3 : dtype == Dtype::fp8_e5m2 ? kE5m2 : kE2m1;
}

/// Decodes rows [begin, end) into `to`, all columns of them, in the order that suits the memory.
template <class Decode>
void load_rows(const MatrixView& view, std::span<const std::int64_t> row_order,
               std::span<const std::int64_t> column_order, std::int64_t begin, std::int64_t end, std::int64_t width,
               float* to, std::int64_t element_bytes, const Decode& decode) {
  const auto row_of = [&](std::int64_t r) { return row_order.empty() ? r : row_order[static_cast<std::size_t>(r)]; };
  const auto column_of = [&](std::int64_t c) {
    return column_order.empty() ? c : column_order[static_cast<std::size_t>(c)];
  };
  if (view.column_stride == 1 && column_order.empty()) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::byte* from = view.data + row_of(r) * view.row_stride * element_bytes;
      for (std::int64_t c = 0; c < width; ++c) {
        to[r * width + c] = decode(from + c * element_bytes);
      }
    }
    return;
  }
  for (std::int64_t c = 0; c < width; ++c) {
    const std::byte* from = view.data + column_of(c) * view.column_stride * element_bytes;
    for (std::int64_t r = begin; r < end; ++r) {
      to[r * width + c] = decode(from + row_of(r) * view.row_stride * element_bytes);
    }
  }
}

float flushed(float x, Dtype stored) {
  const bool subnormal = std::fabs(x) < static_cast<float>(std::ldexp(1.0, core::dtype_info(stored).emin));
  return subnormal ? std::copysign(0.0F, x) : x;
}

/// FP32 to TF32 or BF16 by bit manipulation: the two conversions that matter for speed.
float cut_to(float x, int dropped_bits, bool nearest) {
  const auto word = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t kept_mask = ~((1U << dropped_bits) - 1);
  const std::uint32_t half = nearest ? (1U << (dropped_bits - 1)) - 1 + ((word >> dropped_bits) & 1) : 0;
  const float cut = std::bit_cast<float>((word + half) & kept_mask);
  return std::isfinite(x) ? cut : x;
}

void convert(std::span<float> values, Dtype stored, const OperandConversion& conversion) {
  if (conversion.flushes_subnormals) {
    for (float& x : values) {
      x = flushed(x, stored);
    }
  }
  if (conversion.dtype != Dtype::fp32) {
    for (float& x : values) {
      x = converted(x, conversion.dtype, conversion.rounding);
    }
  }
}

}  // namespace

float converted(float x, Dtype dtype, Rounding rounding) noexcept {
  const bool simple = rounding == Rounding::nearest_even || rounding == Rounding::toward_zero;
  if (dtype == Dtype::tf32 && simple) {
    return cut_to(x, 13, rounding == Rounding::nearest_even);
  }
  if (dtype == Dtype::bf16 && simple) {
    return cut_to(x, 16, rounding == Rounding::nearest_even);
  }
  return static_cast<float>(core::round_to(static_cast<double>(x), dtype, core::Overflow::ieee, rounding));
}

void load_matrix(const MatrixView& view, std::span<const std::int64_t> row_order,
                 std::span<const std::int64_t> column_order, const OperandConversion& conversion, std::span<float> to) {
  const std::int64_t height = row_order.empty() ? view.rows : static_cast<std::int64_t>(row_order.size());
  const std::int64_t width = column_order.empty() ? view.columns : static_cast<std::int64_t>(column_order.size());
  if (to.size() != static_cast<std::size_t>(height * width)) {
    throw core::InternalError("load_matrix: the target has the wrong size");
  }
  const auto load = [&](std::int64_t begin, std::int64_t end, auto decode, std::int64_t bytes) {
    load_rows(view, row_order, column_order, begin, end, width, to.data(), bytes, decode);
  };
  const auto tasks = static_cast<std::size_t>((height + kRowsPerTask - 1) / kRowsPerTask);
  core::parallel_for(tasks, [&](std::size_t task) {
    const std::int64_t begin = static_cast<std::int64_t>(task) * kRowsPerTask;
    const std::int64_t end = std::min(begin + kRowsPerTask, height);
    switch (view.dtype) {
      case Dtype::fp32:
      case Dtype::tf32:
        load(begin, end, [](const std::byte* at) { return read<float>(at); }, 4);
        break;
      case Dtype::bf16:
        load(
            begin, end,
            [](const std::byte* at) {
              return std::bit_cast<float>(static_cast<std::uint32_t>(read<std::uint16_t>(at)) << 16);
            },
            2);
        break;
      case Dtype::fp16:
        load(begin, end, [](const std::byte* at) { return from_fp16(read<std::uint16_t>(at)); }, 2);
        break;
      case Dtype::fp8_e4m3:
      case Dtype::fp8_e5m2:
      case Dtype::fp4_e2m1: {
        const auto& table = byte_values(view.dtype);
        load(begin, end, [&table](const std::byte* at) { return table[read<std::uint8_t>(at)]; }, 1);
        break;
      }
      default:
        throw core::InternalError("load_matrix: no operand has this format");
    }
    convert(to.subspan(static_cast<std::size_t>(begin * width), static_cast<std::size_t>((end - begin) * width)),
            view.dtype, conversion);
  });
}

}  // namespace numcheck::model
