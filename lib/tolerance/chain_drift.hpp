// The error of a long FP32 chain that no independence explains: replayed on a few outputs.
#pragma once

#include <cstdint>

#include "op/gemm.hpp"
#include "op/reference.hpp"

namespace numcheck::tolerance {

/// Errors of a chain of k fused multiply-adds have the second moment 0.18 u^2 k (S2 / 6 + y^2 / 3) as long as the last
/// bits of a product relative to the sum's ulp are random. In a long sum of one sign they are not: products are small
/// against the ulp, those below half of it are lost, and products that are all alike are all rounded in the same
/// direction. The relative error then grows like k^2, not like k^(1/2):
///
///   k u / 2  at most, where all products are equal
///   (k u)^2 f(0) E[p] / 33  for products with the density f from 0 on; each adds with the error -h^2 f(0) / 24 on average,
///                           h the ulp of the sum: 2 u s on average 0.72 times (uniform in (0, 1]: 2.2 times the other
///                           term at k = 2^18, 18 times at 2^20)
///
/// What the products' density is, only the operands tell. So the natural chain is replayed on 16 to 1024 outputs, spread
/// over rows and columns. |mean(e / y)| counts if it exceeds 4 of its predicted standard deviations. Those are of products that
/// are all rounded, though, and where products span many binades the sums of the lost ones are hidden among them. So the errors of
/// steps whose product is below 16 to 32 ulps of the sum count on their own, which are few for products of one size:
///
///   drift = max(|mean(e / y)|, |mean(e_small / y)| + 3 standard errors), each 0 unless it is beyond 4 and 2.5 of its own
///
/// Other orders add shorter chains and so drift less.
/// Where partial sums are subnormal, their spacing is 2^-149, and products that are alike are likewise rounded alike.
[[nodiscard]] double chain_drift(const op::GemmParams& params, const op::Operand& a, const op::Operand& b);

struct OutputPlace {
  std::int64_t row = 0, column = 0;
};

/// The output of an m x n product that is replayed as number s < m n: no two are the same, because the drift takes their errors for
/// independent, and they are spread over rows and columns.
[[nodiscard]] OutputPlace replayed_output(std::int64_t s, std::int64_t m, std::int64_t n);

}  // namespace numcheck::tolerance
