// The sums behind the fit of a normalisation's rows (norm_findings.hpp), compiled once per instruction set; all sets produce the
// same bits, but for the hash.
// Plain types only: nothing here may emit a symbol that another translation unit shares.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numcheck::reference {

/// One row with what was expected of it and what the device left.
struct RowToFit {
  std::size_t hidden;
  const double* x;
  const double* gamma;  ///< null, like beta: RMSNorm
  const double* beta;
  double centre;  ///< what is added to gamma
  double mean;    ///< that the spread is around
  const double* y;
  const float* deviation;
  const double* got;
};

/// How outputs are stored: numbers times `scale` in a format; FP32 if not narrow.
struct StoredAs {
  bool narrow;
  double scale;
  double min_normal, max_finite;
  double fraction_unit;  ///< 2^-m
};

struct RowSumsToFit {
  double aa = 0, ab = 0, bb = 0, ae = 0, be = 0;  ///< normal equations, see Normal
  double sum = 0, squares = 0;                    ///< of y
  double spread = 0;                              ///< mean of (x - mean)^2
  std::uint64_t alike = 0;                        ///< a hash of what y is stored as
  bool finite = false;                            ///< y and what was delivered are
  bool within = false;                            ///< the format holds every y; if not, nothing else means anything
};

struct NormFitKernels {
  RowSumsToFit (*sums)(const RowToFit& row, const StoredAs& stored);
};

namespace baseline {
[[nodiscard]] const NormFitKernels& norm_fit_kernels() noexcept;
}
namespace avx2 {
[[nodiscard]] const NormFitKernels& norm_fit_kernels() noexcept;
}
namespace avx512 {
[[nodiscard]] const NormFitKernels& norm_fit_kernels() noexcept;
}

/// Those of the active instruction set.
[[nodiscard]] const NormFitKernels& norm_fit_kernels() noexcept;

}  // namespace numcheck::reference
