// Casts of a simulated device to FP8 with a scale per block. The rules are in op/quantize.hpp.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/sim/mxfp8_io.hpp"
#include "kernels/sim/op_faults.hpp"
#include "op/quantize.hpp"

namespace numcheck::kernels::sim {

/// x as the fault lets the device see it: through FP16, or with infinities for NaNs.
[[nodiscard]] std::vector<float> faulty_input(std::span<const PortMemory> ports, const std::string& fault);

/// Writes codes and scales of all layouts that the case has.
void write_blocks(const op::QuantizeParams& p, std::span<const PortMemory> ports, const std::string& fault);

// Why such a fault cannot change the case, as a sentence; empty if it can.
[[nodiscard]] std::string needs_one_scale(const Call& call);
[[nodiscard]] std::string needs_blocks(const Call& call);
[[nodiscard]] std::string needs_several_blocks(const Call& call);
[[nodiscard]] std::string needs_block_grid(const Call& call);
[[nodiscard]] std::string needs_scale_padding(const Call& call);
[[nodiscard]] std::string needs_rounding_up(const Call& call);
[[nodiscard]] std::string needs_rounding_down(const Call& call);
[[nodiscard]] std::string needs_block_epsilon(const Call& call);
[[nodiscard]] std::string needs_power_of_two(const Call& call);
[[nodiscard]] std::string needs_columnwise_blocks(const Call& call);
[[nodiscard]] std::string needs_wide_input(const Call& call);

// Of the scales of blocks, for the table of `quantize`.
inline constexpr OpFault kBlockAmaxStale{
    {"block_amax_stale", "scales of blocks follow from the amaxes of an earlier, smaller tensor"}, &needs_blocks};
inline constexpr OpFault kExponentFloor{kBlockScaleFloor.info, &needs_rounding_up};
inline constexpr OpFault kExponentUp{{"block_scale_up", "the scale of a block is rounded up, not by floor(log2 amax)"},
                                     &needs_rounding_down};
inline constexpr OpFault kStoredScaleOff{kBlockScaleOff.info, &needs_blocks};
inline constexpr OpFault kPreviousScale{kNeighbourScale.info, &needs_several_blocks};
inline constexpr OpFault kScalesTransposed{
    {"scales_transposed", "the scales of blocks are stored with rows and columns swapped"}, &needs_block_grid};
inline constexpr OpFault kScaleIndexOff{{"scale_index_off", "scales are stored one block further on"},
                                        &needs_several_blocks};
inline constexpr OpFault kCodesOfCodes{kColumnwiseFromRowwise.info, &needs_columnwise_blocks};
inline constexpr OpFault kRowwiseScales{
    {"rowwise_scales_columnwise", "column-wise codes are made with the row-wise scales"}, &needs_columnwise_blocks};
inline constexpr OpFault kPaddingWritten{{"padding_written", "the padding of scales is overwritten"},
                                         &needs_scale_padding};
inline constexpr OpFault kEpsilonIgnored{{"epsilon_ignored", "scales follow from amaxes below epsilon"},
                                         &needs_block_epsilon};
inline constexpr OpFault kPowerOfTwoIgnored{{"power_of_two_ignored", "scales are not rounded down to powers of two"},
                                            &needs_power_of_two};

}  // namespace numcheck::kernels::sim
