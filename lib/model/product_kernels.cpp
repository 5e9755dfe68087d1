// Compiled once per instruction set; see product_kernels.hpp.
//
// The fused step in doubles. A product of two operands of at most 12 significant bits is exact in double, and so are
// its multiples by powers of two; 2^(F - e_max) maps the alignment grid to the integers, where truncation is `trunc`.
// Each truncated term is below 2^(F + 2), so the sum of 33 of them is exact, too. The final rounding works on the bits.
// Exponents of products are kept separately as integers, because a subnormal operand's is not that of its value.
// Zero products need no floor of their own: e_zero matters only if the accumulator is zero, which then supplies it.
// Infinities and NaN need no care: they have no exponent here, and IEEE's rules for sums are those of the hardware.
#include "model/product_kernels.hpp"

#include <cstdint>

namespace numcheck::model::NUMCHECK_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
constexpr int kDoubles = kBytes / 8;
constexpr int kWords = kBytes / 4;
constexpr int kParts = kFusedColumns / kDoubles;
constexpr int kIntegerParts = kFusedColumns / kWords;
constexpr int kFmaParts = kFmaColumns / kWords;
constexpr int kFmaRows = 2;  ///< rows at once: enough independent sums to hide the latency

typedef double Vd __attribute__((vector_size(kBytes)));
typedef std::int64_t Vi __attribute__((vector_size(kBytes)));
typedef std::uint64_t Vu __attribute__((vector_size(kBytes)));
typedef float Vf __attribute__((vector_size(kBytes)));
typedef std::int32_t Vw __attribute__((vector_size(kBytes)));
typedef double LooseVd __attribute__((vector_size(kBytes), aligned(8), may_alias));
typedef float LooseVf __attribute__((vector_size(kBytes), aligned(4), may_alias));
typedef std::int32_t LooseVw __attribute__((vector_size(kBytes), aligned(4), may_alias));

inline Vd load(const double* p) {
  return *reinterpret_cast<const LooseVd*>(p);
}
inline Vf load(const float* p) {
  return *reinterpret_cast<const LooseVf*>(p);
}
inline Vw load(const std::int32_t* p) {
  return *reinterpret_cast<const LooseVw*>(p);
}
inline Vd splat(double x) {
  return x - Vd{};
}
inline Vf splat(float x) {
  return x - Vf{};
}
inline Vu bits_of(std::uint64_t x) {
  return x - Vu{};
}
inline Vd magnitude_of(Vd x) {
  return Vd(Vu(x) & bits_of(0x7FFF'FFFF'FFFF'FFFFULL));
}
inline Vd truncated(Vd x) {
  Vd r = x;
  for (int i = 0; i < kDoubles; ++i) {
    r[i] = __builtin_trunc(x[i]);
  }
  return r;
}
inline Vf multiply_add(Vf a, Vf b, Vf c) {
  Vf r = c;
  for (int i = 0; i < kWords; ++i) {
    r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  }
  return r;
}

/// RZ to the bits in `kept`, in steps of `lowest` below 2^-126; infinite from 2^128 on.
inline Vd truncated_to(Vd x, std::uint64_t kept, double lowest) {
  const Vd size = magnitude_of(x);
  const Vd normal = Vd(Vu(x) & bits_of(kept));
  const Vd subnormal = truncated(x * (1 / lowest)) * lowest;
  const Vd overflow = Vd((Vu(x) & bits_of(0x8000'0000'0000'0000ULL)) | bits_of(0x7FF0'0000'0000'0000ULL));
  const Vd r = size < 0x1p-126 ? subnormal : normal;
  return size >= 0x1p128 ? overflow : r;
}

/// Nearest even to FP16.
inline Vd nearest_fp16(Vd x) {
  const Vd size = magnitude_of(x);
  const Vu bits = Vu(size);
  const Vd normal = Vd((bits + ((bits >> 42) & 1) + 0x1FF'FFFF'FFFFULL) & bits_of(0xFFFF'FC00'0000'0000ULL));
  const Vd subnormal = (size + 0x1p28) - 0x1p28;  // the spacing of doubles at 2^28 is 2^-24
  Vd r = size < 0x1p-14 ? subnormal : normal;
  r = r > 65504.0 ? splat(__builtin_inf()) : r;
  return Vd(Vu(r) | (Vu(x) & bits_of(0x8000'0000'0000'0000ULL)));
}

inline Vd rounded(Vd x, KernelRounding rounding) {
  // Adding zero turns -0 into the +0 of the hardware.
  switch (rounding) {
    case KernelRounding::rz_fp32:
      return truncated_to(x, 0xFFFF'FFFF'E000'0000ULL, 0x1p-149) + 0.0;
    case KernelRounding::rz_e8m13:
      return truncated_to(x, 0xFFFF'FF80'0000'0000ULL, 0x1p-139) + 0.0;
    case KernelRounding::rne_fp16:
      break;
  }
  return nearest_fp16(x) + 0.0;
}

/// The running results of a panel.
struct State {
  Vd part[kParts];
};

/// The largest exponent of the terms so far, per column.
struct Exponents {
  alignas(kBytes) std::int32_t lane[kFusedColumns];
};

inline void accumulator_exponents(const State& c, const StepParameters& step, Exponents& e) {
  for (int p = 0; p < kParts; ++p) {
    const Vi bits = Vi(c.part[p]) & 0x7FFF'FFFF'FFFF'FFFFLL;
    Vi exponent = (bits >> 52) - 1023;
    exponent = exponent < step.accumulator_emin ? Vi{} + step.accumulator_emin : exponent;
    exponent = bits == 0 ? Vi{} + step.e_zero : exponent;
    for (int i = 0; i < kDoubles; ++i) {
      e.lane[p * kDoubles + i] = static_cast<std::int32_t>(exponent[i]);
    }
  }
}

inline void largest_exponents(const FusedRun& run, std::int64_t begin, std::int64_t end, Exponents& e) {
  Vw largest[kIntegerParts];
  for (int p = 0; p < kIntegerParts; ++p) {
    largest[p] = load(e.lane + p * kWords);
  }
  for (std::int64_t t = begin; t < end; ++t) {
    const std::int32_t a = run.a_exponent[t];
    for (int p = 0; p < kIntegerParts; ++p) {
      const Vw product = load(run.b_exponent + t * kFusedColumns + p * kWords) + a;
      largest[p] = product > largest[p] ? product : largest[p];
    }
  }
  for (int p = 0; p < kIntegerParts; ++p) {
    *reinterpret_cast<LooseVw*>(e.lane + p * kWords) = largest[p];
  }
}

/// 2^(shift + exponent) for the lanes of one part.
inline Vd power_of_two(const Exponents& e, int part, int sign, int shift) {
  Vi field{};
  for (int i = 0; i < kDoubles; ++i) {
    field[i] = e.lane[part * kDoubles + i];
  }
  return Vd(((sign < 0 ? -field : field) + (1023 + shift)) << 52);
}

void fused_step(const StepParameters& step, const FusedRun& run, std::int64_t begin, std::int64_t end, State& c) {
  Exponents e;
  accumulator_exponents(c, step, e);
  largest_exponents(run, begin, end, e);
  Vd scale[kParts];
  Vd sum[kParts];
  for (int p = 0; p < kParts; ++p) {
    scale[p] = power_of_two(e, p, -1, step.F);
    sum[p] = truncated(c.part[p] * scale[p]);
  }
  for (std::int64_t t = begin; t < end; ++t) {
    const Vd a = splat(run.a[t]);
    for (int p = 0; p < kParts; ++p) {
      sum[p] += truncated(a * load(run.b + t * kFusedColumns + p * kDoubles) * scale[p]);
    }
  }
  for (int p = 0; p < kParts; ++p) {
    c.part[p] = rounded(sum[p] * power_of_two(e, p, 1, -step.F), step.rounding);
  }
}

void fused(const StepParameters& step, const FusedRun& run) {
  State c;
  for (int p = 0; p < kParts; ++p) {
    for (int i = 0; i < kDoubles; ++i) {
      c.part[p][i] = static_cast<double>(run.c[p * kDoubles + i]);
    }
  }
  for (std::int64_t begin = 0; begin < run.count; begin += step.L) {
    const std::int64_t end = begin + step.L < run.count ? begin + step.L : run.count;
    fused_step(step, run, begin, end, c);
  }
  for (int p = 0; p < kParts; ++p) {
    for (int i = 0; i < kDoubles; ++i) {
      run.c[p * kDoubles + i] = static_cast<float>(c.part[p][i]);
    }
  }
}

template <int kRows>
void fma_rows(const FmaRun& run, std::int64_t row) {
  Vf sum[kRows][kFmaParts];
  float* c = run.c + row * run.c_stride;
  const float* a = run.a + row * run.a_stride;
  for (int r = 0; r < kRows; ++r) {
    for (int p = 0; p < kFmaParts; ++p) {
      sum[r][p] = load(c + r * run.c_stride + p * kWords);
    }
  }
  for (std::int64_t t = 0; t < run.count; ++t) {
    for (int p = 0; p < kFmaParts; ++p) {
      const Vf b = load(run.b + t * kFmaColumns + p * kWords);
      for (int r = 0; r < kRows; ++r) {
        sum[r][p] = multiply_add(splat(a[r * run.a_stride + t]), b, sum[r][p]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int p = 0; p < kFmaParts; ++p) {
      *reinterpret_cast<LooseVf*>(c + r * run.c_stride + p * kWords) = sum[r][p];
    }
  }
}

void fma(const FmaRun& run) {
  std::int64_t row = 0;
  for (; row + kFmaRows <= run.rows; row += kFmaRows) {
    fma_rows<kFmaRows>(run, row);
  }
  for (; row < run.rows; ++row) {
    fma_rows<1>(run, row);
  }
}

void pack(const PackRun& run) {
  for (std::int64_t i = 0; i < run.count; ++i) {
    const float x = run.from[i];
    const auto field = static_cast<std::int32_t>((__builtin_bit_cast(std::uint32_t, x) >> 23) & 0xFF);
    std::int32_t exponent = field - 127;
    exponent = exponent < run.emin ? run.emin : exponent;
    exponent = x == 0.0F || field == 0xFF ? kNoExponent : exponent;
    run.value[i] = static_cast<double>(x);
    run.exponent[i] = exponent;
  }
}

}  // namespace

const ProductKernels& product_kernels() noexcept {
  static constexpr ProductKernels kKernels{&fused, &fma, &pack};
  return kKernels;
}

}  // namespace numcheck::model::NUMCHECK_ISA
