// Loops of the attention references over scores, compiled once per instruction set; all sets produce the same bits.
// Plain types only: nothing here may emit a symbol that another translation unit shares.
#pragma once

#include <cstddef>

namespace numcheck::reference {

/// Sums over some keys of a query, with e the weight, t and s the score before and after cap and bias, and
/// x = max(|t|, |s|) - s: what tolerance::AttentionFact needs. Scores without weight count as 0, even infinite ones.
struct WeightSums {
  double keys = 0;     ///< sum e |k|^2
  double excess = 0;   ///< sum e x
  double excess2 = 0;  ///< sum e x^2
  double squares = 0;  ///< sum e t^2
  double score = 0;    ///< sum e s
  double score2 = 0;   ///< sum e s^2
  double reach = 0;    ///< max of |t| and |s|, of finite s
};

/// The same for what declared roundings change, with s' the score before a post_scale bias or alibi, and
/// y = max(|t|, |s|), |t| at most the cap.
struct RoundingSums {
  double inner2 = 0;    ///< sum e s'^2
  double power2 = 0;    ///< sum e^2
  double rounded1 = 0;  ///< sum e y^2
  double rounded2 = 0;  ///< sum e^2 y^2
  double rounded3 = 0;  ///< sum e^3 y^2
};

/// One query and some keys; all pointers are to `count` numbers.
struct WeighedKeys {
  std::size_t count;
  const double* weights;
  const double* scores;
  const double* inner;        ///< s'
  const double* products;     ///< t = factor * product, at most `cap` in magnitude unless that is 0
  const double* key_squares;  ///< |k|^2
  double factor, cap;
};

/// Magnitudes of some numbers.
struct Magnitudes {
  double largest;   ///< 0 if there are none
  double smallest;  ///< of those that are not 0; infinity if there are none
  bool finite;      ///< all are
};

struct ScoreRange {
  double largest;  ///< -infinity if there is none; NaN is passed over
  double least;    ///< infinity if there is none; -infinity if there is a NaN
};

struct AttentionKernels {
  /// x *= factor
  ScoreRange (*scale)(double* x, std::size_t count, double factor);
  /// Replaces x, whose range is that, by exp(x - shift), see `exponential`, and returns the sum.
  double (*exponentials)(double* x, std::size_t count, double shift, const ScoreRange& range);
  WeightSums (*sums)(const WeighedKeys& keys);
  RoundingSums (*rounding_sums)(const WeighedKeys& keys);
  Magnitudes (*magnitudes)(const double* x, std::size_t count);
  /// out = scale x, or the square of that, rounded once.
  void (*narrow)(const double* x, std::size_t count, double scale, float* out);
  void (*narrow_squares)(const double* x, std::size_t count, double scale, float* out);
  /// out += scale x
  void (*add)(const float* x, std::size_t count, double scale, double* out);
  /// gradients = (gradients - dot) weights
  void (*differentiate)(const double* weights, std::size_t count, double dot, double* gradients);
};

namespace baseline {
[[nodiscard]] const AttentionKernels& attention_kernels() noexcept;
}
namespace avx2 {
[[nodiscard]] const AttentionKernels& attention_kernels() noexcept;
}
namespace avx512 {
[[nodiscard]] const AttentionKernels& attention_kernels() noexcept;
}

/// Those of the active instruction set.
[[nodiscard]] const AttentionKernels& attention_kernels() noexcept;

}  // namespace numcheck::reference
