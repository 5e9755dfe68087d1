// GEMM cases whose result is known exactly: small integers, and factors that are powers of two.
#pragma once

#include <string>
#include <vector>

#include "tests/unit/harness/fake.hpp"

namespace numcheck::kernels::test {

/// The argument of the epilogue's function, in double: alpha op(A) op(B) with scales, addend and bias. Exact for the
/// inputs of TestCase.
[[nodiscard]] double exact_argument(const TestCase& test, std::int64_t batch, std::int64_t row, std::int64_t col);

/// The first element of D that is not the exact result rounded once, as a sentence; empty if there is none. gelu(z) may
/// be off by one ulp of the output and gelu_error |z|: 1 + tanh cancels for negative z. All may be off by `ulps`.
/// Checks d_amax, too.
[[nodiscard]] std::string first_wrong_element(const TestCase& test, double gelu_error, double ulps);

/// Runs the case on a real backend; every report must be free of errors and damage, deterministic, and exact (within
/// 2 ulp where split-K partial sums are rounded to the output's format).
void expect_exact(Backend& backend, TestCase& test, double gelu_error = 0);

}  // namespace numcheck::kernels::test
