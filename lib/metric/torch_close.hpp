// torch.testing.assert_close(got, y.to(got.dtype)) with its default tolerances, as torch.isclose computes it on CUDA
// tensors:
//
//   got == y, or |got - y| finite and |got - y| <= atol + |rtol y|
//
// Each operation is in FP32, with rtol and atol in FP32, and its result is rounded to the tensor's format; so is y, via
// FP32. NaN is never close. Formats without tolerances (FP8, integers) require got == y.
// Sources: testing/_comparison.py and ATen/native/TensorCompare.cpp; checked by tests/gpu/test_opinions.py. On CPU
// tensors atol is rounded to the format as well, which moves one limit in 50 to 100 by an ulp.
//
// Include only from sources compiled per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "metric/simd.hpp"

namespace numcheck::metric::NUMCHECK_ISA {
namespace {

/// Rounding of FP32 numbers to a format: none.
struct StoredSingle {
  explicit StoredSingle(const FormatConstants& /*format*/) {}
  [[nodiscard]] Vf operator()(Vf x) const { return x; }
};

/// To BF16, whose exponents leave no room for a shifter.
struct StoredBfloat16 {
  explicit StoredBfloat16(const FormatConstants& /*format*/) {}
  [[nodiscard]] Vf operator()(Vf x) const {
    const Wu bits = Wu(x);
    const Vf rounded = Vf((bits + 0x7fff + (bits >> 16 & 1)) & (Wu{} + 0xffff'0000U));
    return x == x ? rounded : x;
  }
};

/// To FP16 and FP8.
class StoredNarrow {
 public:
  explicit StoredNarrow(const FormatConstants& format)
      : least_(splat_float(static_cast<float>(format.min_normal))),
        most_(splat_float(static_cast<float>(format.max_finite))),
        shift_(static_cast<float>(format.fraction_scale) * 0x1.8p23F) {}
  [[nodiscard]] Vf operator()(Vf x) const {
    const Vf power = larger(Vf(Wu(x) & (Wu{} + 0x7f80'0000U)), least_);
    const Vf shifter = power * shift_;
    const Vf rounded = (x + shifter) - shifter;
    return magnitude_of(rounded) <= most_ ? rounded : x * __builtin_inff();
  }

 private:
  Vf least_, most_;
  float shift_;
};

/// |got - y| and what it may be; infinite where no tolerance forgives.
struct TorchPair {
  Vf error, limit;
};

template <class Stored>
class Torch {
 public:
  Torch(const FormatConstants& format, const ModelConstants& model)
      : stored_(format),
        rtol_(static_cast<float>(model.torch_rtol)),
        atol_(static_cast<float>(model.torch_atol)),
        exact_(rtol_ == 0 && atol_ == 0) {}

  /// `y` rounded to FP32.
  [[nodiscard]] TorchPair compare(Vf got, Vf single_y) const {
    const Vf infinity = splat_float(__builtin_inff());
    const Vf one = splat_float(1);
    const Vf y = stored_(single_y);
    const Wi different = ~Wi(got == y);
    if (exact_) {
      return {Vf(Wi(infinity) & different), one};
    }
    const Vf error = stored_(magnitude_of(got - y));
    const Vf limit = stored_(stored_(rtol_ * magnitude_of(y)) + atol_);
    const Wi finite = error < infinity;
    return {Vf(Wi(finite ? error : infinity) & different), finite ? limit : one};
  }

 private:
  Stored stored_;
  float rtol_, atol_;
  bool exact_;
};

/// Mismatches and the largest |got - y| / limit of at most kBlock elements.
template <class Stored>
void add_torch(const double* got, const double* expected, std::size_t size, const Torch<Stored>& torch,
               PredicateSums& sums) {
  alignas(64) float single_got[kBlock];
  alignas(64) float single_y[kBlock];
  for (std::size_t i = 0; i < size; i += kWidth) {
    store_narrow(single_got + i, load(got + i));
    store_narrow(single_y + i, load(expected + i));
  }
  constexpr double kMaxRatio = 1e30;
  const double reached = sums.max_excess * (1 - 0x1p-20);
  const bool unbounded = sums.max_excess == __builtin_inf();
  const auto floor = unbounded ? __builtin_inff() : static_cast<float>(reached < kMaxRatio ? reached : kMaxRatio);
  Wi mismatches[kGroups]{};
  Wi raise{};
  for (std::size_t i = 0; i < size; i += kLanes) {
    for (int g = 0; g < kGroups; ++g) {
      const std::size_t at = i + static_cast<std::size_t>(g * kFloats);
      const TorchPair pair = torch.compare(load(single_got + at), load(single_y + at));
      mismatches[g] -= pair.error > pair.limit;
      raise |= pair.error > floor * pair.limit;
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    sums.mismatches[lane] += mismatches[lane / kFloats][lane % kFloats];
  }
  for (std::size_t i = 0; any(raise) && i < size; i += kFloats) {
    const TorchPair pair = torch.compare(load(single_got + i), load(single_y + i));
    for (int lane = 0; lane < kFloats; ++lane) {
      const double excess = static_cast<double>(pair.error[lane]) / static_cast<double>(pair.limit[lane]);
      sums.max_excess = excess > sums.max_excess ? excess : sums.max_excess;
    }
  }
}

}  // namespace
}  // namespace numcheck::metric::NUMCHECK_ISA
