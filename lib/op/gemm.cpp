#include "op/gemm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/strings.hpp"
#include "op/gemm_exact.hpp"
#include "op/gemm_scaling.hpp"
#include "op/product_statistics.hpp"

namespace numcheck::op {
namespace {

using core::Dtype;

constexpr std::array<std::string_view, 12> kModeNames = {"fp32",          "fp32_pedantic", "tf32",       "fp32_fast16f",
                                                         "fp32_fast16bf", "bf16x9",        "bf16",       "fp16",
                                                         "fp16_acc16",    "fp8_e4m3",      "fp8_hybrid", "fp4_e2m1"};

/// C is never FP8; cuBLASLt pairs an FP8 D with a BF16 C (cuBLAS manual, cublasLtMatmul types).
Dtype addend_dtype(Dtype output) {
  return core::is_fp8(output) ? Dtype::bf16 : output;
}

/// FP8 products with an FP32 D take a BF16 bias (cuBLAS manual, cublasLtMatmul types).
Dtype bias_dtype(Dtype output, const Mode& mode) {
  return mode.scaled && output == Dtype::fp32 ? Dtype::bf16 : addend_dtype(output);
}

Port matrix(std::string_view name, Role role, Dtype dtype, std::int64_t batch, std::int64_t rows, std::int64_t cols,
            std::int64_t pad, std::int64_t misalign, std::string_view doc) {
  Port port{.name = name, .role = role, .dtype = dtype, .batch = batch, .rows = rows, .cols = cols, .doc = doc};
  port.ld = cols + pad;
  port.batch_stride = rows * port.ld;
  port.offset_bytes = misalign * core::dtype_info(dtype).storage_bytes;
  return port;
}

Port scalar(std::string_view name, Role role, std::string_view of, std::string_view doc) {
  return {.name = name, .role = role, .dtype = Dtype::fp32, .of = of, .doc = doc};
}

/// The scales of A and B: a number each, or as their layouts say, drawn like any input, or both.
void add_scales(const GemmParams& p, std::vector<Port>& ports) {
  if (has_global_scales(p)) {
    ports.push_back(scalar("a_global_scale", Role::scale, "a", "value of A = code * a_scale_inv * a_global_scale"));
    ports.push_back(scalar("b_global_scale", Role::scale, "b", "value of B = code * b_scale_inv * b_global_scale"));
  }
  if (!has_line_scales(p)) {
    ports.push_back(scalar("a_scale_inv", Role::scale, "a", "value of A = code * a_scale_inv"));
    ports.push_back(scalar("b_scale_inv", Role::scale, "b", "value of B = code * b_scale_inv"));
    return;
  }
  for (const BlockLayout& layout : {scales_of_a(p), scales_of_b(p)}) {
    Port scales = scale_port(layout, Role::input);
    scales.fill = Fill::derived;
    scales.doc = "of rows or blocks: value = code * scale_inv";
    ports.push_back(scales);
    const auto codes = std::ranges::find(ports, layout.codes, &Port::name);
    codes->scaled_by = layout.scales;
    codes->block_rows = layout.block_rows;
    codes->block_cols = layout.block_cols;
  }
}

std::vector<Port> gemm_ports(const Params& values, const Mode& mode) {
  const auto p = from_params<GemmParams>(values);
  const Dtype output = gemm_output_dtype(p, mode);
  std::vector<Port> ports;
  ports.push_back(matrix("a", Role::input, mode.first, p.batch, p.trans_a ? p.k : p.m, p.trans_a ? p.m : p.k, p.pad_a,
                         p.misalign, "first operand, m x k (k x m with trans_a)"));
  ports.push_back(matrix("b", Role::input, mode.second, p.batch, p.trans_b ? p.n : p.k, p.trans_b ? p.k : p.n, p.pad_b,
                         p.misalign, "second operand, k x n (n x k with trans_b)"));
  if (p.beta != 0) {
    ports.push_back(
        matrix("c", Role::input, addend_dtype(output), p.batch, p.m, p.n, p.pad_d, p.misalign, "addend, m x n"));
  }
  if (p.bias) {
    ports.push_back(matrix("bias", Role::input, bias_dtype(output, mode), 1, 1, p.n, 0, 0, "row added to every row"));
  }
  if (mode.scaled) {
    add_scales(p, ports);
  }
  if (core::is_fp8(output)) {
    ports.push_back(scalar("d_scale", Role::scale, "d", "codes of D = sat(RN(value * d_scale))"));
  }
  ports.push_back(matrix("d", Role::output, output, p.batch, p.m, p.n, p.pad_d, p.misalign, "result, m x n"));
  if (core::is_fp8(output)) {
    ports.push_back(scalar("d_amax", Role::amax, "d", "max |value of D| before d_scale"));
  }
  return ports;
}

/// True if FP16 has the factor to half a unit in the last place: libraries take it in the compute type.
bool fp16_holds(double factor) {
  const double stored = core::round_to(factor, Dtype::fp16);
  return std::isfinite(stored) && std::fabs(stored - factor) <= 0x1p-11 * std::fabs(factor);
}

void check_factor(std::string_view name, double factor, const Mode& mode, std::vector<std::string>& mistakes) {
  if (mode.compute == Compute::fp16 && !fp16_holds(factor)) {
    mistakes.push_back(
        fmt::format("gemm: mode {} computes in FP16, which cannot hold {} = {:g}; it holds 0 and magnitudes "
                    "from 6.1e-05 to 65504",
                    mode.name, name, factor));
  }
}

bool output_is_legal(Dtype output, const Mode& mode) {
  if (mode.scaled) {
    const bool mixed = mode.first != mode.second;
    return output == Dtype::fp32 || output == Dtype::bf16 || output == Dtype::fp16 || output == Dtype::fp8_e4m3 ||
           (mixed && output == Dtype::fp8_e5m2);
  }
  const bool widened = output == Dtype::fp32 && mode.compute == Compute::fp32;
  return output == mode.output || widened;
}

std::vector<std::string> gemm_check(const Params& values, const Mode& mode) {
  const auto p = from_params<GemmParams>(values);
  std::vector<std::string> mistakes;
  if (!output_is_legal(gemm_output_dtype(p, mode), mode)) {
    mistakes.push_back("gemm: mode " + std::string(mode.name) + " has no output \"" + p.output + "\"" +
                       (mode.scaled
                            ? "; it has fp32, bf16, fp16, fp8_e4m3 (and fp8_e5m2 with fp8_hybrid)"
                            : "; it has " + std::string(core::dtype_info(mode.output).name) +
                                  (mode.compute == Compute::fp32 && mode.output != Dtype::fp32 ? " and fp32" : "")));
  }
  if (p.accumulate != "default" && !mode.scaled) {
    mistakes.push_back("gemm: accumulate \"" + p.accumulate + "\" applies to FP8 modes only, not to " +
                       std::string(mode.name));
  }
  if (p.in_place && (p.beta == 0 || core::is_fp8(gemm_output_dtype(p, mode)))) {
    mistakes.emplace_back(p.beta == 0 ? "gemm: in_place says that C is D, but with beta = 0 there is no C"
                                      : "gemm: in_place needs C and D in the same format, and C is never FP8");
  }
  const std::vector<std::string> of_scales = scaling_mistakes(p, mode);
  mistakes.insert(mistakes.end(), of_scales.begin(), of_scales.end());
  check_factor("alpha", p.alpha, mode, mistakes);
  check_factor("beta", p.beta, mode, mistakes);
  constexpr double kMaxElements = 0x1p40;
  const auto count = [&p](std::int64_t rows, std::int64_t cols) {
    return static_cast<double>(p.batch) * static_cast<double>(rows) * static_cast<double>(cols);
  };
  if (count(p.m, p.k + p.pad_a) > kMaxElements || count(p.k, p.n + p.pad_b) > kMaxElements ||
      count(p.m, p.n + p.pad_d) > kMaxElements) {
    mistakes.push_back("gemm: a matrix of this case has more than 2^40 elements");
  }
  return mistakes;
}

double gemm_flops(const Params& values) {
  const auto p = from_params<GemmParams>(values);
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
         static_cast<double>(p.batch);
}

bool gemm_reduces_along_rows(const Params& values, std::string_view port) {
  const auto p = from_params<GemmParams>(values);
  return port == "a" ? p.trans_a : port == "b" && !p.trans_b;
}

}  // namespace

core::Dtype gemm_output_dtype(const GemmParams& params, const Mode& mode) {
  return core::parse_dtype(params.output).value_or(mode.output);
}

bool gemm_promotes(const GemmParams& params, const Mode& mode) {
  return mode.scaled && params.accumulate != "fast";
}

const Op& gemm() {
  static const Op op{
      .name = "gemm",
      .summary = "matrix product with scale, addend, bias, epilogue and quantised output",
      .formula = "D = f(alpha * op(A) * op(B) + beta * C + bias), f = identity, relu or gelu (tanh form)",
      .source = "cuBLAS manual, cublasLtMatmul; TransformerEngine gemm.h",
      .fields = &fields_of<GemmParams>,
      .modes = kModeNames,
      .ports = &gemm_ports,
      .check = &gemm_check,
      .exact_plan = &gemm_exact_plan,
      .exact_inputs = &gemm_exact_inputs,
      .flops = &gemm_flops,
      .reduces_along_rows = &gemm_reduces_along_rows,
      .statistics = kProductStatistics,
      .multiplies_matrices = true,
  };
  return op;
}

}  // namespace numcheck::op
