// Shapes of softmax cases in the form that the launchers expect.
#pragma once

#include "kernels/cuda/softmax_kernel.hpp"
#include "op/softmax_mask.hpp"

namespace numcheck::kernels::cuda {

/// `Params`: op::SoftmaxFwdParams or op::SoftmaxBwdParams.
template <class Params>
[[nodiscard]] SoftmaxShape softmax_shape(const Params& p) {
  const op::SoftmaxMask mask = op::softmax_mask(p.mask);
  const Diagonal diagonal = mask == op::SoftmaxMask::causal                ? Diagonal::top_left
                            : mask == op::SoftmaxMask::causal_bottom_right ? Diagonal::bottom_right
                                                                           : Diagonal::none;
  return {p.batches * p.heads, p.sq, p.sk, diagonal};
}

}  // namespace numcheck::kernels::cuda
