#include "catalog.hpp"

#include <span>
#include <vector>

#include "kernels/executor.hpp"
#include "kernels/harness.hpp"
#include "kernels/sim/sim.hpp"
#include "op/gemm.hpp"
#include "reference/gemm.hpp"
#include "tolerance/error_model.hpp"

namespace numcheck::app {

run::Catalog catalog() {
  static const std::vector<run::CatalogRow> rows = {
      {&op::gemm(), reference::gemm_reference(), &tolerance::gemm_error_model, {"cublaslt", "cuda", "sim"}},
  };
  return rows;
}

const op::Op* find_op(std::string_view name) {
  const run::CatalogRow* row = run::find_row(catalog(), name);
  return row == nullptr ? nullptr : row->op;
}

std::vector<BackendInfo> backends() {
  return {{"auto", "cublaslt on a GPU, sim on a simulated device"},
          {"cublaslt", "NVIDIA cuBLASLt, loaded at run time; every heuristic algorithm can be run"},
          {"cuda", "own FP32 FMA kernels in a fixed sequential order: an independent second opinion"},
          {"sim", "the device's arithmetic modelled on the host: no hardware evidence"}};
}

plan::Vocabulary vocabulary() {
  plan::Vocabulary words;
  for (const run::CatalogRow& row : catalog()) {
    words.ops.push_back(row.op);
  }
  const std::span<const std::string_view> names = kernels::backend_names();
  words.backends.assign(names.begin(), names.end());
  words.lookup = &find_op;
  return words;
}

std::vector<kernels::FaultInfo> faults() {
  const std::span<const kernels::FaultInfo> memory = kernels::harness_faults();
  const std::span<const kernels::FaultInfo> arithmetic = kernels::sim_faults();
  std::vector<kernels::FaultInfo> all(memory.begin(), memory.end());
  all.insert(all.end(), arithmetic.begin(), arithmetic.end());
  return all;
}

run::ExecutorFactory executor_factory(const std::string& lib_dir) {
  return
      [lib_dir](const machine::DeviceChoice& choice) { return kernels::make_executor(choice, {.lib_dir = lib_dir}); };
}

}  // namespace numcheck::app
