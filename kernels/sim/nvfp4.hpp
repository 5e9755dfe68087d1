// Casts of a simulated device to NVFP4 and back. The rules are in op/nvfp4.hpp.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/sim/op_faults.hpp"
#include "op/quantize.hpp"

namespace numcheck::kernels::sim {

/// Writes codes and scales of all layouts that the case has.
void write_nvfp4(const op::QuantizeParams& p, std::span<const PortMemory> ports, const std::string& fault);

/// The numbers of the codes that `dequantize` reads, two per byte.
[[nodiscard]] std::vector<float> nvfp4_numbers(std::span<const PortMemory> ports, const std::string& fault);

/// scale_inv global_amax / 2688 of every scale.
[[nodiscard]] std::vector<float> nvfp4_scales(std::vector<float> stored, std::span<const PortMemory> ports,
                                              const std::string& fault);

// Why such a fault cannot change the case, as a sentence; empty if it can.
[[nodiscard]] std::string needs_nvfp4(const Call& call);
[[nodiscard]] std::string needs_nvfp4_codes(const Call& call);
[[nodiscard]] std::string needs_square_blocks(const Call& call);
[[nodiscard]] std::string needs_stochastic(const Call& call);
[[nodiscard]] std::string needs_hadamard(const Call& call);
[[nodiscard]] std::string needs_rows_and_hadamard(const Call& call);

inline constexpr OpFault kHalvesSwapped{{"halves_swapped", "the first code of two is in the high half of their byte"},
                                        &needs_nvfp4};
inline constexpr OpFault kCodesTruncated{{"codes_truncated", "codes are truncated, not rounded to nearest even"},
                                         &needs_nvfp4};
inline constexpr OpFault kScaleTruncated{
    {"scale_truncated", "the E4M3 scales of blocks are truncated, not rounded to nearest even"}, &needs_nvfp4};
inline constexpr OpFault kScaleUnrounded{
    {"scale_unrounded", "codes are made with the scale before it is rounded to E4M3"}, &needs_nvfp4};
inline constexpr OpFault kGlobalAmaxStale{
    {"global_amax_stale", "the tensor's amax is that of an earlier, smaller tensor"}, &needs_nvfp4};
inline constexpr OpFault kGlobalScaleIgnored{{"global_scale_ignored", "the tensor has no scale of its own"},
                                             &needs_nvfp4};
inline constexpr OpFault kLinesForSquares{
    {"lines_for_squares", "a scale follows from 16 elements of a line, not from 16 x 16"}, &needs_square_blocks};
inline constexpr OpFault kStochasticNearest{{"stochastic_nearest", "codes are rounded to nearest even, not at random"},
                                            &needs_stochastic};
inline constexpr OpFault kStochasticNearestLine{
    {"stochastic_nearest_line",
     "codes of the middle row are rounded to nearest even, not at random; of transposed codes, "
     "those of the middle column"},
    &needs_stochastic};
inline constexpr OpFault kStochasticBiased{
    {"stochastic_biased", "random bits are too large by 8 of 256, so that too many codes are rounded up"},
    &needs_stochastic};
inline constexpr OpFault kStochasticEven{
    {"stochastic_even", "codes are rounded up half of the time, wherever they are between two numbers"},
    &needs_stochastic};
inline constexpr OpFault kStochasticUpward{
    {"stochastic_upward", "negative numbers are rounded as often towards zero as positive ones away from it"},
    &needs_stochastic};
inline constexpr OpFault kStochasticBeyond{
    {"stochastic_beyond", "one code in a thousand is that of a number farther away than the next"}, &needs_stochastic};
inline constexpr OpFault kDrawsShared{{"draws_shared", "four neighbouring elements have the same random bits"},
                                      &needs_stochastic};
inline constexpr OpFault kHadamardMissing{
    {"hadamard_missing", "columns are not transformed, as where only the other operand of a product is"},
    &needs_hadamard};
inline constexpr OpFault kHadamardOfRows{{"hadamard_of_rows", "rows are transformed, too"}, &needs_rows_and_hadamard};
inline constexpr OpFault kHadamardUnsigned{{"hadamard_unsigned", "the transform leaves out the signs"},
                                           &needs_hadamard};
inline constexpr OpFault kHadamardUnrounded{
    {"hadamard_unrounded", "transformed columns are not rounded to BF16 before they are quantised"}, &needs_hadamard};
inline constexpr OpFault kHadamardAmaxOfRows{
    {"hadamard_amax_of_x", "the scales of transformed columns follow from the amax of x"}, &needs_hadamard};
inline constexpr OpFault kHalvesReadSwapped{{"halves_swapped", "the first code of a byte is read from its high half"},
                                            &needs_nvfp4_codes};
inline constexpr OpFault kGlobalAmaxIgnored{{"global_amax_ignored", "values lack the scale of the tensor"},
                                            &needs_nvfp4_codes};

}  // namespace numcheck::kernels::sim
