// GEMM: D = epilogue(alpha * op(A) * op(B) + beta * C + bias), row-major, batched.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "op/field.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// Parameters of `gemm`.
///
///   Z[i,j] = alpha * sum_t op(A)[i,t] * op(B)[t,j] + beta * C[i,j] + bias[j]
///   D[i,j] = f(Z[i,j]),  f = identity, relu, or gelu(z) = z/2 (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3)))
///
/// op(A) is m x k (A stored k x m with trans_a), op(B) is k x n (B stored n x k with trans_b), all row-major: a linear
/// layer is fprop Y = X W^T (trans_b), dgrad dX = dY W, wgrad dW = dY^T X (trans_a).
/// FP8 modes: A and B hold codes; the value of an operand is code * scale_inv, of which there is one, one per row of A and per
/// column of B, or one per block along k, in FP32 or as a power of two (gemm_scaling.hpp). In mode fp4_e2m1 there is an E4M3
/// number per block and an FP32 number for the tensor; a byte has one code here. With an FP8 output,
/// D = sat(RN(f(Z) * d_scale)) and d_amax = max |f(Z)|.
/// Sources: cuBLAS manual, cublasLtMatmul; TransformerEngine include/transformer_engine/gemm.h.
struct GemmParams {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  bool trans_a = false;
  bool trans_b = false;
  double alpha = 1;
  double beta = 0;
  bool in_place = false;  ///< C and D share memory; needs beta
  bool bias = false;
  std::string epilogue = "none";       ///< none | relu | gelu
  std::string output = "default";      ///< default | fp32 | bf16 | fp16 | fp8_e4m3 | fp8_e5m2
  std::string accumulate = "default";  ///< default | fast | split (FP8 only; default means split)
  /// tensor | outer_vector | 1x128_1x128 | 1x128_128x128 | 128x128_1x128 | mxfp8 (FP8 only) | nvfp4 (fp4_e2m1 only)
  std::string scaling = "tensor";
  bool power_of_two = false;  ///< scales of rows and blocks are powers of two, as TransformerEngine's are by default
  std::int64_t pad_a = 0;     ///< leading dimension minus row length, elements
  std::int64_t pad_b = 0;
  std::int64_t pad_d = 0;
  std::int64_t misalign = 0;  ///< elements by which the operands' first element is displaced

  template <class V>
  void describe(V& v) {
    constexpr double kMaxDim = 1 << 30;
    v.integer("m", "m", m, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "rows of D"});
    v.integer("n", "n", n, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "columns of D"});
    v.integer("k", "k", k, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "reduction length"});
    v.integer("batch", "b", batch, {.minimum = 1, .maximum = 65535, .doc = "independent products"});
    v.boolean("trans_a", "ta", trans_a, "A is stored k x m");
    v.boolean("trans_b", "tb", trans_b, "B is stored n x k");
    v.number("alpha", "alpha", alpha, {.minimum = -1e30, .maximum = 1e30, .doc = "factor of the product"});
    v.number("beta", "beta", beta, {.minimum = -1e30, .maximum = 1e30, .doc = "factor of C; 0 means no C"});
    v.boolean("in_place", "ip", in_place, "C and D share memory, as when weight gradients accumulate", true);
    v.boolean("bias", "bias", bias, "adds a row of n numbers to every row");
    v.choice("epilogue", "epi", epilogue, {"none", "relu", "gelu"}, "function applied before the output is rounded");
    v.choice("output", "out", output, {"default", "fp32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2"},
             "format of D; default is the mode's", true);
    v.choice("accumulate", "acc", accumulate, {"default", "fast", "split"},
             "FP8 accumulation: split promotes partial sums to FP32, fast does not; default is split", true);
    v.choice("scaling", "sc", scaling,
             {"tensor", "outer_vector", "1x128_1x128", "1x128_128x128", "128x128_1x128", "mxfp8", "nvfp4"},
             "which elements of A and of B share a scale, in FP8 modes, and nvfp4 in mode fp4_e2m1; all but tensor "
             "need trans_b, no trans_a, one matrix, an output of 16 or 32 bits and, for blocks, split accumulation");
    v.boolean("power_of_two", "p2", power_of_two, "FP32 scales of rows and blocks are powers of two");
    v.integer("pad_a", "pa", pad_a,
              {.minimum = 0, .maximum = 1 << 20, .doc = "extra elements per row of A", .storage_only = true});
    v.integer("pad_b", "pb", pad_b,
              {.minimum = 0, .maximum = 1 << 20, .doc = "extra elements per row of B", .storage_only = true});
    v.integer("pad_d", "pd", pad_d,
              {.minimum = 0, .maximum = 1 << 20, .doc = "extra elements per row of C and D", .storage_only = true});
    v.integer("misalign", "mis", misalign,
              {.minimum = 0,
               .maximum = 64,
               .doc = "elements by which A, B, C and D are displaced from 256-byte alignment",
               .storage_only = true});
  }
};

/// Format of D for these parameters.
[[nodiscard]] core::Dtype gemm_output_dtype(const GemmParams& params, const Mode& mode);

/// True if partial sums of an FP8 product are promoted to FP32 (accumulate is split or default).
[[nodiscard]] bool gemm_promotes(const GemmParams& params, const Mode& mode);

/// The descriptor of `gemm`.
[[nodiscard]] const Op& gemm();

}  // namespace numcheck::op
