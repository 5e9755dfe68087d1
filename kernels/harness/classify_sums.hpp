// Finds how often an FP8 product promotes its partial sums: a probe like G6, for sums instead of operands.
#pragma once

#include <span>
#include <string>

#include "kernels/harness/classify.hpp"

namespace numcheck::kernels::harness {

/// Why the probe does not apply to the case; empty if it does. It applies to `gemm` and `grouped_gemm` in FP8 with more products in a
/// sum than one promotion interval of 128, and an alpha with which the probes are in the output's range and, if there are no more
/// than two intervals, exact.
[[nodiscard]] std::string sums_obstacle(const Call& call);

/// Launches the algorithm on operands whose products along k are 2^13, then 128 times 1/2 somewhere between, and -2^13 at the end.
/// An accumulator of 14 bits loses each half beside 2^13, so that 0 is left; one that is promoted to FP32 in between sums the halves
/// by themselves, and leaves 64. Each of a few rows of A has its halves further from the beginning than the one above:
///
///   the first 128 products after the first 128 leave 64   fp8_promoted: every 128 or less, or sums with more bits
///   only some further away do                             fp8_rarely_promoted
///   none does                                             fp8_fast
///
/// Sums of up to 256 products have no -2^13 (sums_probe.hpp). Of groups all that tell are probed at once; the class is that of the first
/// whose sums are not promoted. Scales are 1, but for those that keep probes in range (sums_probe.cpp), all other inputs 0. Inputs and D hold garbage afterwards.
/// Source: tensor_core_numerics section 2.6, probe G3; 14 bits are those of sm_89 and sm_90.
[[nodiscard]] Classification classify_sums(const Algorithm& algorithm, const Call& call, DeviceMemory& memory,
                                           std::span<const PortMemory> ports, std::byte* workspace, Launcher& launcher);

}  // namespace numcheck::kernels::harness
