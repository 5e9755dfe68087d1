// Errors of products beside addends, which the products' accumulators never see.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/error_model.hpp"
#include "op/gemm.hpp"
#include "op/reference.hpp"

namespace numcheck::tolerance {

/// beta C + bias of each output, by its index; null: there is none.
struct Addends {
  const double* c = nullptr;
  const double* bias = nullptr;
  double c_factor = 1, bias_factor = 1;
  std::int64_t columns = 1;

  struct Sum {
    double value = 0, magnitude = 0;
  };
  [[nodiscard]] Sum at(std::int64_t index) const noexcept;
};

[[nodiscard]] Addends addends_of(const op::GemmParams& params, std::span<const op::Operand> operands);

/// z = P + addends of each output that is compared.
struct Sums {
  std::span<const float> narrow;  ///< if wide is empty
  std::span<const double> wide;
  std::span<const std::int64_t> indices;  ///< of the outputs; empty: all, in order
};

/// Whether the model knows what its accumulator's own part is.
[[nodiscard]] bool separates_addends(const model::ErrorModel& model) noexcept;

/// A and sqrt(S2) become such that the model without its parts for y (see without_addends) has
///
///   B = g (m A_P + r A) + gelu's own                  A_P = A less the addends' magnitudes, P = z less the addends
///   V = var_second S2 + h (v P^2 + c (P^2 / A_P)^2) + var_magnitude A^2
///
/// with m, v, c the accumulator's own coefficients, r the epilogue's, and g and h what gelu makes larger at most. Where sums may
/// overflow or are not finite, A stays and stands for P, too. Precondition: separates_addends(model).
void separate_addends(const model::ErrorModel& model, const Addends& addends, const Sums& sums,
                      std::span<float> magnitude, std::span<float> deviation);

/// The model with which elements are judged after that. Precondition: the same.
[[nodiscard]] model::ErrorModel without_addends(model::ErrorModel model);

}  // namespace numcheck::tolerance
