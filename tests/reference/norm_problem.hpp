// The four row normalisations, for the tests of their references.
#pragma once

#include <cmath>
#include <cstdint>

#include "op/layernorm_bwd.hpp"
#include "op/layernorm_fwd.hpp"
#include "op/rmsnorm_bwd.hpp"
#include "op/rmsnorm_fwd.hpp"
#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference::testing {

/// The parameters P of a matrix.
template <class P>
P rows_of(std::int64_t rows, std::int64_t hidden, double epsilon = 1e-5) {
  P p;
  p.rows = rows;
  p.hidden = hidden;
  p.epsilon = epsilon;
  return p;
}

inline Problem problem_of(const op::LayernormFwdParams& p, std::string_view mode = "fp32") {
  return {&op::layernorm_fwd(), layernorm_fwd_reference(), op::to_params(p), mode};
}
inline Problem problem_of(const op::LayernormBwdParams& p, std::string_view mode = "fp32") {
  return {&op::layernorm_bwd(), layernorm_bwd_reference(), op::to_params(p), mode};
}
inline Problem problem_of(const op::RmsnormFwdParams& p, std::string_view mode = "fp32") {
  return {&op::rmsnorm_fwd(), rmsnorm_fwd_reference(), op::to_params(p), mode};
}
inline Problem problem_of(const op::RmsnormBwdParams& p, std::string_view mode = "fp32") {
  return {&op::rmsnorm_bwd(), rmsnorm_bwd_reference(), op::to_params(p), mode};
}

/// True if the reference asks nothing of the element: FP32 sums may overflow on the way to it in one order and not in
/// another. Its value is finite then, or a NaN or an infinity would be asked for.
inline bool undetermined(const op::OutputValues& output, std::size_t i) {
  return std::isfinite(output.value[i]) && !(output.magnitude[i] < 1e38F);
}

}  // namespace numcheck::reference::testing
