#include "kernels/cublaslt/problem.hpp"

#include <algorithm>
#include <array>

#include "core/codec.hpp"
#include "kernels/contract/ports.hpp"
#include "kernels/cublas_support/types.hpp"
#include "kernels/cublaslt/scale_modes.hpp"

namespace numcheck::kernels::cublaslt {
namespace {

/// Row-major rows x cols is column-major cols x rows with the same leading dimension.
cublas_support::MatrixLayout layout_of(const cublas_support::CublasLt& lt, const op::Port& port, core::Dtype dtype) {
  return {lt, cublas_support::cuda_type(dtype), port.cols, port.rows, port.ld, port.batch, port.batch_stride};
}

/// Format of C: the port's if there is one, else D's, or BF16 with an FP8 D (cuBLAS manual, cublasLtMatmul).
core::Dtype addend_type(std::span<const op::Port> ports) {
  if (const op::Port* c = op::find_port(ports, "c"); c != nullptr) {
    return c->dtype;
  }
  const core::Dtype output = op::port_named(ports, "d").dtype;
  return core::is_fp8(output) ? core::Dtype::bf16 : output;
}

/// Largest power of two, at most 256, that divides the port's address: buffers are 256-byte aligned.
std::uint32_t alignment_of(const op::Port* port) {
  if (port == nullptr || port->offset_bytes == 0) {
    return 256;
  }
  const auto offset = static_cast<std::uint64_t>(port->offset_bytes);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(offset & (~offset + 1), 256));
}

cublasLtEpilogue_t epilogue_of(const op::GemmParams& params) {
  if (params.epilogue == "relu") {
    return params.bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  }
  if (params.epilogue == "gelu") {
    return params.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  }
  return params.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

}  // namespace

std::string_view epilogue_name(const op::GemmParams& params) noexcept {
  switch (epilogue_of(params)) {
    case CUBLASLT_EPILOGUE_RELU_BIAS:
      return "RELU_BIAS";
    case CUBLASLT_EPILOGUE_RELU:
      return "RELU";
    case CUBLASLT_EPILOGUE_GELU_BIAS:
      return "GELU_BIAS";
    case CUBLASLT_EPILOGUE_GELU:
      return "GELU";
    case CUBLASLT_EPILOGUE_BIAS:
      return "BIAS";
    default:
      return {};
  }
}

LtProblem::LtProblem(const cublas_support::CublasLt& lt, const Call& call, const std::byte* scratch)
    : lt_(lt),
      ports_(call.ports.begin(), call.ports.end()),
      params_(op::from_params<op::GemmParams>(call.c->params)),
      half_scalars_(call.c->mode->compute == op::Compute::fp16),
      has_addend_(op::find_port(ports_, "c") != nullptr),
      quantised_(core::is_fp8(op::port_named(ports_, "d").dtype)),
      desc_(lt, cublas_support::compute_type(call.c->mode->compute), half_scalars_ ? CUDA_R_16F : CUDA_R_32F),
      first_(layout_of(lt, op::port_named(ports_, "b"), op::port_named(ports_, "b").dtype)),
      second_(layout_of(lt, op::port_named(ports_, "a"), op::port_named(ports_, "a").dtype)),
      c_(layout_of(lt, op::port_named(ports_, "d"), addend_type(ports_))),
      d_(layout_of(lt, op::port_named(ports_, "d"), op::port_named(ports_, "d").dtype)) {
  desc_.set(CUBLASLT_MATMUL_DESC_TRANSA, params_.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  desc_.set(CUBLASLT_MATMUL_DESC_TRANSB, params_.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set_epilogue(scratch);
  if (call.c->mode->scaled) {
    const bool fast = !op::gemm_promotes(params_, *call.c->mode);
    desc_.set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(fast ? 1 : 0));
    std::vector<PortMemory> stand_ins;
    for (const op::Port& port : ports_) {
      stand_ins.push_back({&port, const_cast<std::byte*>(scratch)});
    }
    set_scale_modes(params_, desc_);
    set_scale_pointers(stand_ins);
  }
}

void LtProblem::set_epilogue(const std::byte* scratch) {
  desc_.set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(params_));
  if (const op::Port* bias = op::find_port(ports_, "bias"); bias != nullptr) {
    desc_.set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, cublas_support::cuda_type(bias->dtype));
    desc_.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(scratch));
  }
}

void LtProblem::set_scale_pointers(std::span<const PortMemory> ports) {
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, std::string_view port) {
    if (std::byte* pointer = first_element(find_port(ports, port)); pointer != nullptr) {
      desc_.set(attribute, static_cast<void*>(pointer));
    }
  };
  set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, "b_scale_inv");
  set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, "a_scale_inv");
  set(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, "d_scale");
  set(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, "d_amax");
}

LtProblem::Candidates LtProblem::heuristic(int requested, std::size_t workspace_limit) {
  cublas_support::MatmulPreference preference(lt_);
  preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_limit);
  // The default assumes 256 bytes for all four, which is wrong for a tensor at an offset.
  const op::Port* c = op::find_port(ports_, "c");
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(op::find_port(ports_, "b")));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(op::find_port(ports_, "a")));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                 alignment_of(c != nullptr ? c : op::find_port(ports_, "d")));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(op::find_port(ports_, "d")));
  Candidates candidates;
  candidates.results.resize(static_cast<std::size_t>(requested));
  int found = 0;
  candidates.status = lt_.heuristic(lt_.handle(), desc_.get(), first_.get(), second_.get(), addend_layout(), d_.get(),
                                    preference.get(), requested, candidates.results.data(), &found);
  candidates.results.resize(candidates.status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(found) : 0);
  std::erase_if(candidates.results, [](const auto& r) { return r.state != CUBLAS_STATUS_SUCCESS; });
  return candidates;
}

void LtProblem::enqueue(std::span<const PortMemory> ports, const cublasLtMatmulAlgo_t& algorithm, std::byte* workspace,
                        std::size_t workspace_bytes, cudaStream_t stream) {
  if (const std::byte* bias = first_element(find_port(ports, "bias")); bias != nullptr) {
    desc_.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias));
  }
  set_scale_pointers(ports);
  std::byte* d = first_element(find_port(ports, "d"));
  const std::byte* c = params_.in_place ? d : first_element(find_port(ports, "c"));
  if (c == nullptr && !quantised_) {
    c = d;  // beta is 0, so C is not read; frameworks pass D here
  }
  // Scalars have the scale type: half for FP16 accumulation, else float.
  std::array<std::byte, 4> alpha{}, beta{};
  const core::Dtype scalar = half_scalars_ ? core::Dtype::fp16 : core::Dtype::fp32;
  const auto bytes = static_cast<std::size_t>(core::dtype_info(scalar).storage_bytes);
  core::encode(std::span(&params_.alpha, 1), scalar, std::span(alpha).first(bytes));
  core::encode(std::span(&params_.beta, 1), scalar, std::span(beta).first(bytes));
  cuda_support::check(lt_.matmul(lt_.handle(), desc_.get(), alpha.data(), first_element(find_port(ports, "b")),
                                 first_.get(), first_element(find_port(ports, "a")), second_.get(), beta.data(), c,
                                 addend_layout(), d, d_.get(), &algorithm, workspace, workspace_bytes, stream),
                      "cublasLtMatmul");
}

}  // namespace numcheck::kernels::cublaslt
