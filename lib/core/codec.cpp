#include "core/codec.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/codec_code.hpp"
#include "core/codec_integer.hpp"
#include "core/codec_kernels.hpp"
#include "core/error.hpp"
#include "core/isa.hpp"

namespace numcheck::core {
namespace {

constexpr std::size_t kDtypes = static_cast<std::size_t>(Dtype::int32) + 1;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Code of the canonical NaN. 16- and 8-bit formats: what the cvt instruction produces (PTX ISA 9.0, section on cvt);
/// wider ones: IEEE 754's quiet NaN with an empty payload, as processors convert it.
std::int64_t canonical_nan(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp64:
    case Dtype::fp32:
      return 0x7FC00000;
    case Dtype::tf32:
      return 0x7FC00000 >> 13;
    case Dtype::bf16:
    case Dtype::fp16:
      return 0x7FFF;
    case Dtype::fp8_e4m3:
    case Dtype::fp8_e5m2:
      return 0x7F;
    case Dtype::e8m0:
      return 0xFF;
    case Dtype::fp4_e2m1:
      return 0x7;  // it has none: +6
    case Dtype::uint8:
    case Dtype::int32:
      return 0;  // see codec_integer.hpp
  }
  return 0;
}

CodecFormat make_format(const DtypeInfo& info, Overflow overflow) {
  CodecFormat format{};
  const bool has_sign = info.dtype != Dtype::e8m0;
  format.shift = 52 - info.fraction_bits;
  format.rebias = static_cast<std::uint64_t>(info.emin + 1022 + (has_sign ? 0 : 1)) << 52;
  format.min_normal = std::ldexp(1.0, info.emin);
  format.aligner = std::ldexp(1.0, 52 + info.emin - info.fraction_bits);
  format.half_spacing = info.min_subnormal / 2;
  format.floor = has_sign ? 0 : info.min_subnormal;
  format.max_code =
      static_cast<std::int64_t>((std::bit_cast<std::uint64_t>(info.max_finite) - format.rebias) >> format.shift);
  const bool clamps = overflow == Overflow::saturate || !info.has_nan;
  format.overflow_code = clamps ? format.max_code : format.max_code + 1;
  format.nan_code = canonical_nan(info.dtype);
  format.sign_code = has_sign ? std::int64_t{1} << (info.exponent_bits + info.fraction_bits) : 0;
  format.word_shift = info.dtype == Dtype::tf32 ? 13 : 0;
  return format;
}

const CodecFormat& format_of(Dtype dtype, Overflow overflow) noexcept {
  static const auto kFormats = [] {
    std::array<std::array<CodecFormat, 2>, kDtypes> formats{};
    for (const DtypeInfo& info : all_dtypes()) {
      for (const Overflow each : {Overflow::ieee, Overflow::saturate}) {
        formats[static_cast<std::size_t>(info.dtype)][static_cast<std::size_t>(each)] = make_format(info, each);
      }
    }
    return formats;
  }();
  return kFormats[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(overflow)];
}

double encode_fp64(double value, Overflow overflow) noexcept {
  if (std::isnan(value)) {
    return kNan;
  }
  const bool clamps = overflow == Overflow::saturate && std::isinf(value);
  return clamps ? std::copysign(std::numeric_limits<double>::max(), value) : value;
}

/// To so many bits after the first one, to nearest even. A carry out of the fraction is that of the exponent.
double round_fraction(double value, int fraction_bits) noexcept {
  const int cut = std::numeric_limits<double>::digits - 1 - fraction_bits;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value), unit = std::uint64_t{1} << cut;
  const std::uint64_t odd = bits >> cut & 1;
  return std::bit_cast<double>((bits + (unit / 2 - 1 + odd)) & ~(unit - 1));
}

double decode_code(std::uint64_t bits, const DtypeInfo& info) noexcept {
  const CodecFormat& format = format_of(info.dtype, Overflow::ieee);
  const auto sign_code = static_cast<std::uint64_t>(format.sign_code);
  const std::uint64_t width_mask = sign_code == 0 ? 0xFF : 2 * sign_code - 1;
  bits &= width_mask;
  const bool negative = (bits & sign_code) != 0;
  const std::uint64_t code = bits & ~sign_code;
  if (static_cast<std::int64_t>(code) > format.max_code) {
    const bool infinite = info.has_infinity && static_cast<std::int64_t>(code) == format.max_code + 1;
    const double infinity = negative ? -HUGE_VAL : HUGE_VAL;
    return infinite ? infinity : kNan;
  }
  const bool normal = (code >> info.fraction_bits) != 0 || sign_code == 0;
  const double magnitude = normal ? std::bit_cast<double>((code << format.shift) + format.rebias)
                                  : static_cast<double>(code) * info.min_subnormal;
  return negative ? -magnitude : magnitude;
}

const std::array<double, 256>& byte_values(Dtype dtype) noexcept {
  static const auto kTables = [] {
    std::array<std::array<double, 256>, kDtypes> tables{};
    for (const DtypeInfo& info : all_dtypes()) {
      for (std::size_t byte = 0; info.storage_bytes == 1 && !is_integer(info.dtype) && byte < 256; ++byte) {
        tables[static_cast<std::size_t>(info.dtype)][byte] = decode_code(byte, info);
      }
    }
    return tables;
  }();
  return kTables[static_cast<std::size_t>(dtype)];
}

const CodecKernels& kernels() noexcept {
  return NUMCHECK_ACTIVE_ISA(codec_kernels)();
}

void check_size(std::size_t elements, std::size_t bytes, const DtypeInfo& info) {
  if (bytes != elements * static_cast<std::size_t>(info.storage_bytes)) {
    throw InternalError("codec: " + std::to_string(elements) + " elements of " + std::string(info.name) +
                        " do not occupy " + std::to_string(bytes) + " bytes");
  }
}

}  // namespace

std::uint64_t encode(double value, Dtype dtype, Overflow overflow, Rounding rounding) noexcept {
  if (dtype == Dtype::fp64) {
    return std::bit_cast<std::uint64_t>(encode_fp64(value, overflow));
  }
  if (is_integer(dtype)) {
    return encode_integer(value, dtype, rounding);
  }
  const CodecFormat& format = format_of(dtype, overflow);
  const auto word = [&] {
    switch (rounding) {
      case Rounding::nearest_away:
        return word_of<CodecRounding::nearest_away>(value, format);
      case Rounding::toward_zero:
        return word_of<CodecRounding::toward_zero>(value, format);
      case Rounding::toward_positive:
        return word_of<CodecRounding::toward_positive>(value, format);
      case Rounding::nearest_even:
        break;
    }
    return word_of<CodecRounding::nearest_even>(value, format);
  };
  return static_cast<std::uint64_t>(word());
}

double decode(std::uint64_t bits, Dtype dtype) noexcept {
  if (dtype == Dtype::fp64) {
    return std::bit_cast<double>(bits);
  }
  if (is_integer(dtype)) {
    return decode_integer(bits, dtype);
  }
  return decode_code(bits, dtype_info(dtype == Dtype::tf32 ? Dtype::fp32 : dtype));
}

double round_to(double value, Dtype dtype, Overflow overflow, Rounding rounding) noexcept {
  if (rounding == Rounding::nearest_even && (is_fp8(dtype) || dtype == Dtype::fp16 || dtype == Dtype::bf16)) {
    const DtypeInfo& info = dtype_info(dtype);
    const double magnitude = std::fabs(value);
    const double least_normal = info.min_subnormal * static_cast<double>(std::uint64_t{1} << info.fraction_bits);
    if (magnitude >= least_normal && magnitude <= info.max_finite) {
      return round_fraction(value, info.fraction_bits);
    }
  }
  return decode(encode(value, dtype, overflow, rounding), dtype);
}

void encode(std::span<const double> values, Dtype dtype, std::span<std::byte> bytes, Overflow overflow,
            Rounding rounding) {
  const DtypeInfo& info = dtype_info(dtype);
  check_size(values.size(), bytes.size(), info);
  if (dtype == Dtype::fp64) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = encode_fp64(values[i], overflow);
      std::memcpy(bytes.data() + i * sizeof(double), &value, sizeof(double));
    }
    return;
  }
  if (is_integer(dtype)) {
    return encode_integers(values, dtype, bytes, rounding);
  }
  if (dtype == Dtype::fp32 && overflow == Overflow::ieee && rounding == Rounding::nearest_even) {
    kernels().encode_fp32(values.data(), values.size(), bytes.data());
    return;
  }
  kernels().encode(values.data(), values.size(), format_of(dtype, overflow), static_cast<CodecRounding>(rounding),
                   info.storage_bytes, bytes.data());
}

void decode(std::span<const std::byte> bytes, Dtype dtype, std::span<double> values) {
  const DtypeInfo& info = dtype_info(dtype);
  check_size(values.size(), bytes.size(), info);
  switch (dtype) {
    case Dtype::fp64:
      if (!values.empty()) {
        std::memcpy(values.data(), bytes.data(), bytes.size());
      }
      return;
    case Dtype::fp32:
    case Dtype::tf32:
      return kernels().decode_fp32(bytes.data(), values.size(), values.data());
    case Dtype::bf16:
      return kernels().decode_bf16(bytes.data(), values.size(), values.data());
    case Dtype::fp16:
      return kernels().decode_fp16(bytes.data(), values.size(), values.data());
    case Dtype::fp8_e4m3:
    case Dtype::fp8_e5m2:
    case Dtype::e8m0:
    case Dtype::fp4_e2m1:
      break;
    case Dtype::uint8:
    case Dtype::int32:
      return decode_integers(bytes, dtype, values);
  }
  const std::array<double, 256>& table = byte_values(dtype);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = table[std::to_integer<std::size_t>(bytes[i])];
  }
}

void narrow(std::span<const std::byte> fp32, Dtype dtype, std::span<std::byte> bytes, Overflow overflow) {
  const std::size_t count = fp32.size() / sizeof(float);
  check_size(count, bytes.size(), dtype_info(dtype));
  if (dtype == Dtype::bf16 && overflow == Overflow::ieee) {
    return kernels().fp32_to_bf16(fp32.data(), count, bytes.data());
  }
  thread_local std::vector<double> values;
  values.resize(std::max(values.size(), count));
  decode(fp32, Dtype::fp32, std::span(values).first(count));
  encode(std::span(values).first(count), dtype, bytes, overflow);
}

}  // namespace numcheck::core
