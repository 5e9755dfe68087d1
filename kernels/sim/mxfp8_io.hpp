// MXFP8 outputs of a simulated device. The rule stands in op/mxfp8.hpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/sim/op_faults.hpp"
#include "op/mxfp8.hpp"

namespace numcheck::kernels::sim {

/// True if the ports are those of an MXFP8 output of that name.
[[nodiscard]] bool has_mxfp8(std::span<const PortMemory> ports, const op::Mxfp8Names& names) noexcept;

/// Stores the results in the layouts that there are, each from the results themselves, rounded to `first` before.
void write_mxfp8(std::span<const PortMemory> ports, const op::Mxfp8Names& names, std::vector<float> results,
                 core::Dtype first, std::string_view fault = {});

// Why such a fault would change nothing in the case, as a sentence; empty if it can.
[[nodiscard]] std::string needs_block_scales(const Call& call);
[[nodiscard]] std::string needs_two_blocks(const Call& call);
[[nodiscard]] std::string needs_first_rounding(const Call& call);
[[nodiscard]] std::string needs_both_layouts(const Call& call);

inline constexpr OpFault kBlockScaleFloor{
    {"block_scale_floor", "the scale of a block is rounded down, as OCP MX has it, and its largest codes saturate"},
    &needs_block_scales};
inline constexpr OpFault kBlockScaleOff{{"block_scale_off", "one block's scale is stored twice as large as it is"},
                                        &needs_block_scales};
inline constexpr OpFault kNeighbourScale{{"neighbour_scale", "codes are made with the scale of the block before"},
                                         &needs_two_blocks};
inline constexpr OpFault kFirstRoundingMissing{
    {"first_rounding_missing", "results are quantised as they are, not rounded to the format of the inputs before"},
    &needs_first_rounding};
inline constexpr OpFault kColumnwiseFromRowwise{
    {"columnwise_from_rowwise", "column-wise codes are made of the row-wise ones, not of the results"},
    &needs_both_layouts};

}  // namespace numcheck::kernels::sim
