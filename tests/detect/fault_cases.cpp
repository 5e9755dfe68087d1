#include "fault_cases.hpp"

#include "data/distribution.hpp"
#include "op/gemm.hpp"

namespace numcheck::detect {
namespace {

using op::GemmParams;

/// 96 x 80 outputs: not square, no multiple of a 64 x 64 tile.
GemmParams shape(std::int64_t k) {
  GemmParams p;
  p.m = 96;
  p.n = 80;
  p.k = k;
  return p;
}

plan::Case make_case(std::string_view mode, const GemmParams& p, std::string_view distribution = "normal") {
  plan::Case c;
  c.op = &op::gemm();
  c.mode = op::find_mode(mode);
  c.params = op::to_params(p);
  c.backend = "sim";
  c.inputs.common = data::make_distribution(distribution);
  c.seed = 20250101;
  plan::identify(c);
  return c;
}

GemmParams with_output(GemmParams p, std::string_view output) {
  p.output = output;
  return p;
}

plan::Case scaled_normal(std::string_view mode, const GemmParams& p, double sigma) {
  plan::Case c = make_case(mode, p);
  c.inputs.common.params.at(0) = sigma;
  plan::identify(c);
  return c;
}

/// Few outputs of long sums: no bound is exceeded, only statistics can tell.
GemmParams long_sums() {
  GemmParams p = shape(4096);
  p.m = 40;
  p.n = 32;
  return p;
}

void add_precision_faults(std::vector<FaultCase>& out) {
  const auto statistics = [&out](std::string fault, plan::Case c, std::string gate, std::string also) {
    out.push_back({.fault = std::move(fault),
                   .c = std::move(c),
                   .gate = std::move(gate),
                   .also = std::move(also),
                   .classify = false});
  };
  for (const std::string_view mode : {"fp32", "fp32_pedantic"}) {
    out.push_back({.fault = "tf32_silently", .c = make_case(mode, shape(256)), .gate = "class", .also = "G2 rms"});
    statistics("tf32_silently", make_case(mode, shape(256)), "G1 bound", "G2 rms");
    statistics("tf32_silently", make_case(mode, long_sums()), "G2 rms", "G2 max");
    statistics("bf16_inputs", make_case(mode, long_sums()), "G2 rms", "G2 q999");
  }
  out.push_back({.fault = "bf16_inputs", .c = make_case("fp32", shape(64)), .gate = "class"});
  out.push_back({.fault = "tf32_truncated_inputs", .c = make_case("tf32", shape(256)), .gate = "class"});
  statistics("tf32_truncated_inputs", make_case("tf32", shape(256)), "G3 slope", {});
  statistics("tf32_truncated_inputs", make_case("tf32", long_sums()), "G3 slope", {});
  statistics("tf32_truncated_inputs", make_case("fp32", long_sums()), "G2 rms", "G3 slope");
  statistics("bf16_inputs", make_case("tf32", shape(256)), "G2 rms", "G2 q999");
  statistics("bf16_inputs", make_case("fp16", with_output(shape(256), "fp32")), "G1 bound", "G2 rms");
  statistics("bf16_inputs", make_case("fp16", with_output(long_sums(), "fp32")), "G2 rms", "G2 q999");
  statistics("bf16_inputs", make_case("fp16", shape(256)), "G1 bound", "G4 ratio");
  statistics("tf32x3_in_core", make_case("fp32", shape(1024)), "G2 rms", "G3 slope");
  statistics("fp16_accumulation", make_case("bf16", with_output(long_sums(), "fp32")), "G1 bound", "G2 rms");
  statistics("fp16_accumulation", make_case("fp16", shape(512)), "G1 bound", "G4 ratio");
}

void add_accumulation_faults(std::vector<FaultCase>& out) {
  const auto add = [&out](std::string fault, plan::Case c, std::string gate) {
    out.push_back({.fault = std::move(fault), .c = std::move(c), .gate = std::move(gate)});
  };
  GemmParams small = with_output(shape(4096), "fp32");
  small.m = small.n = 48;
  add("fast_accumulation", make_case("fp8_e4m3", small), "G2 rms");
  small.k = 1024;
  add("fast_accumulation", make_case("fp8_e4m3", small, "exact"), "exact");
  add("promotion_512", make_case("fp8_e4m3", small, "exact"), "exact");
  small.k = 512;
  add("promotion_512", make_case("fp8_e4m3", small, "exact"), "exact");
  for (const std::string_view mode : {"fp32", "tf32", "bf16", "fp16_acc16", "fp8_e4m3"}) {
    const std::string first = "G1 bound";
    add("missing_k_tail", make_case(mode, shape(64)), first);
    add("missing_k_tail", make_case(mode, shape(64), "exact"), "exact");
    add("duplicated_k_block", make_case(mode, shape(100)), first);
    add("unreduced_split_k", make_case(mode, shape(128)), first);
    add("transposed_a", make_case(mode, shape(96)), first);
    add("scale_half", make_case(mode, shape(64)), first);
    const bool coarse = mode == "fp16_acc16" || mode == "fp8_e4m3";
    add("scale_1_01", make_case(mode, shape(64)), coarse ? "G2 rms" : first);
  }
  GemmParams square = shape(64);
  square.n = square.m;
  add("transposed_output", make_case("fp32", square), "G1 bound");
  add("transposed_output", make_case("bf16", square), "G1 bound");
}

void add_epilogue_faults(std::vector<FaultCase>& out) {
  const auto add = [&out](std::string fault, plan::Case c, std::string gate, std::string also = {}) {
    out.push_back({.fault = std::move(fault), .c = std::move(c), .gate = std::move(gate), .also = std::move(also)});
  };
  GemmParams p = shape(64);
  p.beta = 0.5;
  p.bias = true;
  add("beta_ignored", make_case("bf16", p), "G1 bound");
  add("beta_ignored", make_case("fp32", p, "exact"), "exact");
  add("bias_missing", make_case("bf16", p), "G1 bound");
  add("bias_missing", make_case("fp8_e4m3", p), "G1 bound");
  p = shape(64);
  p.beta = 1;
  add("product_rounded", make_case("bf16", p), "G1 bound", "G4 ratio");
  add("product_rounded", make_case("fp16", p), "G1 bound", "G4 ratio");
  p = shape(64);
  p.bias = true;
  add("sum_rounded", make_case("bf16", p), "G1 bound", "G4 ratio");
  p.epilogue = "gelu";
  add("sum_rounded", make_case("fp16", p), "G1 bound", "G4 ratio");
  p = shape(8);
  p.epilogue = "gelu";
  add("approximate_tanh", make_case("fp32", p), "G1 bound", "G2 rms");
  p = shape(64);
  p.epilogue = "gelu";
  p.alpha = 0.125;
  add("gelu_erf", make_case("fp32", p), "G1 bound");
  add("gelu_erf", make_case("bf16", with_output(p, "fp32")), "G1 bound");
  add("gelu_erf", make_case("fp16", p), "G1 bound");
  add("bf16_output_in_fp32", make_case("fp32", shape(64)), "class");
  add("bf16_output_in_fp32", make_case("bf16", with_output(shape(64), "fp32")), "G1 bound");
  add("double_rounded_output", make_case("bf16", shape(64)), "G1 bound");
  add("truncated_output", make_case("bf16", shape(64)), "G1 bound", "G4 ratio");
  add("truncated_output", make_case("fp16", shape(64)), "G1 bound", "G4 ratio");
  add("truncated_output", make_case("fp8_e4m3", shape(64)), "G3 slope", "G4 ratio");
  add("truncated_output", make_case("fp8_e4m3", with_output(shape(64), "fp8_e4m3")), "G1 bound", "G4 ratio");
  // Where the accumulator has few bits, its error hides that of a double rounding.
  out.push_back({.fault = "fp16_detour_fp8_output",
                 .c = make_case("fp8_e4m3", with_output(shape(64), "fp8_e4m3")),
                 .sm = 100,
                 .gate = "G1 bound"});
  add("stale_amax", make_case("fp8_e4m3", with_output(shape(64), "fp8_e4m3")), "G1 bound");
  add("stale_amax", make_case("fp8_hybrid", with_output(shape(64), "fp8_e5m2")), "G1 bound");
  add("saturate_missing", make_case("fp8_e4m3", with_output(shape(64), "fp8_e4m3"), "outliers"), "G0 pattern");
  add("denormals_flushed", scaled_normal("fp16", shape(64), 1e-3), "G1 bound");
  add("nan_dropped", make_case("fp32", shape(16), "specials"), "G0 pattern");
  add("nan_dropped", make_case("fp8_e4m3", shape(16), "specials"), "G0 pattern");
}

void add_memory_faults(std::vector<FaultCase>& out) {
  const auto add = [&out](std::string fault, plan::Case c, std::string gate) {
    out.push_back({.fault = std::move(fault), .c = std::move(c), .gate = std::move(gate)});
  };
  for (const std::string_view mode : {"fp32", "bf16"}) {
    add("bit_flip", make_case(mode, shape(64)), "G1 bound");
    add("stale_tile", make_case(mode, shape(64)), "G1 bound");
    add("unwritten_tile", make_case(mode, shape(64)), "G0 pattern");
    add("write_past_end", make_case(mode, shape(64)), "G0 guards");
    add("nan_written", make_case(mode, shape(64)), "G0 pattern");
    add("race", make_case(mode, shape(64)), "G0 determinism");
    add("swapped_rows", make_case(mode, shape(64)), "G1 bound");
    add("input_overwritten", make_case(mode, shape(64)), "G0 guards");
    add("workspace_overrun", make_case(mode, shape(64)), "G0 guards");
  }
  GemmParams padded = shape(64);
  padded.pad_d = 3;
  padded.misalign = 1;
  add("write_past_end", make_case("fp8_e4m3", padded), "G0 guards");
}

}  // namespace

std::vector<FaultCase> fault_cases() {
  std::vector<FaultCase> out;
  add_precision_faults(out);
  add_accumulation_faults(out);
  add_epilogue_faults(out);
  add_memory_faults(out);
  return out;
}

}  // namespace numcheck::detect
