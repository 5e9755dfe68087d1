// Planted arithmetic faults: each changes the bits of a case meant for it and refuses a case that it cannot change.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/unit/sim/device.hpp"

namespace {

using namespace numcheck;
using testing_sim::SimDevice;

op::GemmParams base() {
  op::GemmParams p;
  p.m = 24;
  p.n = 24;
  p.k = 700;
  return p;
}

struct Meant {
  std::string mode;
  op::GemmParams params;
};

/// A case in which the fault shows, by name.
const std::map<std::string, Meant>& meant_cases() {
  static const auto all = [] {
    op::GemmParams fp32_output = base();
    fp32_output.output = "fp32";
    op::GemmParams fp8_output = base();
    fp8_output.output = "fp8_e4m3";
    op::GemmParams addends = base();
    addends.beta = 0.5;
    addends.bias = true;
    addends.epilogue = "gelu";
    op::GemmParams deep = base();
    deep.k = 192;
    op::GemmParams relu = base();
    relu.epilogue = "relu";
    op::GemmParams blocks = fp32_output;
    blocks.m = blocks.n = blocks.k = 256;
    blocks.scaling = "1x128_128x128";
    blocks.trans_b = true;
    return std::map<std::string, Meant>{{"missing_k_tail_8", {"bf16", deep}},
                                        {"missing_k_stage", {"fp32", deep}},
                                        {"doubled_split_head", {"fp16", deep}},
                                        {"stale_k_tail", {"tf32", deep}},
                                        {"k_tail_of_next_row", {"fp8_e4m3", deep}},
                                        {"tf32_silently", {"fp32", base()}},
                                        {"tf32_truncated_inputs", {"tf32", base()}},
                                        {"bf16_inputs", {"fp32", base()}},
                                        {"tf32x3_in_core", {"fp32", base()}},
                                        {"fp16_accumulation", {"fp16", base()}},
                                        {"fast_accumulation", {"fp8_e4m3", fp32_output}},
                                        {"promotion_512", {"fp8_hybrid", fp32_output}},
                                        {"missing_k_tail", {"bf16", base()}},
                                        {"duplicated_k_block", {"fp16", base()}},
                                        {"unreduced_split_k", {"bf16", base()}},
                                        {"transposed_a", {"fp32", base()}},
                                        {"transposed_output", {"bf16", base()}},
                                        {"scale_half", {"fp8_e4m3", base()}},
                                        {"scale_1_01", {"fp32", base()}},
                                        {"beta_ignored", {"fp32", addends}},
                                        {"product_rounded", {"bf16", addends}},
                                        {"sum_rounded", {"fp16", addends}},
                                        {"approximate_tanh", {"fp32", addends}},
                                        {"bias_missing", {"bf16", addends}},
                                        {"gelu_erf", {"fp32", addends}},
                                        {"leaky_relu", {"bf16", relu}},
                                        {"block_scale_misindexed", {"fp8_e4m3", blocks}},
                                        {"column_scale_misindexed", {"fp8_e4m3", blocks}},
                                        {"block_scales_transposed", {"fp8_e4m3", blocks}},
                                        {"block_scales_missing", {"fp8_e4m3", blocks}},
                                        {"block_scales_in_bf16", {"fp8_e4m3", blocks}},
                                        {"bf16_output_in_fp32", {"fp32", base()}},
                                        {"tf32_output_in_fp32", {"fp32", base()}},
                                        {"double_rounded_output", {"bf16", base()}},
                                        {"truncated_output", {"bf16", base()}},
                                        {"fp16_detour_fp8_output", {"fp8_e4m3", fp8_output}},
                                        {"saturate_missing", {"fp8_e4m3", fp8_output}},
                                        {"stale_amax", {"fp8_e4m3", fp8_output}},
                                        {"denormals_flushed", {"fp32", base()}},
                                        {"nan_dropped", {"fp16", base()}}};
  }();
  return all;
}

bool same(const std::vector<double>& x, const std::vector<double>& y) {
  if (x.size() != y.size()) {
    return false;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] != y[i] && !(std::isnan(x[i]) && std::isnan(y[i]))) {
      return false;
    }
  }
  return true;
}

/// Data that a fault needs before it can show.
void prepare(SimDevice& device, const std::string& fault) {
  std::vector<double> a = device.get("a");
  if (fault == "nan_dropped") {
    a[5] = std::nan("");
  } else if (fault == "denormals_flushed") {
    for (double& x : a) {
      x = std::ldexp(x, -126);
    }
  } else if (fault == "saturate_missing") {
    device.set("d_scale", {64});
  } else if (fault == "fp16_detour_fp8_output") {
    // 1 + 2^-4 + 2^-13 is just above a tie of E4M3 and rounds up; FP16 makes it the tie, which rounds to even, down.
    a.assign(a.size(), 0);
    std::vector<double> b(device.get("b").size(), 0);
    for (std::size_t i = 0; i < 24; ++i) {
      a[i * 700] = b[i] = 1;
      a[i * 700 + 1] = b[24 + i] = 0x1p-2;
      a[i * 700 + 2] = 0x1p-6;
      b[48 + i] = 0x1p-7;
    }
    device.set("b", b);
  }
  device.set("a", a);
  for (const char* port : {"a_scale_inv", "b_scale_inv"}) {
    if (fault.starts_with("block_scale") || fault.starts_with("column_scale")) {
      std::vector<double> scales = device.get(port);
      for (std::size_t i = 0; i < scales.size(); ++i) {
        scales[i] = 0x1.01p-3 * static_cast<double>(1 + i % 7);  // BF16 holds none of them
      }
      device.set(port, scales);
    }
  }
}

TEST(SimFaults, the_table_is_complete) {
  EXPECT_EQ(kernels::sim::sim_faults().size(), meant_cases().size());
  for (const kernels::FaultInfo& fault : kernels::sim::sim_faults()) {
    EXPECT_TRUE(meant_cases().contains(std::string(fault.name))) << fault.name;
    EXPECT_FALSE(fault.doc.empty());
  }
}

TEST(SimFaults, each_changes_its_case) {
  const auto backend = kernels::sim::make_backend(90);
  for (const auto& [fault, meant] : meant_cases()) {
    SimDevice device(*backend, meant.params, meant.mode.c_str());
    prepare(device, fault);
    const auto support = device.supports(fault);
    ASSERT_TRUE(support.yes) << fault << ": " << support.reason;
    const auto clean = device.run();
    const double clean_amax = fault == "stale_amax" ? device.get("d_amax")[0] : 0;
    const auto faulty = device.run(fault);
    if (fault == "stale_amax") {
      EXPECT_TRUE(same(clean, faulty));
      EXPECT_NE(device.get("d_amax")[0], clean_amax);
    } else {
      EXPECT_FALSE(same(clean, faulty)) << fault;
    }
    EXPECT_TRUE(same(device.run(), clean)) << fault << " has left something behind";
  }
}

TEST(SimFaults, refuse_cases_that_they_cannot_change) {
  const auto backend = kernels::sim::make_backend(90);
  op::GemmParams small = base();
  small.k = 1;
  small.n = 7;
  small.pad_a = 4;
  // BF16, one product, no addend: nothing for these to spoil.
  SimDevice device(*backend, small, "bf16");
  for (const char* fault :
       {"tf32_silently", "tf32_truncated_inputs", "bf16_inputs", "tf32x3_in_core", "fast_accumulation", "promotion_512",
        "unreduced_split_k", "transposed_a", "transposed_output", "beta_ignored", "product_rounded", "sum_rounded",
        "approximate_tanh", "bias_missing", "gelu_erf", "bf16_output_in_fp32", "fp16_detour_fp8_output",
        "saturate_missing", "stale_amax"}) {
    const auto support = device.supports(fault);
    EXPECT_FALSE(support.yes) << fault;
    EXPECT_NE(support.reason.find(fault), std::string::npos) << support.reason;
  }
  SimDevice narrow(*backend, small, "fp32");
  for (const char* fault : {"truncated_output", "double_rounded_output", "fp16_accumulation"}) {
    EXPECT_FALSE(narrow.supports(fault).yes) << fault;
  }
  op::GemmParams empty = base();
  empty.k = 0;
  EXPECT_FALSE(SimDevice(*backend, empty, "fp32").supports("scale_half").yes);
  op::GemmParams fast = base();
  fast.accumulate = "fast";
  EXPECT_FALSE(SimDevice(*backend, fast, "fp8_e4m3").supports("fast_accumulation").yes);
}

TEST(SimFaults, unknown_names_get_a_suggestion) {
  const auto backend = kernels::sim::make_backend(90);
  SimDevice device(*backend, base(), "fp32");
  try {
    static_cast<void>(device.supports("scale_haff"));
    FAIL() << "accepted";
  } catch (const core::UsageError& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean \"scale_half\""), std::string::npos) << e.what();
  }
}

TEST(SimFaults, missing_tail_of_a_single_product_leaves_nothing) {
  const auto backend = kernels::sim::make_backend(90);
  op::GemmParams one = base();
  one.k = 1;
  SimDevice device(*backend, one, "fp32");
  for (const double d : device.run("missing_k_tail")) {
    EXPECT_EQ(d, 0);
  }
}

TEST(SimFaults, unreduced_split_holds_the_first_half) {
  const auto backend = kernels::sim::make_backend(90);
  op::GemmParams p = base();
  p.k = 16;
  SimDevice device(*backend, p, "fp32");
  std::vector<double> b = device.get("b");
  for (std::size_t i = b.size() / 2; i < b.size(); ++i) {
    b[i] = 0;
  }
  const auto faulty = device.run("unreduced_split_k");
  device.set("b", b);
  EXPECT_EQ(device.run(), faulty);
}

}  // namespace
