// Ports of a simulated device as FP32 arrays: what ops that compute in FP32 and round once need.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/contract/backend.hpp"
#include "kernels/contract/ports.hpp"

namespace numcheck::kernels::sim {

/// Elements of the port in logical order, converted to FP32 (exact for every format). Throws core::InternalError if
/// there is no such port.
[[nodiscard]] std::vector<float> read_floats(std::span<const PortMemory> ports, std::string_view name);

/// The faults that write_floats plants in any output.
///   truncated_output       a 16- or 8-bit output is truncated instead of rounded
///   double_rounded_output  a BF16 or 8-bit output is rounded to FP16 first
///   bf16_output_in_fp32    an FP32 output holds numbers rounded to BF16
///   output_scale_1_01      outputs are 1.01 times what they should be
///   saturate_missing       an FP8 output beyond the largest number becomes NaN or infinity
///   stale_amax             amax is that of an earlier, smaller tensor
///   nan_dropped            NaN outputs become zero
///   last_row_stale         the last row is not computed: it holds zeros
[[nodiscard]] std::span<const FaultInfo> store_faults() noexcept;

/// Why that fault cannot change any output of the case; empty if it can.
[[nodiscard]] std::string store_fault_obstacle(std::string_view fault, std::span<const op::Port> ports);

/// Stores the values in the port's format, to nearest even. A port with a `scale` port of its own holds
/// sat(RN(RN32(value * scale))); its `amax` port gets max |value| before scaling, NaN dropped, as TransformerEngine's
/// casts do. Integers are stored unchanged. The fault may also be one of perturbations().
void write_floats(std::span<const PortMemory> ports, std::string_view name, std::span<const float> values,
                  std::string_view fault = {});

/// The amax port of `of`, if there is one: max |value|, NaN dropped.
void write_amax(std::span<const PortMemory> ports, std::string_view of, std::span<const float> values,
                std::string_view fault = {});

/// Sum as GPU kernels form it: 128 interleaved lanes, then pairwise. A plain chain would not do: in it, sums of squares
/// of few-bit numbers stagnate, which they do in no kernel's schedule.
[[nodiscard]] float block_sum(std::size_t count, const std::function<float(std::size_t)>& term);

/// One algorithm that runs `compute` on the host.
/// `evidence`: "FP32 arithmetic in order of the row".
[[nodiscard]] Algorithm host_algorithm(const Call& call, std::string evidence,
                                       std::function<void(std::span<const PortMemory>)> compute);

}  // namespace numcheck::kernels::sim
