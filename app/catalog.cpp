#include "catalog.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <span>
#include <vector>

#include "kernels/contract/device_fault.hpp"
#include "kernels/cublas/bindings.hpp"
#include "kernels/cublaslt/bindings.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/cudnn/bindings.hpp"
#include "kernels/harness/harness.hpp"
#include "kernels/loader/executor.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/sim.hpp"
#include "kernels/transformer_engine/bindings.hpp"
#include "kernels/unfused/bindings.hpp"
#include "model/error_model.hpp"
#include "op/activation_bwd.hpp"
#include "op/activation_fwd.hpp"
#include "op/amax.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_dropout.hpp"
#include "op/attention_fwd.hpp"
#include "op/bias_grad.hpp"
#include "op/dropout.hpp"
#include "op/fp8_recipe.hpp"
#include "op/gemm.hpp"
#include "op/grouped_gemm.hpp"
#include "op/layernorm_bwd.hpp"
#include "op/layernorm_fwd.hpp"
#include "op/moe.hpp"
#include "op/multi_tensor_scale.hpp"
#include "op/quantize.hpp"
#include "op/rmsnorm_bwd.hpp"
#include "op/rmsnorm_fwd.hpp"
#include "op/rope.hpp"
#include "op/softmax_bwd.hpp"
#include "op/softmax_fwd.hpp"
#include "op/swizzle_scales.hpp"
#include "reference/references.hpp"
#include "tolerance/attention_bwd_model.hpp"
#include "tolerance/attention_model.hpp"
#include "tolerance/gemm_model.hpp"
#include "tolerance/grouped_gemm_model.hpp"
#include "tolerance/moe_model.hpp"
#include "tolerance/tracked_model.hpp"

namespace numcheck::app {

// A build without CUDA lacks the bindings for CUDA devices but keeps their names, so that such cases are `unsupported`
// with a reason.
#ifdef NUMCHECK_HAVE_CUDA
#define ON_CUDA(backend, name) &kernels::backend::name()
#else
#define ON_CUDA(backend, name) absent(#backend, kernels::backend::kArithmetic)
#endif
#define OP(name) &op::name(), reference::name##_reference()
#define CUBLAS(name) ON_CUDA(cublas, name)
#define CUBLASLT(name) ON_CUDA(cublaslt, name)
#define CUDA(name) ON_CUDA(cuda, name)
#define CUDNN(name) ON_CUDA(cudnn, name)
#define TE(name) ON_CUDA(transformer_engine, name)
#define UNFUSED(name) ON_CUDA(unfused, name)
#define SIM(name) &kernels::sim::name()

namespace {

using kernels::Binding;

#ifndef NUMCHECK_HAVE_CUDA
const Binding* absent(std::string_view backend, model::MatrixArithmetic arithmetic) {
  static std::deque<Binding> names;
  return &names.emplace_back(Binding{backend, "", arithmetic});
}
#endif

/// One op with everything that computes or judges it.
struct Row {
  const op::Op* op;
  op::Reference reference;
  model::ErrorModelFn error_model;
  std::vector<const Binding*> bindings;  ///< the first one is what the backend `auto` means on a GPU
};

const std::vector<Row>& table() {
  // clang-format off: one row per line
  static const std::vector<Row> rows = {
      {OP(gemm), &tolerance::gemm_error_model, {CUBLASLT(gemm), CUDA(gemm), TE(gemm), SIM(gemm)}},
      {OP(grouped_gemm), &tolerance::grouped_gemm_error_model, {CUBLAS(grouped_gemm), CUBLASLT(grouped_gemm), CUDA(grouped_gemm), TE(grouped_gemm), SIM(grouped_gemm)}},
      {OP(layernorm_fwd), &tolerance::tracked_error_model, {CUDA(layernorm_fwd), CUDNN(layernorm_fwd), TE(layernorm_fwd), SIM(layernorm_fwd)}},
      {OP(layernorm_bwd), &tolerance::tracked_error_model, {CUDA(layernorm_bwd), CUDNN(layernorm_bwd), TE(layernorm_bwd), SIM(layernorm_bwd)}},
      {OP(rmsnorm_fwd), &tolerance::tracked_error_model, {CUDA(rmsnorm_fwd), CUDNN(rmsnorm_fwd), TE(rmsnorm_fwd), SIM(rmsnorm_fwd)}},
      {OP(rmsnorm_bwd), &tolerance::tracked_error_model, {CUDA(rmsnorm_bwd), CUDNN(rmsnorm_bwd), TE(rmsnorm_bwd), SIM(rmsnorm_bwd)}},
      {OP(activation_fwd), &tolerance::tracked_error_model, {CUDA(activation_fwd), TE(activation_fwd), SIM(activation_fwd)}},
      {OP(activation_bwd), &tolerance::tracked_error_model, {CUDA(activation_bwd), TE(activation_bwd), SIM(activation_bwd)}},
      {OP(bias_grad), &tolerance::tracked_error_model, {CUDA(bias_grad), TE(bias_grad), SIM(bias_grad)}},
      {OP(softmax_fwd), &tolerance::tracked_error_model, {CUDA(softmax_fwd), CUDNN(softmax_fwd), TE(softmax_fwd), SIM(softmax_fwd)}},
      {OP(softmax_bwd), &tolerance::tracked_error_model, {CUDA(softmax_bwd), CUDNN(softmax_bwd), TE(softmax_bwd), SIM(softmax_bwd)}},
      {OP(attention_fwd), &tolerance::attention_error_model, {CUDA(attention_fwd), CUDNN(attention_fwd), TE(attention_fwd), UNFUSED(attention_fwd), SIM(attention_fwd)}},
      {OP(attention_bwd), &tolerance::attention_bwd_error_model, {CUDA(attention_bwd), CUDNN(attention_bwd), TE(attention_bwd), UNFUSED(attention_bwd), SIM(attention_bwd)}},
      {OP(attention_dropout), &tolerance::tracked_error_model, {CUDA(attention_dropout), CUDNN(attention_dropout), TE(attention_dropout), SIM(attention_dropout)}},
      {OP(quantize), &tolerance::tracked_error_model, {CUDA(quantize), TE(quantize), SIM(quantize)}},
      {OP(dequantize), &tolerance::tracked_error_model, {CUDA(dequantize), TE(dequantize), SIM(dequantize)}},
      {OP(transpose), &tolerance::tracked_error_model, {CUDA(transpose), TE(transpose), SIM(transpose)}},
      {OP(swizzle_scales), &tolerance::tracked_error_model, {CUDA(swizzle_scales), TE(swizzle_scales), SIM(swizzle_scales)}},
      {OP(amax), &tolerance::tracked_error_model, {CUDA(amax), TE(amax), SIM(amax)}},
      {OP(multi_tensor_scale), &tolerance::tracked_error_model, {CUDA(multi_tensor_scale), TE(multi_tensor_scale), SIM(multi_tensor_scale)}},
      {OP(fp8_recipe), &tolerance::tracked_error_model, {CUDA(fp8_recipe), TE(fp8_recipe), SIM(fp8_recipe)}},
      {OP(rope_fwd), &tolerance::tracked_error_model, {CUDA(rope_fwd), TE(rope_fwd), SIM(rope_fwd)}},
      {OP(rope_bwd), &tolerance::tracked_error_model, {CUDA(rope_bwd), TE(rope_bwd), SIM(rope_bwd)}},
      {OP(moe_permute), &tolerance::tracked_error_model, {CUDA(moe_permute), TE(moe_permute), SIM(moe_permute)}},
      {OP(moe_unpermute), &tolerance::moe_unpermute_error_model, {CUDA(moe_unpermute), TE(moe_unpermute), SIM(moe_unpermute)}},
      {OP(router_topk), &tolerance::tracked_error_model, {CUDA(router_topk), TE(router_topk), SIM(router_topk)}},
      {OP(dropout_fwd), &tolerance::tracked_error_model, {CUDA(dropout_fwd), TE(dropout_fwd), SIM(dropout_fwd)}},
      {OP(dropout_bwd), &tolerance::tracked_error_model, {CUDA(dropout_bwd), TE(dropout_bwd), SIM(dropout_bwd)}},
  };
  // clang-format on
  return rows;
}

kernels::Bindings all_bindings() {
  static const std::vector<const Binding*> all = [] {
    std::vector<const Binding*> list;
    for (const Row& row : table()) {
      list.insert(list.end(), row.bindings.begin(), row.bindings.end());
    }
    return list;
  }();
  return all;
}

prepare::CatalogRow catalog_row(const Row& row) {
  prepare::CatalogRow out{row.op, row.reference, row.error_model, {}};
  for (const Binding* binding : row.bindings) {
    out.backends.push_back({binding->backend, binding->arithmetic});
  }
  return out;
}

}  // namespace

kernels::Bindings bindings() {
  return all_bindings();
}

prepare::Catalog catalog() {
  static const std::vector<prepare::CatalogRow> rows = [] {
    std::vector<prepare::CatalogRow> list;
    std::ranges::transform(table(), std::back_inserter(list), catalog_row);
    return list;
  }();
  return rows;
}

const op::Op* find_op(std::string_view name) {
  const prepare::CatalogRow* row = prepare::find_row(catalog(), name);
  return row == nullptr ? nullptr : row->op;
}

std::vector<BackendInfo> backends() {
  return {{"auto", "the first backend of the op (`list ops`) on a GPU, sim on a simulated device"},
          {"cublaslt", "NVIDIA cuBLASLt, loaded at run time; every heuristic algorithm can be run"},
          {"cublas", "NVIDIA cuBLAS, loaded at run time: grouped products"},
          {"cuda", "te-numcheck's own FP32 kernels, which sum in a fixed order: an independent second opinion"},
          {"cudnn", "NVIDIA cuDNN, loaded at run time: norms, softmax and attention"},
          {"transformer_engine", "the core library of an installed TransformerEngine, loaded at run time (--te-lib)"},
          {"unfused",
           "attention as frameworks compute it without a fused kernel: cuBLASLt's products and a masked softmax"},
          {"sim", "the device's arithmetic modelled on the host: no hardware evidence"}};
}

plan::Vocabulary vocabulary() {
  plan::Vocabulary words;
  for (const prepare::CatalogRow& row : catalog()) {
    words.ops.push_back(row.op);
  }
  for (const BackendInfo& backend : backends()) {
    if (backend.name != "auto") {
      words.backends.push_back(backend.name);
    }
  }
  words.lookup = &find_op;
  return words;
}

std::vector<kernels::FaultInfo> faults() {
  const std::span<const kernels::FaultInfo> memory = kernels::harness::harness_faults();
  const std::vector<kernels::FaultInfo> arithmetic = kernels::sim::faults_of(all_bindings());
  std::vector<kernels::FaultInfo> all(memory.begin(), memory.end());
  all.insert(all.end(), arithmetic.begin(), arithmetic.end());
  all.push_back(kernels::kDeviceFault);
  return all;
}

std::vector<FaultOfOps> faults_by_op() {
  const auto has = [](std::span<const kernels::FaultInfo> some, std::string_view name) {
    return std::ranges::find(some, name, &kernels::FaultInfo::name) != some.end();
  };
  std::vector<FaultOfOps> all;
  for (const kernels::FaultInfo& fault : faults()) {
    FaultOfOps& entry = all.emplace_back(FaultOfOps{fault, {}});
    const bool in_memory = has(kernels::harness::harness_faults(), fault.name);
    for (const Row& row : table()) {
      const bool on_device = fault.name == kernels::kDeviceFault.name &&
                             std::ranges::find(row.bindings, "cuda", &Binding::backend) != row.bindings.end();
      if (in_memory || on_device || has(kernels::sim::faults_of(row.bindings), fault.name)) {
        entry.ops.push_back(row.op->name);
      }
    }
  }
  return all;
}

worker::ExecutorFactory executor_factory(const std::string& lib_dir, const std::vector<std::string>& te_libs) {
  return [lib_dir, te_libs](const machine::DeviceChoice& choice) {
    return kernels::loader::make_executor(choice, {.lib_dir = lib_dir, .te_libs = te_libs, .bindings = all_bindings()});
  };
}

}  // namespace numcheck::app
