#include "library_case.hpp"

#include <map>
#include <string>

#include "data/distribution.hpp"
#include "op/gemm.hpp"
#include "op/gemm_scaling.hpp"
#include "op/output_format.hpp"
#include "random_case.hpp"

namespace numcheck::detect {
namespace {

using op::GemmParams;

constexpr std::int64_t kFp8Multiple = 16;

std::int64_t multiple(std::int64_t value, std::int64_t of) {
  return (value + of - 1) / of * of;
}

/// The nearest mode that the backend has.
std::string_view mode_for(std::string_view backend, const op::Mode& mode) {
  static const std::map<std::string_view, std::string_view> kTransformerEngine = {
      {"fp32", "tf32"},          {"fp32_pedantic", "tf32"}, {"fp32_fast16f", "tf32"},
      {"fp32_fast16bf", "tf32"}, {"bf16x9", "tf32"},        {"fp16_acc16", "fp16"}};
  static const std::map<std::string_view, std::string_view> kPlain = {{"tf32", "fp32"},
                                                                      {"fp32_fast16f", "fp32"},
                                                                      {"fp32_fast16bf", "fp32_pedantic"},
                                                                      {"bf16x9", "fp32"},
                                                                      {"fp16_acc16", "fp16"}};
  if (mode.name == "fp4_e2m1" && backend != "cuda") {
    return "fp8_e4m3";  // of FP4 libraries need sm_100
  }
  if (backend != "transformer_engine" && backend != "cuda") {
    return mode.name;
  }
  const auto& nearest = backend == "cuda" ? kPlain : kTransformerEngine;
  const auto found = nearest.find(mode.name);
  return found == nearest.end() ? mode.name : found->second;
}

/// Products of codes as the hardware accepts them: A B^T, rows and pointers at multiples of 16 bytes.
void fit_fp8(GemmParams& p) {
  p.scaling = op::has_scales_in_products(p) ? "1x128_1x128" : p.scaling;  // which need sm_100
  p.trans_a = false;
  p.trans_b = true;
  p.m = multiple(p.m, kFp8Multiple);
  p.n = multiple(p.n, kFp8Multiple);
  p.k = multiple(p.k, kFp8Multiple);
  p.pad_a = p.pad_b = p.pad_d = p.misalign = 0;
}

void fit_transformer_engine(GemmParams& p, bool fp8_output) {
  p.pad_a = p.pad_b = p.pad_d = p.misalign = 0;
  p.batch = 1;
  p.epilogue = p.epilogue == "relu" ? "gelu" : p.epilogue;
  if (op::has_line_scales(p)) {
    p.epilogue = "none";
    p.scaling = p.scaling == "outer_vector" ? "1x128_128x128" : p.scaling;
    p.accumulate = "split";
  }
  p.beta = fp8_output ? 0 : p.beta;
}

void draw_normal(plan::Case& c) {
  c.inputs.common = data::make_distribution("normal");
  c.inputs.ports.clear();
}

/// Clean cases avoid what cuBLASLt 13.1 was found to do wrong on an H200. Its amax of an FP8 output includes what its
/// tiles hold beyond D, where bias is added to nothing, and is NaN for some D with a NaN, which it skips in others.
/// An FP16 sum overflows before its epilogue, or between its slices, where D itself would not: gelu is NaN then, not 0.
void avoid_known_faults(plan::Case& c, GemmParams& p, core::Dtype output) {
  const std::string& drawn = c.inputs.common.name;
  const bool wide =
      drawn == "log_uniform" || drawn == "activations" || c.inputs.ports.contains("a") || c.inputs.ports.contains("b");
  if (core::is_fp8(output)) {
    p.bias = false;
    c.inputs.ports.erase("bias");
  }
  if (core::is_fp8(output) && c.inputs.common.name == "specials") {
    draw_normal(c);
  }
  if (output == core::Dtype::fp16 && (wide || p.epilogue == "gelu")) {
    draw_normal(c);
  }
}

/// Outputs and accumulators that only the original modes of the case have.
void fit_mode(GemmParams& p, const op::Mode& mode) {
  if (!mode.scaled) {
    p.accumulate = "default";
    p.output = p.output == "fp32" && mode.compute == op::Compute::fp32 ? "fp32" : "default";
  }
}

}  // namespace

plan::Case library_case(std::uint64_t seed, std::uint64_t index, std::string_view backend) {
  plan::Case c = random_case(seed, index).c;
  c.mode = op::find_mode(mode_for(backend, *c.mode));
  c.backend = backend;
  auto p = op::from_params<GemmParams>(c.params);
  fit_mode(p, *c.mode);
  const bool fp8_output = core::is_fp8(op::gemm_output_dtype(p, *c.mode));
  if (c.mode->scaled && backend == "cuda") {
    p.output = fp8_output ? "default" : p.output;
  } else if (c.mode->scaled) {
    fit_fp8(p);
  }
  if (backend == "transformer_engine") {
    fit_transformer_engine(p, fp8_output);
  }
  if (backend == "cublaslt" || backend == "transformer_engine") {
    avoid_known_faults(c, p, op::gemm_output_dtype(p, *c.mode));
  }
  p.in_place = p.beta != 0 && !fp8_output && (backend == "transformer_engine" || index % 2 == 0);
  if (p.beta == 0) {
    c.inputs.ports.erase("c");
  }
  c.params = op::to_params(p);
  plan::identify(c);
  return c;
}

}  // namespace numcheck::detect
