// Parameters of the normalisations in the form that their launchers expect.
#pragma once

#include "kernels/cuda/norm_kernel.hpp"
#include "op/norm_params.hpp"

namespace numcheck::kernels::cuda {

[[nodiscard]] inline GammaRule gamma_rule_of(const op::NormParams& p) {
  if (!p.zero_centered_gamma) {
    return GammaRule::plain;
  }
  return p.gamma_add == "weight" ? GammaRule::centred_in_weight : GammaRule::centred;
}

}  // namespace numcheck::kernels::cuda
