// The algorithms of cuBLASLt that TransformerEngine's products ran with. It chooses them itself, and has no function that
// tells which; whether slices of k are added in 16 bits is theirs to say.
#pragma once

#include <vector>

#include "kernels/contract/backend.hpp"
#include "kernels/cublas_support/algorithm_text.hpp"

namespace numcheck::kernels::transformer_engine {

/// While it lives, notes the algorithm of every cublasLtMatmul that a shared library calls from this thread. The program
/// exports a function of that name, which the loader finds before cuBLASLt's; it passes every call on, as it is, to the one
/// that the library would have called without it. In a program that does not export it, nothing is noted.
class MatmulCalls {
 public:
  using Algorithms = std::vector<cublas_support::AlgorithmText>;

  /// Notes them in `algorithms`, which is cleared.
  explicit MatmulCalls(Algorithms& algorithms);
  ~MatmulCalls();
  MatmulCalls(const MatmulCalls&) = delete;
  MatmulCalls& operator=(const MatmulCalls&) = delete;

 private:
  Algorithms* outer_;  ///< of an object that lived before
};

/// What the calls of one launch show: the details of an only product's algorithm, or which products had which. The slices
/// are the most of any.
[[nodiscard]] Shown shown_by(const MatmulCalls::Algorithms& algorithms);

/// The same of groups, one call for each that is `multiplied`, in their order: they have their own slices. Nothing is known of these
/// if there were other calls, as of a kernel for all groups.
[[nodiscard]] Shown shown_by(const MatmulCalls::Algorithms& algorithms, const std::vector<bool>& multiplied);

}  // namespace numcheck::kernels::transformer_engine
