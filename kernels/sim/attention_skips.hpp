// Faults of simulated attention that leave out a part of an output.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/sim/attention.hpp"

namespace numcheck::kernels::sim {

/// What an output has of each head: rows of channels, or one number per query (lse).
struct HeadOutput {
  std::string_view port;
  op::Side side = op::Side::queries;
  std::int64_t channels = 0;
  bool statistic = false;
};

/// write_floats. With the fault empty_sequence_unwritten, positions of sequences without queries or without keys keep what the
/// memory held; dk and dv of heads that share keys are sums of such.
void write_heads(const AttentionKernel& kernel, const AttentionTensors& tensors, std::span<const PortMemory> ports,
                 const HeadOutput& output, std::span<const float> values);

/// With the fault dq_half_zero, the upper half of the channels of rows beyond the last multiple of 16 become zero; of the last
/// row only, if there are 15.
void zero_half(const AttentionKernel& kernel, HeadMatrix& dq);

/// With the fault queries_lost, factors of dk and dv (queries x keys) of every third head become zero where the second block of
/// 64 queries meets the first 16 keys.
[[nodiscard]] std::vector<float> without_lost(const AttentionKernel& kernel, std::int64_t batch, std::int64_t head,
                                              std::span<const float> factors);

/// Why these faults cannot change a case.
[[nodiscard]] std::string needs_empty_sequence(const Call& call);
[[nodiscard]] std::string needs_partial_tile(const Call& call);
[[nodiscard]] std::string needs_second_block(const Call& call);

}  // namespace numcheck::kernels::sim
