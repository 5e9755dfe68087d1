// NVFP4: E2M1 codes, two in a byte, with one E4M3 scale per 16 elements and one FP32 number for the tensor.
//
//   S      = min(RN32(2688 / A), FLT_MAX)             A: amax of the tensor; 1 if A is 0 or infinite; 2688 = 448 * 6
//   d      = E4M3(RN32(a RN32(S RN32(1 / 6))))        a: amax of the block; to nearest even, at most 448
//   factor = min(RN32(1 / RN32(d RN32(1 / S))), FLT_MAX)
//   code   = E2M1(RN32(x factor))                     to nearest even, at most 6; +6 for NaN, which no amax counts
//   value  = code d A / 2688
//
// With stochastic rounding the code is one of the two next to x factor: the one farther from zero with the probability
// floor(256 f) / 256, f: how far x factor is from the other, in steps between them. The random bits are the device's own choice.
//
// d is 0 if a is far below A: the codes of such a block are 0 and +-6, and its values 0. Of the two codes in a byte the first is
// in the low half. Column-wise codes are those of the transpose of x. Blocks of 16 x 16 have one amax, and its d is stored
// for each of their rows and columns, so that scales always lie as those of 1 x 16.
// With `hadamard` column-wise codes are made of y, not of x, and their A is the amax of y: of 16 elements of a column at a time
//
//   y_k = RN_bf16(1/4 sum_j s_j x_j (-1)^popcount(j & k))          s = + + + -  + - - -  - - - +  - + - -
//
// The sums may be formed in any order in FP32. Blocks whose results depend on that are not judged.
// Source: TransformerEngine common/cast/nvfp4/core_nvfp4.cuh, common/transpose/quantize_transpose_vector_blockwise_fp4.cu,
// common/util/ptx.cuh.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "op/op.hpp"

namespace numcheck::op {

struct QuantizeParams;
struct DequantizeParams;

inline constexpr std::int64_t kNvfp4Block = 16;
/// The largest value of a code times that of a scale.
inline constexpr float kNvfp4Largest = 448 * 6;

/// What plans get wrong, as sentences. Precondition: the recipe is nvfp4.
[[nodiscard]] std::vector<std::string> check_nvfp4(const QuantizeParams& p);
[[nodiscard]] std::vector<std::string> check_nvfp4(const DequantizeParams& p);

/// x, global_amax, with `hadamard` global_amax_t, and of each layout codes [lines, length / 2] and scales [lines, ceil(length / 16) to 4]: lines are rows
/// or columns of x.
[[nodiscard]] std::vector<Port> nvfp4_ports(const QuantizeParams& p, core::Dtype input);

/// q, q_scale_inv, q_global_amax and y.
[[nodiscard]] std::vector<Port> nvfp4_ports(const DequantizeParams& p, core::Dtype output);

}  // namespace numcheck::op
