// The row normalisations as operation graphs.
#pragma once

#include <memory>
#include <string>

#include "kernels/cudnn/graph.hpp"

namespace numcheck::kernels::cudnn {

/// Why this case of layernorm_fwd, layernorm_bwd, rmsnorm_fwd or rmsnorm_bwd is not passed to cuDNN, as a sentence;
/// empty if it may be.
[[nodiscard]] std::string norm_obstacle(const Call& call);

/// The graph of such a case, before Graph::finalize. One normalisation in phase `training`, all tensors in the formats
/// of their ports, epsilon an FP32 number passed by value.
///
/// cuDNN has no zero-centred gamma: a pointwise addition of one comes first, and its result is an intermediate tensor
/// in FP32 (gamma_add fp32) or in the weight's format (gamma_add weight).
/// Throws CudnnError.
[[nodiscard]] std::shared_ptr<Graph> norm_graph(const Library& library, const Call& call);

}  // namespace numcheck::kernels::cudnn
