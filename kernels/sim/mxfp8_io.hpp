// MXFP8 outputs of a simulated device. The rule is in op/mxfp8.hpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/sim/op_faults.hpp"
#include "op/mxfp8.hpp"

namespace numcheck::kernels::sim {

/// True if the case has an MXFP8 output with these names.
[[nodiscard]] bool has_mxfp8(std::span<const PortMemory> ports, const op::Mxfp8Names& names) noexcept;

/// Stores the results in the layouts that the case has, each made from the results themselves, rounded to `first`.
void write_mxfp8(std::span<const PortMemory> ports, const op::Mxfp8Names& names, std::vector<float> results,
                 core::Dtype first, std::string_view fault = {});

// Why such a fault cannot change the case, as a sentence; empty if it can.
[[nodiscard]] std::string needs_block_scales(const Call& call);
[[nodiscard]] std::string needs_two_blocks(const Call& call);
[[nodiscard]] std::string needs_first_rounding(const Call& call);
[[nodiscard]] std::string needs_both_layouts(const Call& call);

inline constexpr OpFault kBlockScaleFloor{
    {"block_scale_floor", "the scale of a block is rounded down, as in OCP MX, and its largest codes saturate"},
    &needs_block_scales};
inline constexpr OpFault kBlockScaleOff{{"block_scale_off", "one block's scale is stored as twice its value"},
                                        &needs_block_scales};
inline constexpr OpFault kNeighbourScale{{"neighbour_scale", "codes use the scale of the previous block"},
                                         &needs_two_blocks};
inline constexpr OpFault kFirstRoundingMissing{
    {"first_rounding_missing", "results are quantised without being rounded to the format of the inputs first"},
    &needs_first_rounding};
inline constexpr OpFault kColumnwiseFromRowwise{
    {"columnwise_from_rowwise", "column-wise codes are made from the row-wise ones, not from the results"},
    &needs_both_layouts};

}  // namespace numcheck::kernels::sim
