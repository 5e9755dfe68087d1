// One output of GEMM in twofold arithmetic (about 106 bits): what the double reference is checked against.
#pragma once

#include <cstdint>

#include "reference/gemm_operands.hpp"

namespace numcheck::reference {

/// Value and size of one output before the epilogue.
struct TwofoldOutput {
  double z = 0;          ///< Z, correctly rounded except for errors of order k^2 2^-106 magnitude
  double magnitude = 0;  ///< |product_scale| sum |a b| + |c_scale c| + |bias_scale bias|
};

/// Computes output `index`. Non-finite inputs yield the NaN or infinity that any order of summation yields.
/// Source: Ogita, Rump, Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26 (2005), algorithm Dot2.
[[nodiscard]] TwofoldOutput twofold_output(const GemmOperands& g, std::int64_t index);

}  // namespace numcheck::reference
