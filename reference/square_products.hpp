// Sums of weights times squares, which error models need to a few digits: in FP32 where nothing overflows or vanishes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/attention_kernels.hpp"
#include "reference/attention_problem.hpp"
#include "reference/packed_product.hpp"
#include "reference/product.hpp"

namespace numcheck::reference {

/// sum_j f_ij x_jc^2 and sum_j f_ij^2 x_jc^2 for the f of one tile after the other, f >= 0 in the first.
///
/// In FP32, with operands scaled by powers of two such that no term is below the least normal number nor a sum above the
/// largest, and increased by (n + 4) 2^-24 for n terms: the sums never fall short, and exceed the exact ones by
/// (n + 4) 2^-23 at most. If the magnitudes of f or x differ too much for that (by 2^80 or more), or f is not finite, in
/// double.
class SquareProducts {
 public:
  /// Which power of f.
  enum class Power { first, second };

  /// The x of a tile, which must be finite and must live on.
  void set_rows(const HeadRows& rows, std::int64_t count, std::int64_t channels);
  /// out += the product, `rows` x channels; `factor` is rows x count.
  void add(const TileFactor<double>& factor, std::int64_t rows, Power power, std::span<double> out);

 private:
  /// Numbers between 2^smallest and 2^(largest + 1), and zeros.
  struct Exponents {
    int largest = 0, smallest = 0;
    bool all_zero = false, usable = false;
    [[nodiscard]] int spread() const { return largest - smallest + 1; }
  };
  [[nodiscard]] static Exponents exponents_of(const TileFactor<double>& x, std::int64_t rows, std::int64_t columns);
  void multiply_narrow(const TileFactor<double>& factor, std::int64_t rows, Power power, const Exponents& of_factor,
                       std::span<double> out);
  void multiply_wide(const TileFactor<double>& factor, std::int64_t rows, Power power, std::span<double> out);

  HeadRows given_;
  std::int64_t count_ = 0, channels_ = 0;
  Exponents exponents_;
  std::vector<float> squares_, factor_, product_;
  PackedFactor<float> packed_squares_;
  std::vector<double> wide_squares_, wide_factor_;  ///< without those of narrow tiles
};

}  // namespace numcheck::reference
