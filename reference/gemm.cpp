#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "op/field.hpp"
#include "reference/exact_product.hpp"
#include "reference/freivalds.hpp"
#include "reference/gemm_check.hpp"
#include "reference/gemm_diagnosis.hpp"
#include "reference/gemm_gelu_overflow.hpp"
#include "reference/gemm_k_ranges.hpp"
#include "reference/gemm_operands.hpp"
#include "reference/gemm_projection.hpp"
#include "reference/gemm_replay.hpp"
#include "reference/gemm_sampled.hpp"
#include "reference/gemm_scale_overflow.hpp"
#include "reference/gemm_scales.hpp"
#include "reference/gemm_yardsticks.hpp"
#include "reference/matmul.hpp"
#include "reference/mistakes.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

/// Largest |d|, NaN ignored, gathered from several threads.
class Amax {
 public:
  void merge(double largest) {
    const std::lock_guard lock(mutex_);
    value_ = std::max(value_, largest);
  }
  [[nodiscard]] double value() const noexcept { return value_; }

 private:
  std::mutex mutex_;
  double value_ = 0;
};

/// Turns the sums of products of one tile into D, and keeps those that relu or gelu is applied to, unless `z` is null; returns max |D|.
double finish_tile(const GemmOperands& g, Epilogue epilogue, const Tile& tile, double* d, float* z) {
  const bool is_plain = g.product_scale == 1 && g.c == nullptr && g.bias == nullptr && epilogue == Epilogue::none;
  if (is_plain && !g.has_amax) {
    return 0;  // the pass over the tile would change nothing, and cost 2 % of a large product
  }
  double largest = 0;
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    const std::int64_t begin = (tile.batch * g.shape.m + tile.row + r) * g.shape.n + tile.col;
    for (std::int64_t i = begin; i < begin + tile.cols; ++i) {
      const double sum = affine(g, d[i], i, tile.col + i - begin);
      if (z != nullptr) {
        z[i] = static_cast<float>(sum);
      }
      d[i] = apply_epilogue(epilogue, sum);
      const double size = std::abs(d[i]);
      largest = size > largest ? size : largest;
    }
  }
  return largest;
}

op::Values gemm_sampled_values(const GemmOperands& g, Epilogue epilogue, const std::vector<std::int64_t>& indices) {
  const std::vector<double> sums = sampled_products(g.shape, g.a, g.b, indices);
  core::Buffer<double> d(indices.size());
  core::Buffer<float> z(epilogue == Epilogue::none ? 0 : indices.size());
  for (std::size_t s = 0; s < indices.size(); ++s) {
    const double sum = affine(g, sums[s], indices[s], indices[s] % g.shape.n);
    if (!z.empty()) {
      z[s] = static_cast<float>(sum);
    }
    d[s] = apply_epilogue(epilogue, sum);
  }
  check_against_twofold(g, d.span(), indices);
  op::Values values;
  values.outputs.push_back({"d", std::move(d)});
  values.outputs.back().argument = std::move(z);
  return values;
}

op::Values gemm_values(const op::ReferenceRequest& request) {
  const GemmOperands g = gemm_operands(request);
  const Epilogue epilogue = parse_epilogue(g.params);
  if (!request.sample.all()) {
    return gemm_sampled_values(g, epilogue, request.sample.indices);
  }
  core::Buffer<double> d(static_cast<std::size_t>(g.outputs()));
  core::Buffer<float> z(epilogue == Epilogue::none ? 0 : d.size());
  Amax amax;
  const auto finish = [&](const Tile& tile) {
    amax.merge(finish_tile(g, epilogue, tile, d.data(), z.empty() ? nullptr : z.data()));
  };
  if (is_exact_in_fp32(g.shape, g.a.data, g.b.data)) {
    multiply_in_fp32(g.shape, g.a, g.b, d.data(), finish);
  } else {
    multiply(g.shape, g.a, g.b, d.data(), finish);
  }
  check_against_twofold(g, d.span(), {});
  op::Values values;
  values.outputs.push_back({"d", std::move(d)});
  values.outputs.back().argument = std::move(z);
  if (g.has_amax) {
    core::Buffer<double> largest(1);
    largest[0] = amax.value();
    values.outputs.push_back({"d_amax", std::move(largest)});
  }
  return values;
}

/// Freivalds' check is linear; with any other epilogue, every element is computed and compared.
bool gemm_exact_holds(const op::ReferenceRequest& request, std::span<const double> output) {
  if (parse_epilogue(op::from_params<op::GemmParams>(*request.params)) == Epilogue::none) {
    return freivalds_holds(request, output);
  }
  const op::Values values = gemm_values({.params = request.params, .inputs = request.inputs, .sample = {}});
  const std::span<const double> expected = values.outputs.at(0).value.span();
  return std::ranges::equal(output, expected);
}

}  // namespace

// Entry points of the reference of `gemm`:
//
//   Z[i,j] = (alpha sA sB) sum_t op(A)[i,t] op(B)[t,j] + beta C[i,j] + bias[j],   D = f(Z)
//
// With alpha = 0, A and B are not read: NaN in them stay out of D, as in BLAS. f is identity, relu, or gelu in its tanh form, evaluated without cancellation as z / (1 + exp(-2u)) with
// u = sqrt(2/pi) (z + 0.044715 z^3). Inputs are looked up by port name: `a`, `b`, `c` (only if beta != 0) and `bias`
// (only if the parameter says so), each dense and row-major in its stored shape. NaN and infinities propagate.
//
// values() returns port `d` and, for an FP8 output, `d_amax` (one element, max |D| over elements that are not NaN; 0
// if there are none). A sample does not determine a maximum: with one, `d_amax` is left out.
// With relu and gelu, Z comes along as the port's `argument`, in FP32.
// The product is made in double, or in FP32 where that rounds nothing, as in the exact leg (exact_product.hpp).
// 64 outputs of every result are recomputed in twofold arithmetic; a disagreement beyond k 2^-53 A throws
// core::InternalError, as do inputs that do not fit the parameters.
//
// yardsticks() returns for `d` (and, without a sample, for `d_amax`, as the maximum over D)
//
//   magnitude  A = (|alpha sA sB| sum |a b| + |beta C| + |bias|) g,    g = 1, or 1.13 >= max |gelu'| for gelu
//   deviation  sqrt(S2),  S2 = (alpha sA sB)^2 sum (a b)^2 h,          h = 1, or 1.28 >= max gelu'^2
//
// from two products in FP32 on operands scaled by powers of two, inflated by 1 + (k + 8) 2^-24 and rounded upwards, so
// that they never fall short of the exact sums. Where the exponents of the operands span so wide a range that a term
// could underflow or a sum overflow in FP32 (about 115 binades for both operands together), the products run in
// double. What exceeds FP32's own range becomes infinity: then the bound is vacuous, never wrong.
//
// exact_holds() is Freivalds' check (freivalds.hpp); with relu or gelu, which are not linear, it compares with all of
// values().
//
// The version names the formula and the BLAS with its instruction set.
op::Reference gemm_reference() {
  static const std::string version = "gemm/1 " + std::string(matmul_implementation());
  op::Reference reference;
  reference.values = &gemm_values;
  reference.yardsticks = &gemm_yardsticks;
  reference.mistakes = &gemm_mistakes;
  reference.version = version;
  reference.exact_holds = &gemm_exact_holds;
  reference.derive = &derive_gemm_scales;
  reference.project = &gemm_projection;
  reference.diagnose = [](const op::FindingRequest& request) {
    std::vector<op::Finding> findings = gemm_diagnosis(request);
    std::ranges::move(gemm_k_ranges(request), std::back_inserter(findings));
    std::ranges::move(gelu_overflow(request), std::back_inserter(findings));
    std::ranges::move(scale_overflow(request), std::back_inserter(findings));
    return findings;
  };
  reference.replay = &gemm_replay;
  return reference;
}

}  // namespace numcheck::reference
