// Kernels that take subnormal numbers for zero.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

/// What an op's formula yields where every operand and the result of every multiplication is flushed, in each order of its
/// multiplications that a kernel may have.
class FlushedResults {
 public:
  FlushedResults() = default;
  FlushedResults(const FlushedResults&) = delete;
  FlushedResults& operator=(const FlushedResults&) = delete;
  virtual ~FlushedResults() = default;

  /// Of that element; valid until the next call. Empty: not known.
  [[nodiscard]] virtual std::span<const double> of(std::string_view port, std::size_t at) = 0;
};

/// Libraries have been seen to flush subnormal FP32 numbers, of inputs and results, to zero. A result is wrong if it differs from
/// what is expected by more than its bound and its format's rounding, or is finite where it is not or the reverse. It is explained
/// if it is what the formula yields on inputs without their subnormal numbers, or as `flushed` has it, or if flushing anywhere in
/// the formula, evaluated on tolerance::Flushable, costs that much. Adds a finding, of numbers and of NaN and infinities each, for
/// every output of which 90 % of the wrong elements are explained; of numbers only if those that no flush touches are right, each
/// and together.
/// `values`: the op's; `losses`: with what flushing may cost in place of magnitudes; `flushed` may be null.
void explain_flushes(const op::FindingRequest& request, op::Values (*values)(const op::ReferenceRequest&),
                     op::Values (*losses)(const op::ReferenceRequest&), FlushedResults* flushed,
                     std::vector<op::Finding>& findings);

}  // namespace numcheck::reference
