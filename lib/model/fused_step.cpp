#include "model/fused_step.hpp"

#include <algorithm>
#include <bit>

namespace numcheck::model {
namespace {

using core::Dtype;

constexpr std::uint32_t kNanFp32 = 0x7FFFFFFF;
constexpr std::uint32_t kNanFp16 = 0x7FFF;

/// What the special operands of a step add up to.
struct Specials {
  bool nan = false;
  bool positive = false;
  bool negative = false;

  void add(Operand::Kind kind, bool is_negative) {
    nan = nan || kind == Operand::Kind::nan;
    positive = positive || (kind == Operand::Kind::infinite && !is_negative);
    negative = negative || (kind == Operand::Kind::infinite && is_negative);
  }
  [[nodiscard]] bool any() const { return nan || positive || negative; }
};

/// An infinite operand carries its sign in the significand (+-1).
Operand::Kind product_kind(const Operand& a, const Operand& b) {
  if (a.kind == Operand::Kind::nan || b.kind == Operand::Kind::nan) {
    return Operand::Kind::nan;
  }
  if (a.kind == Operand::Kind::finite && b.kind == Operand::Kind::finite) {
    return Operand::Kind::finite;
  }
  return a.significand == 0 || b.significand == 0 ? Operand::Kind::nan : Operand::Kind::infinite;
}

std::uint32_t special_word(const Specials& s, bool fp16) {
  if (s.nan || (s.positive && s.negative)) {
    return fp16 ? kNanFp16 : kNanFp32;
  }
  if (fp16) {
    return s.negative ? 0xFC00U : 0x7C00U;
  }
  return s.negative ? 0xFF800000U : 0x7F800000U;
}

/// |significand| 2^(exponent - fraction) in units of 2^unit, truncated; the sign is restored.
std::int64_t truncated(std::int64_t significand, int exponent, int fraction, int unit) {
  if (significand == 0) {
    return 0;  // its exponent is meaningless here
  }
  const std::int64_t magnitude = significand < 0 ? -significand : significand;
  const int shift = unit - (exponent - fraction);
  const std::int64_t kept = shift <= 0 ? magnitude << -shift : (shift < 63 ? magnitude >> shift : 0);
  return significand < 0 ? -kept : kept;
}

/// |sum| 2^unit truncated to `bits` significant bits (lsb at least 2^lowest), as an FP32 word without sign.
std::uint32_t truncate_to_fp32(std::uint64_t magnitude, int unit, int bits, int lowest) {
  const int top = static_cast<int>(std::bit_width(magnitude)) - 1 + unit;
  if (top >= 128) {
    return 0x7F800000U;
  }
  const int lsb = std::max(top - (bits - 1), lowest);
  const int drop = lsb - unit;
  // FP32 word of a number whose last significant bit is at `fp32_lsb`.
  const int fp32_lsb = std::max(top - 23, -149);
  std::uint64_t kept = drop <= 0 ? magnitude : (drop < 64 ? magnitude >> drop << drop : 0);
  const int shift = fp32_lsb - unit;
  kept = shift <= 0 ? kept << -shift : (shift < 64 ? kept >> shift : 0);
  // A subnormal word is its significand; a normal one adds the exponent field to the hidden bit.
  const auto field = static_cast<std::uint32_t>(top >= -126 ? top + 126 : 0);
  return static_cast<std::uint32_t>(kept) + (field << 23);
}

std::uint32_t round_to_fp16(std::uint64_t magnitude, int unit) {
  const int top = static_cast<int>(std::bit_width(magnitude)) - 1 + unit;
  if (top >= 16) {
    return 0x7C00U;
  }
  const int lsb = std::max(top - 10, -24);
  const int drop = lsb - unit;
  std::uint64_t kept = 0;
  if (drop <= 0) {
    kept = magnitude << -drop;
  } else if (drop < 64) {
    kept = magnitude >> drop;
    const std::uint64_t rest = magnitude - (kept << drop);
    const std::uint64_t half = std::uint64_t{1} << (drop - 1);
    kept += (rest > half || (rest == half && (kept & 1) != 0)) ? 1 : 0;
  }
  const auto field = static_cast<std::uint32_t>(top >= -14 ? top + 14 : 0);
  // A carry out of the significand moves into the exponent, and from the largest one to infinity.
  return static_cast<std::uint32_t>(kept) + (field << 10);
}

std::uint32_t rounded_word(Rounding rho, std::int64_t sum, int unit) {
  if (sum == 0) {
    return 0;
  }
  const bool negative = sum < 0;
  const auto magnitude = static_cast<std::uint64_t>(negative ? -sum : sum);
  if (rho == Rounding::rne_fp16) {
    const std::uint32_t word = round_to_fp16(magnitude, unit);
    return word == 0 ? 0 : word | (negative ? 0x8000U : 0);
  }
  const bool full = rho == Rounding::rz_fp32;
  const std::uint32_t word = truncate_to_fp32(magnitude, unit, full ? 24 : 14, full ? -149 : -139);
  return word == 0 ? 0 : word | (negative ? 0x80000000U : 0);
}

}  // namespace

Operand decode_operand(std::uint32_t bits, Dtype dtype) noexcept {
  const core::DtypeInfo& info = core::dtype_info(dtype);
  int fraction_bits = info.fraction_bits;
  if (dtype == Dtype::tf32) {
    bits >>= 13;
  }
  const std::uint32_t fraction = bits & ((1U << fraction_bits) - 1);
  const std::uint32_t field = (bits >> fraction_bits) & ((1U << info.exponent_bits) - 1);
  const bool negative = ((bits >> (fraction_bits + info.exponent_bits)) & 1) != 0;
  const std::uint32_t all_ones = (1U << info.exponent_bits) - 1;
  Operand o;
  if (info.has_infinity && field == all_ones) {
    o.kind = fraction == 0 ? Operand::Kind::infinite : Operand::Kind::nan;
    o.significand = negative ? -1 : 1;
    return o;
  }
  if (info.has_nan && !info.has_infinity && field == all_ones && fraction == (1U << fraction_bits) - 1) {
    o.kind = Operand::Kind::nan;  // E4M3: the one pattern with all bits set
    return o;
  }
  const std::uint32_t significand = field == 0 ? fraction : fraction | (1U << fraction_bits);
  o.significand = negative ? -static_cast<std::int32_t>(significand) : static_cast<std::int32_t>(significand);
  o.exponent = static_cast<std::int16_t>(field == 0 ? info.emin : info.emin + static_cast<int>(field) - 1);
  return o;
}

Dtype accumulator_dtype(Rounding rho) noexcept {
  return rho == Rounding::rne_fp16 ? Dtype::fp16 : Dtype::fp32;
}

std::uint32_t fused_step(const StepModel& model, std::span<const Operand> a, Dtype a_dtype, std::span<const Operand> b,
                         Dtype b_dtype, std::uint32_t c) noexcept {
  const Dtype c_dtype = accumulator_dtype(model.rho);
  const Operand addend = decode_operand(c, c_dtype);
  Specials specials;
  specials.add(addend.kind, addend.significand < 0);
  // Absent products are zeros, whose exponent never exceeds e_zero; a zero accumulator sets that floor, too.
  int e_max = addend.significand == 0 ? model.e_zero : addend.exponent;
  for (std::size_t i = 0; i < a.size(); ++i) {
    specials.add(product_kind(a[i], b[i]), (a[i].significand < 0) != (b[i].significand < 0));
    const bool zero = a[i].significand == 0 || b[i].significand == 0;
    e_max = std::max(e_max, zero ? model.e_zero : a[i].exponent + b[i].exponent);
  }
  if (specials.any()) {
    return special_word(specials, c_dtype == Dtype::fp16);
  }
  const int unit = e_max - model.F;
  const int fraction = core::dtype_info(a_dtype).fraction_bits + core::dtype_info(b_dtype).fraction_bits;
  std::int64_t sum = truncated(addend.significand, addend.exponent, core::dtype_info(c_dtype).fraction_bits, unit);
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += truncated(std::int64_t{a[i].significand} * b[i].significand, a[i].exponent + b[i].exponent, fraction, unit);
  }
  return rounded_word(model.rho, sum, unit);
}

}  // namespace numcheck::model
