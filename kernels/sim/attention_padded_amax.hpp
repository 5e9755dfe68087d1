// Faults of simulated FP8 attention: queries that are padding, or beyond the last one, count in the amax.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/sim/attention.hpp"

namespace numcheck::kernels::sim {

/// What padding has that is largest.
struct PaddedAmax {
  float weight = 0;
  float output = 0;
};

/// Of one head, with the fault padding_in_amax: its queries in groups of 64 that are all padding, and zeros
/// that fill the last tile of 128 queries, over the whole blocks of 128
/// keys before the sequence's last block. Zeros without the fault.
[[nodiscard]] PaddedAmax padded_amax(const AttentionKernel& kernel, const AttentionTensors& tensors, std::int64_t batch,
                                     std::int64_t head);

/// Why that fault cannot change a case.
[[nodiscard]] std::string needs_padded_queries(const Call& call);

/// The largest output of one head's queries of zeros in the last tile of 128, with the fault queries_beyond_in_amax: the mean
/// of v over the keys that the mask shows to each, less what a sink takes. 0 without the fault.
[[nodiscard]] float amax_of_queries_beyond(const AttentionKernel& kernel, const AttentionTensors& tensors,
                                           std::int64_t batch, std::int64_t head);

/// Why that fault cannot change a case.
[[nodiscard]] std::string needs_partial_queries(const Call& call);

}  // namespace numcheck::kernels::sim
