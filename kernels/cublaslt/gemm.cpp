#include "kernels/cublaslt/gemm.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "kernels/contract/device_block.hpp"
#include "kernels/contract/gemm_class.hpp"
#include "kernels/cublas_support/algorithm_text.hpp"
#include "kernels/cublas_support/types.hpp"
#include "kernels/cublaslt/problem.hpp"
#include "kernels/cublaslt/scale_modes.hpp"
#include "kernels/cuda_support/addend.hpp"
#include "model/arithmetic.hpp"
#include "op/gemm.hpp"
#include "op/gemm_scaling.hpp"

namespace numcheck::kernels::cublaslt {
namespace {

constexpr int kMaxAlgorithms = 64;

/// FP8 kernels need rows, strides and addresses that are multiples of 16 bytes (cuBLAS manual, cublasLtMatmul).
std::string fp8_obstacle(const Call& call, const op::GemmParams& p, int sm) {
  if (sm < 89) {
    return fmt::format("FP8 products need sm_89 or newer; this device is sm_{}", sm);
  }
  const bool any_layout = sm >= 100 && sm < 120;
  if (!any_layout && (p.trans_a || !p.trans_b)) {
    return fmt::format("on sm_{} cuBLASLt multiplies FP8 only as A B^T: set trans_a to false and trans_b to true", sm);
  }
  for (const op::Port& port : call.ports) {
    const bool matrix = port.name == "a" || port.name == "b" || port.name == "c" || port.name == "d";
    if (!matrix) {
      continue;
    }
    const std::int64_t size = core::dtype_info(port.dtype).storage_bytes;
    if (port.cols * size % 16 != 0 || port.ld * size % 16 != 0 || port.offset_bytes % 16 != 0 ||
        (port.batch > 1 && port.batch_stride * size % 16 != 0)) {
      return fmt::format(
          "cuBLASLt's FP8 products need rows, leading dimensions and offsets that are multiples of 16 bytes; {} has "
          "rows of {} bytes and a leading dimension of {} bytes, and starts at byte {}",
          port.name, port.cols * size, port.ld * size, port.offset_bytes);
    }
  }
  return {};
}

int requested_count(const plan::AlgorithmSpec& spec) {
  switch (spec.kind) {
    case plan::AlgorithmSpec::Kind::heuristic:
      return 1;
    case plan::AlgorithmSpec::Kind::top:
      return static_cast<int>(std::clamp<std::int64_t>(spec.top, 1, kMaxAlgorithms));
    case plan::AlgorithmSpec::Kind::all:
      break;
  }
  return kMaxAlgorithms;
}

bool has_no_output(const Call& call) {
  return op::port_named(call.ports, "d").elements() == 0;
}

Algorithm nothing_to_do() {
  return {"nothing to compute", {}, 0, [](std::span<const PortMemory>, std::byte*) { return not_measured(); }};
}

}  // namespace

void add_product_options(const op::GemmParams& params, cublas_support::AlgorithmText& text) {
  if (const std::string_view epilogue = epilogue_name(params); !epilogue.empty()) {
    text.details.emplace_back("epilogue", epilogue);
  }
  if (params.in_place) {
    text.details.emplace_back("addend", "in place");
  }
  text.rounding.in_place = params.in_place;
  text.rounding.bias = params.bias;
  text.rounding.gelu = params.epilogue == "gelu";
}

std::string gemm_obstacle(const Call& call, int sm, std::size_t library_version) {
  const auto p = op::from_params<op::GemmParams>(call.c->params);
  const op::Mode& mode = *call.c->mode;
  if (has_no_output(call)) {  // nothing is asked of the library, and its scales need not be as it likes them
    return mode.scaled ? model::gemm_obstacle(sm, mode) : std::string();
  }
  if (p.k == 0) {
    return "cuBLASLt does not accept products with k = 0";
  }
  constexpr std::size_t kFirstWithBf16x9 = 120900;
  if (mode.compute == op::Compute::emulated_bf16x9 &&
      (!cublas_support::knows_compute(mode.compute) || library_version < kFirstWithBf16x9)) {
    return "FP32 emulation with BF16 products needs cuBLAS 12.9 or newer";
  }
  if (!mode.scaled) {
    return {};
  }
  if (op::has_global_scales(p)) {
    return scale_obstacle(p, sm, library_version);
  }
  std::string obstacle = fp8_obstacle(call, p, sm);
  return obstacle.empty() ? scale_obstacle(p, sm, library_version) : obstacle;
}

Support gemm_support(const cublas_support::CublasLt& lt, cuda_support::CudaDevice& device, HeuristicMemo& memo,
                     const Call& call) {
  if (has_no_output(call)) {
    return {};
  }
  device.use();
  const DeviceBlock scratch = allocate_block(device.memory(), kScratchBytes);
  LtProblem problem(lt, call, scratch.get());
  const LtProblem::Candidates& candidates = memo.ask(call, problem, 1, kWorkspaceLimit);
  if (!candidates.results.empty()) {
    return {};
  }
  return {false, fmt::format("cuBLASLt {} offers no algorithm for this product on sm_{} ({})", lt.version(),
                             device.info().sm, cuda_support::cublas_status_name(candidates.status))};
}

std::vector<std::string> gemm_configurations(const cublas_support::CublasLt& lt, cuda_support::CudaDevice& device,
                                             HeuristicMemo& memo, const Call& call) {
  std::vector<std::string> keys;
  if (has_no_output(call)) {
    return keys;
  }
  device.use();
  const DeviceBlock scratch = allocate_block(device.memory(), kScratchBytes);
  LtProblem problem(lt, call, scratch.get());
  for (const auto& result : memo.ask(call, problem, requested_count(call.c->algorithms), kWorkspaceLimit).results) {
    const cublas_support::AlgorithmShape shape = cublas_support::shape_of(cublas_support::reader_of(lt), result.algo);
    keys.push_back(shape.key + " | " + gemm_class(call, shape.k_tile, shape.slices));
  }
  return keys;
}

std::vector<Algorithm> gemm_algorithms(const cublas_support::CublasLt& lt, cuda_support::CudaDevice& device,
                                       HeuristicMemo& memo, const Call& call) {
  if (has_no_output(call)) {
    return {nothing_to_do()};
  }
  device.use();
  const DeviceBlock scratch = allocate_block(device.memory(), kScratchBytes);
  const auto problem = std::make_shared<LtProblem>(lt, call, scratch.get());
  const auto params = op::from_params<op::GemmParams>(call.c->params);
  std::vector<Algorithm> algorithms;
  for (const auto& result : memo.ask(call, *problem, requested_count(call.c->algorithms), kWorkspaceLimit).results) {
    cublas_support::AlgorithmText text = cublas_support::describe_algorithm(cublas_support::reader_of(lt), result.algo);
    text.details.emplace_back("waves", fmt::format("{:.3g}", result.wavesCount));
    add_product_options(params, text);
    const std::size_t workspace_bytes = result.workspaceSize;
    algorithms.push_back({std::move(text.label), std::move(text.details), workspace_bytes,
                          [problem, &device, algorithm = result.algo, workspace_bytes, in_place = params.in_place](
                              std::span<const PortMemory> ports, std::byte* workspace) {
                            device.use();
                            if (in_place) {
                              cuda_support::copy_addend(ports, device.stream());
                            }
                            return device.timed([&] {
                              problem->enqueue(ports, algorithm, workspace, workspace_bytes, device.stream());
                            });
                          },
                          text.rounding});
  }
  return algorithms;
}

}  // namespace numcheck::kernels::cublaslt
