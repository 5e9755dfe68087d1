#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/strings.hpp"
#include "kernels/sim/fault_conditions.hpp"
#include "kernels/sim/fault_table.hpp"
#include "kernels/sim/gemm_scale_faults.hpp"
#include "kernels/sim/perturbation.hpp"
#include "kernels/sim/sim.hpp"

namespace numcheck::kernels::sim {
namespace {

using core::Dtype;
using model::GemmTask;

/// The block of products that duplicated_k_block adds twice.
constexpr std::int64_t kDuplicatedBlock = 16;

/// What is missing, stale or of another row at the end of k, and the stage of k that is left out.
constexpr std::int64_t kTail = 8;
constexpr std::int64_t kStage = 64;

/// amax of a tensor that was three quarters as large.
constexpr float kStaleAmax = 0.75F;

/// Obstacles are sentences; empty means that the fault can be planted.
using Obstacle = std::string (*)(const SimGemm&);
using Plant = void (*)(const SimGemm&, GemmTask&);

struct Fault {
  FaultInfo info;
  bool needs_product = true;  ///< the fault is in the product, so there must be one
  Obstacle obstacle = nullptr;
  Plant plant = nullptr;
};

/// Operands in FP32 storage run as TF32 on tensor cores.
void run_on_tensor_cores(const SimGemm& g, GemmTask& task, core::Rounding rounding) {
  const auto k_order = task.schedule.k_order;
  task.schedule = model::gemm_schedule(g.sm, *g.mode, false, true, task.schedule.split_k);
  task.schedule.k_order = k_order;
  task.conversion.dtype = Dtype::tf32;
  task.conversion.rounding = rounding;
}

void unreduced_split(const SimGemm& g, GemmTask& task) {
  model::Schedule& s = task.schedule;
  s.split_k = std::max(s.split_k, 2);
  s.reduces_slices = false;
  if (model::slices_of(s, g.params.k).size() < 2) {
    s.split_granularity = 1;
  }
}

void duplicate_block(const SimGemm& g, GemmTask& task) {
  const std::int64_t block = std::min(kDuplicatedBlock, g.params.k);
  std::vector<std::int64_t>& order = task.schedule.k_order;
  order.resize(static_cast<std::size_t>(g.params.k + block));
  std::iota(order.begin(), order.begin() + block, 0);
  std::iota(order.begin() + block, order.end(), 0);
}

std::vector<std::int64_t> whole_k(const SimGemm& g) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(g.params.k));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

void leave_out(const SimGemm& g, GemmTask& task, std::int64_t begin, std::int64_t end) {
  task.schedule.k_order = whole_k(g);
  task.schedule.k_order.erase(task.schedule.k_order.begin() + begin, task.schedule.k_order.begin() + end);
}

void double_head_of_second_half(const SimGemm& g, GemmTask& task) {
  task.schedule.k_order = whole_k(g);
  const std::int64_t half = g.params.k / 2;
  task.schedule.k_order.insert(task.schedule.k_order.begin() + half, half);
}

void repeat_earlier_stage(const SimGemm& g, GemmTask& task) {
  task.schedule.k_order = whole_k(g);
  for (auto t = task.schedule.k_order.end() - kTail; t != task.schedule.k_order.end(); ++t) {
    *t -= kStage;
  }
}

void misread_a(const SimGemm& g, GemmTask& task) {
  model::MatrixView& a = task.a;
  const bool stored_by_rows = !g.params.trans_a;
  a.row_stride = stored_by_rows ? 1 : g.params.k;
  a.column_stride = stored_by_rows ? g.params.m : 1;
}

void split_operands_in_core(const SimGemm& g, GemmTask& task) {
  run_on_tensor_cores(g, task, core::Rounding::nearest_even);
  task.conversion.dtype = Dtype::fp32;
  task.three_tf32 = true;
}

void accumulate_in_fp16(const SimGemm&, GemmTask& task) {
  task.schedule.step.rho = model::Rounding::rne_fp16;
  task.schedule.promotion_interval = 0;
}

constexpr std::array kFaults = {
    Fault{{"tf32_silently", "FP32 operands are rounded to TF32 and multiplied on tensor cores"},
          true,
          &needs_fp32_class,
          [](const SimGemm& g, GemmTask& t) { run_on_tensor_cores(g, t, core::Rounding::nearest_even); }},
    Fault{{"tf32_truncated_inputs", "FP32 operands are truncated to TF32 and multiplied on tensor cores"},
          true,
          &needs_fp32_operands,
          [](const SimGemm& g, GemmTask& t) { run_on_tensor_cores(g, t, core::Rounding::toward_zero); }},
    Fault{{"bf16_inputs", "operands are rounded to BF16"},
          true,
          &needs_more_than_bf16,
          [](const SimGemm&, GemmTask& t) { t.conversion.dtype = Dtype::bf16; }},
    Fault{{"tf32x3_in_core", "FP32 as three TF32 products whose sums stay inside the tensor core"},
          true,
          &needs_fp32_class,
          &split_operands_in_core},
    Fault{{"fp16_accumulation", "sums are rounded to FP16 after every step"},
          true,
          &needs_wide_accumulator,
          &accumulate_in_fp16},
    Fault{{"fast_accumulation", "FP8 sums are not promoted although split accumulation was requested"},
          true,
          &needs_promotion,
          [](const SimGemm&, GemmTask& t) { t.schedule.promotion_interval = 0; }},
    Fault{{"promotion_512", "FP8 sums are promoted every 512 products"},
          true,
          &needs_promotion,
          [](const SimGemm&, GemmTask& t) { t.schedule.promotion_interval = 512; }},
    Fault{{"missing_k_tail", "the last product of every sum is left out"},
          true,
          &no_obstacle,
          [](const SimGemm&, GemmTask& t) {
            --t.a.columns;
            --t.b.rows;
          }},
    Fault{{"missing_k_tail_8", "the last 8 products of every sum are left out"},
          true,
          &needs_two_stages,
          [](const SimGemm& g, GemmTask& t) { leave_out(g, t, g.params.k - kTail, g.params.k); }},
    Fault{{"missing_k_stage", "products 64 to 127 of every sum are left out"},
          true,
          &needs_uncut_stages,
          [](const SimGemm& g, GemmTask& t) { leave_out(g, t, kStage, 2 * kStage); }},
    Fault{{"doubled_split_head", "the first product of the second half of k is added twice"},
          true,
          &needs_uncut_stages,
          &double_head_of_second_half},
    Fault{{"stale_k_tail", "instead of the last 8 products of every sum, those 64 earlier are added"},
          true,
          &needs_two_stages,
          &repeat_earlier_stage},
    Fault{{"k_tail_of_next_row", "the last 8 elements of every row of A but the last are read from the next row"},
          true,
          &needs_tail_and_next_row,
          [](const SimGemm&, GemmTask& t) { t.tail_from_next_row = kTail; }},
    Fault{{"duplicated_k_block", "the first 16 products of every sum are added twice"},
          true,
          &needs_uncut_k,
          &duplicate_block},
    Fault{{"unreduced_split_k", "only the first slice of split-K reaches the output"},
          true,
          &needs_uncut_products,
          &unreduced_split},
    Fault{{"transposed_a", "A is read as if it were stored transposed"}, true, &needs_dense_a, &misread_a},
    Fault{{"transposed_output", "D is stored transposed"},
          true,
          &needs_square_output,
          [](const SimGemm&, GemmTask& t) { t.transposes_output = true; }},
    Fault{{"scale_half", "the product is scaled by half the requested factor"},
          true,
          &no_obstacle,
          [](const SimGemm&, GemmTask& t) { t.epilogue.scale *= 0.5F; }},
    Fault{{"scale_1_01", "the product is scaled by 1.01 times the requested factor"},
          true,
          &no_obstacle,
          [](const SimGemm&, GemmTask& t) { t.epilogue.scale *= 1.01F; }},
    Fault{{"block_scale_misindexed", "A's scales are those of the block before along k"},
          true,
          &needs_blocks_along_k,
          &misindex_blocks},
    Fault{{"column_scale_misindexed", "B's scales are those of the next column, or of the next block of columns"},
          true,
          &needs_scales_of_columns,
          &misindex_columns},
    Fault{{"block_scales_transposed",
           "A's scales are read row by row where they are stored block by block, or the reverse"},
          true,
          &needs_table_of_scales,
          &transpose_scales},
    Fault{{"block_scales_missing", "B's scales are taken for 1"}, true, &needs_line_scales, &leave_scales_out},
    Fault{{"block_scales_in_bf16", "A's scales are rounded to BF16"}, true, &needs_fp32_scales, &round_scales},
    Fault{{"beta_ignored", "C is not added"},
          false,
          &needs_beta,
          [](const SimGemm&, GemmTask& t) { t.epilogue.c.reset(); }},
    Fault{{"product_rounded", "the product is rounded to the output's format before C is added"},
          true,
          &needs_narrow_addend,
          [](const SimGemm& g, GemmTask& t) { t.epilogue.product_format = g.output; }},
    Fault{{"sum_rounded", "the sum is rounded to the output's format before bias and activation"},
          true,
          &needs_narrow_epilogue,
          [](const SimGemm& g, GemmTask& t) { t.epilogue.sum_format = g.output; }},
    Fault{{"leaky_relu", "relu lets 1e-4 of negative sums through"},
          true,
          &needs_relu,
          [](const SimGemm&, GemmTask& t) { t.epilogue.leak = 1e-4F; }},
    Fault{{"approximate_tanh", "the tanh of gelu errs by up to 7e-6"},
          true,
          &needs_gelu,
          [](const SimGemm&, GemmTask& t) { t.epilogue.tanh_error = 7e-6F; }},
    Fault{{"bias_missing", "the bias is not added"},
          false,
          &needs_bias,
          [](const SimGemm&, GemmTask& t) { t.epilogue.bias.reset(); }},
    Fault{{"gelu_erf", "gelu uses erf where the tanh form was requested"},
          false,
          &needs_gelu,
          [](const SimGemm&, GemmTask& t) { t.epilogue.activation = model::Activation::gelu_erf; }},
    Fault{{"bf16_output_in_fp32", "an FP32 output holds numbers rounded to BF16"},
          false,
          &needs_fp32_output,
          [](const SimGemm&, GemmTask& t) { t.epilogue.detour = Dtype::bf16; }},
    Fault{{"tf32_output_in_fp32", "an FP32 output holds numbers rounded to TF32"},
          false,
          &needs_fp32_output,
          [](const SimGemm&, GemmTask& t) { t.epilogue.detour = Dtype::tf32; }},
    Fault{{"double_rounded_output", "a BF16 output is rounded to FP16 first"},
          false,
          &needs_bf16_output,
          [](const SimGemm&, GemmTask& t) { t.epilogue.detour = Dtype::fp16; }},
    Fault{{"truncated_output", "a 16- or 8-bit output is truncated instead of rounded"},
          false,
          &needs_narrow_output,
          [](const SimGemm&, GemmTask& t) { t.epilogue.rounding = core::Rounding::toward_zero; }},
    Fault{{"fp16_detour_fp8_output", "an FP8 output is rounded to FP16 first"},
          false,
          &needs_fp8_output,
          [](const SimGemm&, GemmTask& t) { t.epilogue.detour = Dtype::fp16; }},
    Fault{{"saturate_missing", "an FP8 output beyond the largest number becomes NaN or infinity"},
          false,
          &needs_fp8_output,
          [](const SimGemm&, GemmTask& t) { t.epilogue.overflow = core::Overflow::ieee; }},
    Fault{{"stale_amax", "amax is that of an earlier, smaller tensor"},
          false,
          &needs_fp8_output,
          [](const SimGemm&, GemmTask&) {}},
    Fault{{"denormals_flushed", "subnormal operands and outputs become zero"},
          false,
          &no_obstacle,
          [](const SimGemm&, GemmTask& t) {
            t.conversion.flushes_subnormals = true;
            t.epilogue.flushes_subnormals = true;
          }},
    Fault{{"nan_dropped", "NaN outputs become zero"},
          false,
          &no_obstacle,
          [](const SimGemm&, GemmTask& t) { t.epilogue.drops_nan = true; }},
};

const std::vector<FaultInfo>& infos() {
  static const std::vector<FaultInfo> all = [] {
    std::vector<FaultInfo> list;
    for (const Fault& fault : kFaults) {
      list.push_back(fault.info);
    }
    return list;
  }();
  return all;
}

const Fault& find_fault(std::string_view name) {
  const auto* found = std::ranges::find_if(kFaults, [name](const Fault& f) { return f.info.name == name; });
  if (found != kFaults.end()) {
    return *found;
  }
  std::vector<std::string_view> names;
  for (const FaultInfo& info : infos()) {
    names.push_back(info.name);
  }
  const std::string_view nearest = core::nearest_name(name, names);
  throw core::UsageError(fmt::format("unknown fault \"{}\"{}", name,
                                     nearest.empty()
                                         ? "; a simulated device has " + fmt::format("{}", fmt::join(names, " "))
                                         : fmt::format(" (did you mean \"{}\"?)", nearest)));
}

}  // namespace

std::span<const FaultInfo> sim_faults() noexcept {
  return infos();
}

std::string fault_obstacle(std::string_view name, const SimGemm& gemm) {
  const Fault& fault = find_fault(name);
  std::string reason = fault.obstacle(gemm);
  if (gemm.params.m == 0 || gemm.params.n == 0) {
    reason = "there are no outputs";
  } else if (reason.empty() && fault.needs_product && gemm.params.k == 0) {
    reason = "there are no products";
  }
  return reason.empty() ? reason : fmt::format("the fault {} does not apply: {}", name, reason);
}

void plant_fault(std::string_view fault, const SimGemm& gemm, GemmTask& task) {
  const auto perturbation = perturbation_named(fault, gemm.params.batch * gemm.params.m);
  if (perturbation) {
    task.epilogue.perturbation = perturbs_first_output(fault) ? perturbation : std::nullopt;
  } else if (!fault.empty()) {
    find_fault(fault).plant(gemm, task);
    if (task.scales.parts == 1) {  // one scale, of however many products
      const auto products = static_cast<std::int64_t>(task.schedule.k_order.size());
      task.scales.products = std::max(task.scales.products, products);
    }
  }
}

float amax_with_fault(std::string_view fault, float amax) {
  return perturbed_amax(fault, fault == "stale_amax" ? kStaleAmax * amax : amax);
}

}  // namespace numcheck::kernels::sim
