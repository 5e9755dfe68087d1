// A shared object with a few functions of TransformerEngine's C interface, some of which throw as its own do.
#include <cstddef>
#include <stdexcept>
#include <string>

#include "kernels/transformer_engine/interface.hpp"

namespace {

using namespace numcheck::kernels::transformer_engine;

/// A tensor of this library: its row-wise data.
struct Object {
  BasicTensor basic;
};

}  // namespace

extern "C" {

Handle nvte_create_tensor(int /*scaling_mode*/) {
  return new Object;
}
void nvte_destroy_tensor(Handle tensor) {
  delete static_cast<Object*>(tensor);
}

#ifndef TE_FAKE_WITHOUT_GEMM

void nvte_set_tensor_param(Handle* tensor, int param, const BasicTensor* basic) {
  if (param == kRowwiseData) {
    static_cast<Object*>(*tensor)->basic = *basic;
  }
}
Shape nvte_tensor_shape(Handle tensor) {
  return static_cast<Object*>(tensor)->basic.shape;
}
int nvte_tensor_type(Handle tensor) {
  return static_cast<Object*>(tensor)->basic.dtype;
}

void nvte_cublas_gemm_v2(int, int, const float*, Handle, Handle, const float*, Handle, Handle, Handle, Handle, Stream) {
  throw std::runtime_error(
      "/build/common/gemm/cublaslt_gemm.cu:12 in function cublas_gemm: Unable to find suitable cuBLAS GEMM algorithm");
}
void* nvte_create_matmul_config() {
  return nullptr;
}
int nvte_is_non_tn_fp8_gemm_supported() {
  return 0;
}
void nvte_multi_tensor_gemm(const Handle*, const Handle*, Handle*, const Handle*, Handle*, int, bool, bool, bool,
                            Handle*, bool, bool, int, Stream) {}
int nvte_get_num_compute_streams() {
  return 4;
}

/// Expects two calls: the first requests a workspace of 3 x 5 FP32 numbers, the second writes its first byte.
void nvte_rmsnorm_fwd(Handle, Handle, float, Handle, Handle, Handle workspace, int, bool, Stream) {
  BasicTensor& basic = static_cast<Object*>(workspace)->basic;
  if (basic.data == nullptr) {
    basic = {nullptr, kFloat32, {{3, 5}, 2}};
  } else {
    *static_cast<unsigned char*>(basic.data) = 42;
  }
}

void nvte_gelu(Handle, Handle, Stream) {
  throw std::runtime_error(
      "/build/common/x.cpp:155 in function CheckInputTensor: Assertion failed: t.has_data(). Input is not allocated! ");
}
void nvte_silu(Handle, Handle, Stream) {
  throw 7;
}
void nvte_relu(Handle, Handle, Stream) {
  throw std::runtime_error("/build/a.cu:1 in function f: CUDA Error: operation not supported");
}

// Functions that obstacles look for, but no test calls.
void nvte_scaled_softmax_forward(Handle, Handle, float, Stream) {}
void nvte_scaled_softmax_backward(Handle, Handle, Handle, float, Stream) {}
void nvte_scaled_masked_softmax_forward(Handle, Handle, Handle, float, Stream) {}
void nvte_scaled_upper_triang_masked_softmax_forward(Handle, Handle, float, Stream) {}
void nvte_scaled_aligned_causal_masked_softmax_forward(Handle, Handle, float, Stream) {}
void nvte_rmsnorm_bwd(Handle, Handle, Handle, Handle, Handle, Handle, Handle, int, bool, Stream) {}
void nvte_clamped_swiglu(Handle, Handle, float, float, Stream) {}
void nvte_dropout_fwd(Handle, Handle, Handle, Handle, float, Stream) {}
void nvte_fused_rope_backward() {}
void nvte_fused_topk_with_score_function_forward() {}
void nvte_quantize_dbias(Handle, Handle, Handle, Handle, Stream) {}

#endif
}
