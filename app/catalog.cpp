#include "catalog.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <span>
#include <vector>

#include "kernels/cublaslt/gemm_binding.hpp"
#include "kernels/cuda/activation_bwd.hpp"
#include "kernels/cuda/activation_fwd.hpp"
#include "kernels/cuda/bias_grad.hpp"
#include "kernels/cuda/dropout.hpp"
#include "kernels/cuda/gemm.hpp"
#include "kernels/cuda/layernorm_bwd.hpp"
#include "kernels/cuda/layernorm_fwd.hpp"
#include "kernels/cuda/moe.hpp"
#include "kernels/cuda/quantize.hpp"
#include "kernels/cuda/rmsnorm_bwd.hpp"
#include "kernels/cuda/rmsnorm_fwd.hpp"
#include "kernels/cuda/rope.hpp"
#include "kernels/cuda/softmax_bwd.hpp"
#include "kernels/cuda/softmax_fwd.hpp"
#include "kernels/cudnn/bindings.hpp"
#include "kernels/device_fault.hpp"
#include "kernels/executor.hpp"
#include "kernels/harness.hpp"
#include "kernels/sim/activation_bwd.hpp"
#include "kernels/sim/activation_fwd.hpp"
#include "kernels/sim/bias_grad.hpp"
#include "kernels/sim/dropout.hpp"
#include "kernels/sim/gemm_binding.hpp"
#include "kernels/sim/layernorm_bwd.hpp"
#include "kernels/sim/layernorm_fwd.hpp"
#include "kernels/sim/moe.hpp"
#include "kernels/sim/quantize.hpp"
#include "kernels/sim/rmsnorm_bwd.hpp"
#include "kernels/sim/rmsnorm_fwd.hpp"
#include "kernels/sim/rope.hpp"
#include "kernels/sim/sim.hpp"
#include "kernels/sim/softmax_bwd.hpp"
#include "kernels/sim/softmax_fwd.hpp"
#include "kernels/transformer_engine/activation.hpp"
#include "kernels/transformer_engine/bias_grad.hpp"
#include "kernels/transformer_engine/cast.hpp"
#include "kernels/transformer_engine/dropout.hpp"
#include "kernels/transformer_engine/gemm.hpp"
#include "kernels/transformer_engine/moe.hpp"
#include "kernels/transformer_engine/norms.hpp"
#include "kernels/transformer_engine/rope.hpp"
#include "kernels/transformer_engine/softmax.hpp"
#include "op/activation_bwd.hpp"
#include "op/activation_fwd.hpp"
#include "op/bias_grad.hpp"
#include "op/dropout.hpp"
#include "op/gemm.hpp"
#include "op/layernorm_bwd.hpp"
#include "op/layernorm_fwd.hpp"
#include "op/moe.hpp"
#include "op/quantize.hpp"
#include "op/rmsnorm_bwd.hpp"
#include "op/rmsnorm_fwd.hpp"
#include "op/rope.hpp"
#include "op/softmax_bwd.hpp"
#include "op/softmax_fwd.hpp"
#include "reference/activation_bwd.hpp"
#include "reference/activation_fwd.hpp"
#include "reference/bias_grad.hpp"
#include "reference/dropout.hpp"
#include "reference/gemm.hpp"
#include "reference/layernorm_bwd.hpp"
#include "reference/layernorm_fwd.hpp"
#include "reference/moe.hpp"
#include "reference/quantize.hpp"
#include "reference/rmsnorm_bwd.hpp"
#include "reference/rmsnorm_fwd.hpp"
#include "reference/rope.hpp"
#include "reference/router_topk.hpp"
#include "reference/softmax_bwd.hpp"
#include "reference/softmax_fwd.hpp"
#include "tolerance/error_model.hpp"
#include "tolerance/tracked_model.hpp"

namespace numcheck::app {

// A build without CUDA has no bindings of the libraries on a CUDA device, but their names stay: such cases are
// `unsupported`, with the reason.
#ifdef NUMCHECK_HAVE_CUDA
#define NUMCHECK_ON_CUDA(binding, backend_name) &(binding)
#else
#define NUMCHECK_ON_CUDA(binding, backend_name) absent(backend_name)
#endif

namespace {

using kernels::Binding;

#ifndef NUMCHECK_HAVE_CUDA
const Binding* absent(std::string_view backend) {
  static std::deque<Binding> names;
  return &names.emplace_back(Binding{backend, ""});
}
#endif

/// One op with everything that computes or judges it.
struct Row {
  const op::Op* op;
  op::Reference reference;
  tolerance::ErrorModelFn error_model;
  std::vector<const Binding*> bindings;  ///< the first one is what the backend `auto` means on a GPU
};

const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
      {&op::gemm(),
       reference::gemm_reference(),
       &tolerance::gemm_error_model,
       {NUMCHECK_ON_CUDA(kernels::cublaslt_gemm(), "cublaslt"), NUMCHECK_ON_CUDA(kernels::cuda::gemm(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::te::gemm(), "transformer_engine"), &kernels::sim::gemm()}},
      {&op::layernorm_fwd(),
       reference::layernorm_fwd_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::layernorm_fwd(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::cudnn::layernorm_fwd(), "cudnn"),
        NUMCHECK_ON_CUDA(kernels::te::layernorm_fwd(), "transformer_engine"), &kernels::sim::layernorm_fwd()}},
      {&op::layernorm_bwd(),
       reference::layernorm_bwd_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::layernorm_bwd(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::cudnn::layernorm_bwd(), "cudnn"),
        NUMCHECK_ON_CUDA(kernels::te::layernorm_bwd(), "transformer_engine"), &kernels::sim::layernorm_bwd()}},
      {&op::rmsnorm_fwd(),
       reference::rmsnorm_fwd_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::rmsnorm_fwd(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::cudnn::rmsnorm_fwd(), "cudnn"),
        NUMCHECK_ON_CUDA(kernels::te::rmsnorm_fwd(), "transformer_engine"), &kernels::sim::rmsnorm_fwd()}},
      {&op::rmsnorm_bwd(),
       reference::rmsnorm_bwd_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::rmsnorm_bwd(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::cudnn::rmsnorm_bwd(), "cudnn"),
        NUMCHECK_ON_CUDA(kernels::te::rmsnorm_bwd(), "transformer_engine"), &kernels::sim::rmsnorm_bwd()}},
      {&op::activation_fwd(),
       reference::activation_fwd_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::activation_fwd(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::te::activation_fwd(), "transformer_engine"), &kernels::sim::activation_fwd()}},
      {&op::activation_bwd(),
       reference::activation_bwd_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::activation_bwd(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::te::activation_bwd(), "transformer_engine"), &kernels::sim::activation_bwd()}},
      {&op::bias_grad(),
       reference::bias_grad_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::bias_grad(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::te::bias_grad(), "transformer_engine"), &kernels::sim::bias_grad()}},
      {&op::softmax_fwd(),
       reference::softmax_fwd_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::softmax_fwd(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::cudnn::softmax_fwd(), "cudnn"),
        NUMCHECK_ON_CUDA(kernels::te::softmax_fwd(), "transformer_engine"), &kernels::sim::softmax_fwd()}},
      {&op::softmax_bwd(),
       reference::softmax_bwd_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::softmax_bwd(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::cudnn::softmax_bwd(), "cudnn"),
        NUMCHECK_ON_CUDA(kernels::te::softmax_bwd(), "transformer_engine"), &kernels::sim::softmax_bwd()}},
      {&op::quantize(),
       reference::quantize_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::quantize(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::te::quantize(), "transformer_engine"), &kernels::sim::quantize()}},
      {&op::dequantize(),
       reference::dequantize_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::dequantize(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::te::dequantize(), "transformer_engine"), &kernels::sim::dequantize()}},
      {&op::transpose(),
       reference::transpose_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::transpose(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::te::transpose(), "transformer_engine"), &kernels::sim::transpose()}},
      {&op::rope_fwd(),
       reference::rope_fwd_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::rope_fwd(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::te::rope_fwd(), "transformer_engine"), &kernels::sim::rope_fwd()}},
      {&op::rope_bwd(),
       reference::rope_bwd_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::rope_bwd(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::te::rope_bwd(), "transformer_engine"), &kernels::sim::rope_bwd()}},
      {&op::moe_permute(),
       reference::moe_permute_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::moe_permute(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::te::moe_permute(), "transformer_engine"), &kernels::sim::moe_permute()}},
      {&op::moe_unpermute(),
       reference::moe_unpermute_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::moe_unpermute(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::te::moe_unpermute(), "transformer_engine"), &kernels::sim::moe_unpermute()}},
      {&op::router_topk(),
       reference::router_topk_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::router_topk(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::te::router_topk(), "transformer_engine"), &kernels::sim::router_topk()}},
      {&op::dropout_fwd(),
       reference::dropout_fwd_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::dropout_fwd(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::te::dropout_fwd(), "transformer_engine"), &kernels::sim::dropout_fwd()}},
      {&op::dropout_bwd(),
       reference::dropout_bwd_reference(),
       &tolerance::tracked_error_model,
       {NUMCHECK_ON_CUDA(kernels::cuda::dropout_bwd(), "cuda"),
        NUMCHECK_ON_CUDA(kernels::te::dropout_bwd(), "transformer_engine"), &kernels::sim::dropout_bwd()}},
  };
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

run::CatalogRow catalog_row(const Row& row) {
  run::CatalogRow out{row.op, row.reference, row.error_model, {}};
  for (const Binding* binding : row.bindings) {
    out.backends.push_back(binding->backend);
  }
  return out;
}

}  // namespace

kernels::Bindings bindings() {
  return all_bindings();
}

run::Catalog catalog() {
  static const std::vector<run::CatalogRow> rows = [] {
    std::vector<run::CatalogRow> list;
    std::ranges::transform(table(), std::back_inserter(list), catalog_row);
    return list;
  }();
  return rows;
}

const op::Op* find_op(std::string_view name) {
  const run::CatalogRow* row = run::find_row(catalog(), name);
  return row == nullptr ? nullptr : row->op;
}

std::vector<BackendInfo> backends() {
  return {{"auto", "the first backend of the op (`list ops`) on a GPU, sim on a simulated device"},
          {"cublaslt", "NVIDIA cuBLASLt, loaded at run time; every heuristic algorithm can be run"},
          {"cuda", "own FP32 FMA kernels in a fixed sequential order: an independent second opinion"},
          {"cudnn", "NVIDIA cuDNN, loaded at run time: norms by its engines, softmax; a further opinion"},
          {"transformer_engine", "the core library of an installed TransformerEngine, loaded at run time (--te-lib)"},
          {"sim", "the device's arithmetic modelled on the host: no hardware evidence"}};
}

plan::Vocabulary vocabulary() {
  plan::Vocabulary words;
  for (const run::CatalogRow& row : catalog()) {
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
  const std::span<const kernels::FaultInfo> memory = kernels::harness_faults();
  const std::vector<kernels::FaultInfo> arithmetic = kernels::sim_faults_of(all_bindings());
  std::vector<kernels::FaultInfo> all(memory.begin(), memory.end());
  all.insert(all.end(), arithmetic.begin(), arithmetic.end());
  all.push_back(kernels::kDeviceFault);
  return all;
}

run::ExecutorFactory executor_factory(const std::string& lib_dir, const std::vector<std::string>& te_libs) {
  return [lib_dir, te_libs](const machine::DeviceChoice& choice) {
    return kernels::make_executor(choice, {.lib_dir = lib_dir, .te_libs = te_libs, .bindings = all_bindings()});
  };
}

}  // namespace numcheck::app
