// The accumulators of a product whose operands have a scale for every group of k, as instructions for NVFP4 sum them.
#pragma once

#include <span>

#include "model/product.hpp"
#include "model/schedule.hpp"

namespace numcheck::model {

/// acc[i,j] = the sum of the products a[i,t] b[t,j], times the scales of their groups, in steps of L products, one after the other:
///
///   t_g = (exact sum of the products of group g) s(a_g) s(b_g),    E_g = e(a_g) + e(b_g)
///   D   = RZ_FP32( sum_g T(t_g 2^E_g) + T(c) ),    T(x): |x| truncated to multiples of 2^(e_max - F)
///
/// a_g and b_g are the scales of row i and of column j in that group, without signs, s their significands, below 1 of subnormal
/// ones, and e their exponents. e_max is the largest of E_g and the exponent of c: how large t_g is does not matter. A group
/// whose products are all 0, or of which a scale is 0, has the exponent e_zero, as c has if it is 0.
/// Source: GST-FDPA in Xie et al., "MMA-Sim", arXiv 2511.10909. Published only: no device's outputs have been compared.
/// Precondition: schedule.step.group > 0, the scales are E4M3 numbers, and k is not split.
void simulate_groups(const Schedule& schedule, const ProductOperands& operands, std::span<float> acc);

}  // namespace numcheck::model
