// The part of TransformerEngine's C interface that is called: its constants, structures and signatures, repeated here
// so that the program builds without its headers. A test compares them with the headers where these are installed.
// Source: TransformerEngine 2.9 to 2.20, include/transformer_engine/*.h.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

struct CUstream_st;

namespace numcheck::kernels::transformer_engine {

using Handle = void*;         ///< NVTETensor, NVTEMatmulConfig: opaque
using Stream = CUstream_st*;  ///< cudaStream_t

/// NVTEDType. Enumerations cross the interface as int.
enum DataType : int {
  kByte = 0,
  kInt32 = 2,
  kInt64 = 3,
  kFloat32 = 4,
  kFloat16 = 5,
  kBfloat16 = 6,
  kFloat8E4m3 = 7,
  kFloat8E5m2 = 8,
  kFloat8E8m0 = 9,
  kFloat4E2m1 = 10,
};

/// NVTETensorParam.
enum TensorParam : int {
  kRowwiseData = 0,
  kColumnwiseData = 1,
  kScale = 2,
  kAmax = 3,
  kRowwiseScaleInv = 4,
  kColumnwiseScaleInv = 5,
  kColumnwiseAmax = 6,
  kSwizzledScales = 7,  ///< one byte, from 2.12 on
};

/// NVTEScalingMode.
enum ScalingMode : int {
  kPerTensor = 0,  ///< also tensors without a scale
  kMxfp8 = 1,
  kBlock1d = 2,  ///< 1 x 128
  kBlock2d = 3,  ///< 128 x 128
  kNvfp4 = 4,
};

/// NVTEMatmulConfigAttribute. Booleans are one byte, tensors a handle.
enum MatmulAttribute : int {
  kMatmulBias = 0,
  kMatmulGeluEpilogue = 2,
  kMatmulEpilogueAux = 4,
  kMatmulSplitAccumulator = 5,
};

/// NVTEQuantizationConfigAttribute. The format of block scales, an int, has had no effect since 2.12; the state of the generator is
/// the handle of a tensor.
enum QuantizeAttribute : int {
  kQuantizePowerOfTwo = 0,
  kQuantizeEpsilon = 1,
  kQuantizeBlockScaleFormat = 3,
  kQuantizeRngState = 4,
  kQuantizeNvfp4Square = 5,
  kQuantizeStochastic = 6,
};

/// Float8BlockScaleTensorFormat.
enum BlockScaleFormat : int { kGemmReady = 0, kCompact = 1 };

/// NVTE_QKV_Format: order of the axes batch, sequence, head, channel.
enum QkvFormat : int { kSbhd = 0, kBshd = 1, kThd = 2, kBhsd = 7 };

/// NVTEShape.
struct Shape {
  std::array<std::size_t, 15> data{};
  std::size_t ndim = 0;
};

/// NVTEBasicTensor.
struct BasicTensor {
  void* data = nullptr;
  int dtype = kByte;
  Shape shape;
};

/// NVTETensorPack: what forward attention leaves for the backward pass.
struct TensorPack {
  std::array<Handle, 10> tensors{};
  std::size_t size = 0;
};

/// A function of the library: its exported name and its signature. Mangled names belong to functions that its headers
/// declare outside extern "C".
template <class Signature>
struct Function {
  std::string_view name;
};

// Tensors.
inline constexpr Function<Handle(int scaling_mode)> kCreateTensor{"nvte_create_tensor"};
inline constexpr Function<void(Handle)> kDestroyTensor{"nvte_destroy_tensor"};
inline constexpr Function<void(Handle*, int param, const BasicTensor*)> kSetTensorParam{"nvte_set_tensor_param"};
inline constexpr Function<void(Handle, int param, const void*, std::size_t bytes)> kSetTensorParamV2{
    "nvte_set_tensor_param_v2"};  ///< from 2.12 on
inline constexpr Function<Shape(Handle)> kTensorShape{"nvte_tensor_shape"};
inline constexpr Function<int(Handle)> kTensorType{"nvte_tensor_type"};

// gemm.h
inline constexpr Function<Handle()> kCreateMatmulConfig{"nvte_create_matmul_config"};
inline constexpr Function<void(Handle)> kDestroyMatmulConfig{"nvte_destroy_matmul_config"};
inline constexpr Function<void(Handle, int attribute, const void*, std::size_t bytes)> kSetMatmulConfigAttribute{
    "nvte_set_matmul_config_attribute"};
inline constexpr Function<void(int transa, int transb, const float* alpha, Handle a, Handle b, const float* beta,
                               Handle c, Handle d, Handle workspace, Handle config, Stream)>
    kGemm{"nvte_cublas_gemm_v2"};
inline constexpr Function<void(const Handle* a, const Handle* b, Handle* d, const Handle* bias, Handle* pre_gelu_out,
                               int num_gemms, bool transa, bool transb, bool grad, Handle* workspace, bool accumulate,
                               bool use_split_accumulator, int math_sm_count, Stream)>
    kMultiTensorGemm{"nvte_multi_tensor_gemm"};
inline constexpr Function<int()> kComputeStreams{"nvte_get_num_compute_streams"};  ///< multi_stream.h
inline constexpr Function<int()> kNonTnFp8Supported{"nvte_is_non_tn_fp8_gemm_supported"};

// normalization.h
inline constexpr Function<void(Handle x, Handle gamma, Handle beta, float epsilon, Handle z, Handle mu, Handle rsigma,
                               Handle workspace, int multiprocessors, bool zero_centered_gamma, Stream)>
    kLayernormFwd{"nvte_layernorm_fwd"};
inline constexpr Function<void(Handle dz, Handle x, Handle mu, Handle rsigma, Handle gamma, Handle dx, Handle dgamma,
                               Handle dbeta, Handle workspace, int multiprocessors, bool zero_centered_gamma, Stream)>
    kLayernormBwd{"nvte_layernorm_bwd"};
inline constexpr Function<void(Handle x, Handle gamma, float epsilon, Handle z, Handle rsigma, Handle workspace,
                               int multiprocessors, bool zero_centered_gamma, Stream)>
    kRmsnormFwd{"nvte_rmsnorm_fwd"};
inline constexpr Function<void(Handle dz, Handle x, Handle rsigma, Handle gamma, Handle dx, Handle dgamma,
                               Handle workspace, int multiprocessors, bool zero_centered_gamma, Stream)>
    kRmsnormBwd{"nvte_rmsnorm_bwd"};
inline constexpr Function<void(Handle dz, Handle x, Handle add, Handle rsigma, Handle gamma, Handle dx, Handle dgamma,
                               Handle workspace, int multiprocessors, bool zero_centered_gamma, Stream)>
    kRmsnormBwdAdd{"nvte_rmsnorm_bwd_add"};

// softmax.h
using SoftmaxForward = Function<void(Handle input, Handle output, float scale, Stream)>;
using SoftmaxBackward = Function<void(Handle dy, Handle y, Handle dx, float scale, Stream)>;
inline constexpr SoftmaxForward kSoftmaxFwd{"nvte_scaled_softmax_forward"};
inline constexpr SoftmaxBackward kSoftmaxBwd{"nvte_scaled_softmax_backward"};
inline constexpr Function<void(Handle input, Handle mask, Handle output, float scale, Stream)> kMaskedSoftmaxFwd{
    "nvte_scaled_masked_softmax_forward"};
inline constexpr SoftmaxBackward kMaskedSoftmaxBwd{"nvte_scaled_masked_softmax_backward"};
inline constexpr SoftmaxForward kTriangularSoftmaxFwd{"nvte_scaled_upper_triang_masked_softmax_forward"};
inline constexpr SoftmaxBackward kTriangularSoftmaxBwd{"nvte_scaled_upper_triang_masked_softmax_backward"};
inline constexpr SoftmaxForward kAlignedCausalSoftmaxFwd{"nvte_scaled_aligned_causal_masked_softmax_forward"};
inline constexpr SoftmaxBackward kAlignedCausalSoftmaxBwd{"nvte_scaled_aligned_causal_masked_softmax_backward"};

// activation.h, cast.h, transpose.h
using Unary = Function<void(Handle input, Handle output, Stream)>;
using Binary = Function<void(Handle grad, Handle input, Handle output, Stream)>;
inline constexpr Unary kGelu{"nvte_gelu"};
inline constexpr Unary kSilu{"nvte_silu"};
inline constexpr Unary kRelu{"nvte_relu"};
inline constexpr Unary kQgelu{"nvte_qgelu"};
inline constexpr Unary kSrelu{"nvte_srelu"};
inline constexpr Unary kGeglu{"nvte_geglu"};
inline constexpr Unary kSwiglu{"nvte_swiglu"};
inline constexpr Unary kReglu{"nvte_reglu"};
inline constexpr Unary kQgeglu{"nvte_qgeglu"};
inline constexpr Unary kSreglu{"nvte_sreglu"};
inline constexpr Binary kDgelu{"nvte_dgelu"};
inline constexpr Binary kDsilu{"nvte_dsilu"};
inline constexpr Binary kDrelu{"nvte_drelu"};
inline constexpr Binary kDqgelu{"nvte_dqgelu"};
inline constexpr Binary kDsrelu{"nvte_dsrelu"};
inline constexpr Binary kDgeglu{"nvte_dgeglu"};
inline constexpr Binary kDswiglu{"nvte_dswiglu"};
inline constexpr Binary kDreglu{"nvte_dreglu"};
inline constexpr Binary kDqgeglu{"nvte_dqgeglu"};
inline constexpr Binary kDsreglu{"nvte_dsreglu"};
inline constexpr Function<void(Handle input, Handle output, float limit, float alpha, Stream)> kClampedSwiglu{
    "nvte_clamped_swiglu"};
inline constexpr Function<void(Handle grad, Handle input, Handle output, float limit, float alpha, Stream)>
    kClampedDswiglu{"nvte_clamped_dswiglu"};
// The second half is clamped and 1 is added to it; the functions that add another number came later.
inline constexpr Function<void(Handle input, Handle output, float limit, float alpha, float offset, Stream)>
    kClampedSwigluV2{"nvte_clamped_swiglu_v2"};
inline constexpr Function<void(Handle grad, Handle input, Handle output, float limit, float alpha, float offset,
                               Stream)>
    kClampedDswigluV2{"nvte_clamped_dswiglu_v2"};
inline constexpr Unary kQuantize{"nvte_quantize"};
inline constexpr Unary kDequantize{"nvte_dequantize"};
inline constexpr Function<void(Handle input, Handle output, Handle config, Stream)> kQuantizeV2{"nvte_quantize_v2"};
inline constexpr Unary kTranspose{"nvte_transpose"};
using QuantizeDbias = Function<void(Handle input, Handle output, Handle dbias, Handle workspace, Stream)>;
using QuantizeDbiasDact =
    Function<void(Handle grad, Handle input, Handle output, Handle dbias, Handle workspace, Stream)>;
inline constexpr QuantizeDbias kQuantizeDbias{"nvte_quantize_dbias"};
inline constexpr QuantizeDbiasDact kQuantizeDbiasDgelu{"nvte_quantize_dbias_dgelu"};
inline constexpr QuantizeDbiasDact kQuantizeDbiasDsilu{"nvte_quantize_dbias_dsilu"};
inline constexpr QuantizeDbiasDact kQuantizeDbiasDrelu{"nvte_quantize_dbias_drelu"};
inline constexpr QuantizeDbiasDact kQuantizeDbiasDqgelu{"nvte_quantize_dbias_dqgelu"};
inline constexpr QuantizeDbiasDact kQuantizeDbiasDsrelu{"nvte_quantize_dbias_dsrelu"};

// swizzle.h
inline constexpr Unary kSwizzleScales{"nvte_swizzle_scaling_factors"};

// multi_tensor.h
inline constexpr Function<void(int chunk_size, Handle noop_flag, Handle** tensor_lists, std::size_t num_tensor_lists,
                               std::size_t num_tensors_per_list, float max_fp8, int force_pow_2_scales, float epsilon,
                               Stream)>
    kMultiTensorScale{"nvte_multi_tensor_compute_scale_and_scale_inv_cuda"};

// recipe.h
inline constexpr Unary kComputeAmax{"nvte_compute_amax"};  ///< of the input, into the output's amax
inline constexpr Function<void(Handle output, Handle config, Stream)> kComputeScale{"nvte_compute_scale_from_amax"};
inline constexpr Function<void(Handle history, Handle scale, Handle updated_history, Handle updated_scale,
                               const char* algorithm, int fp8_dtype, float margin, Stream)>
    kDelayedScaling{"nvte_delayed_scaling_recipe_amax_and_scale_update"};
inline constexpr Function<void(Handle reduced_amaxes, std::vector<Handle> histories, std::vector<Handle> scales,
                               const char* algorithm, int fp8_dtype, float margin, Stream)>
    kDelayedScalingReduced{"nvte_delayed_scaling_recipe_amax_and_scale_update_after_reduction"};

// fused_rope.h; the backward function has taken start positions since 2.10
inline constexpr Function<void(Handle input, Handle cu_seqlens, Handle freqs, Handle start_positions, Handle output,
                               int qkv_format, bool interleaved, int cp_size, int cp_rank, int s, int b, int h, int d,
                               int d2, int stride_s, int stride_b, int stride_h, int stride_d, Stream)>
    kRopeFwd{"nvte_fused_rope_forward"};
inline constexpr Function<void(Handle dy, Handle cu_seqlens, Handle freqs, Handle start_positions, Handle dx,
                               int qkv_format, bool interleaved, int cp_size, int cp_rank, int s, int b, int h, int d,
                               int d2, int stride_s, int stride_b, int stride_h, int stride_d, Stream)>
    kRopeBwd{"nvte_fused_rope_backward"};
inline constexpr Function<void(Handle dy, Handle cu_seqlens, Handle freqs, Handle dx, int qkv_format, bool interleaved,
                               int cp_size, int cp_rank, int s, int b, int h, int d, int d2, int stride_s, int stride_b,
                               int stride_h, int stride_d, Stream)>
    kRopeBwdBefore210{"nvte_fused_rope_backward"};

// dropout.h
inline constexpr Function<void(Handle input, Handle output, Handle mask, Handle rng_state, float probability, Stream)>
    kDropoutFwd{"nvte_dropout_fwd"};
inline constexpr Function<void(Handle dy, Handle mask, Handle dx, float probability, Stream)> kDropoutBwd{
    "nvte_dropout_bwd"};

// permutation.h: C++ functions
inline constexpr Function<void(Handle input, Handle output, Handle sorted_row_id, Handle row_id_map, Handle prob,
                               Handle prob_grad, Handle input_fwd, int rows, int top_k, int cols, int out_tokens,
                               Stream)>
    kPermute{"_Z12nvte_permutePvS_S_S_S_S_S_iiiiP11CUstream_st"};
inline constexpr Function<void(Handle input, Handle output, Handle row_id_map, Handle prob, int rows, int top_k,
                               int cols, Stream)>
    kUnpermute{"_Z14nvte_unpermutePvS_S_S_iiiP11CUstream_st"};

// fused_router.h
inline constexpr Function<void(Handle logits, int tokens, int experts, int top_k, int use_pre_softmax, int groups,
                               int group_top_k, float scaling_factor, int score_function, Handle expert_bias,
                               Handle probs, Handle routing_map, Handle intermediate, Stream)>
    kRouterTopk{"nvte_fused_topk_with_score_function_forward"};

// transformer_engine.h: how blocks are quantised.
using CreateObject = Function<Handle()>;
using DestroyObject = Function<void(Handle)>;
using SetAttribute = Function<void(Handle, int attribute, const void*, std::size_t bytes)>;
inline constexpr CreateObject kCreateQuantizeConfig{"nvte_create_quantization_config"};
inline constexpr DestroyObject kDestroyQuantizeConfig{"nvte_destroy_quantization_config"};
inline constexpr SetAttribute kSetQuantizeConfig{"nvte_set_quantization_config_attribute"};

// fused_attn.h: parameter objects, seen in 2.20.2; up to 2.19 there are only functions with many arguments, which differ
// from version to version. Attributes: attention_interface.hpp.
inline constexpr CreateObject kCreateAttentionConfig{"nvte_create_fused_attn_config"};
inline constexpr DestroyObject kDestroyAttentionConfig{"nvte_destroy_fused_attn_config"};
inline constexpr SetAttribute kSetAttentionConfig{"nvte_set_fused_attn_config_attribute"};
inline constexpr CreateObject kCreateAttentionFwd{"nvte_create_fused_attn_fwd_params"};
inline constexpr DestroyObject kDestroyAttentionFwd{"nvte_destroy_fused_attn_fwd_params"};
inline constexpr SetAttribute kSetAttentionFwd{"nvte_set_fused_attn_fwd_params_attribute"};
inline constexpr CreateObject kCreateAttentionBwd{"nvte_create_fused_attn_bwd_params"};
inline constexpr DestroyObject kDestroyAttentionBwd{"nvte_destroy_fused_attn_bwd_params"};
inline constexpr SetAttribute kSetAttentionBwd{"nvte_set_fused_attn_bwd_params_attribute"};
inline constexpr Function<int(Handle config, const char** message)> kAttentionBackend{"nvte_get_fused_attn_backend_v2"};
inline constexpr Function<void(Handle)> kAttentionFwd{"nvte_fused_attn_fwd_v2"};
inline constexpr Function<void(Handle)> kAttentionBwd{"nvte_fused_attn_bwd_v2"};
inline constexpr Function<void(TensorPack*)> kCreateTensorPack{"nvte_tensor_pack_create"};
inline constexpr Function<void(TensorPack*)> kDestroyTensorPack{"nvte_tensor_pack_destroy"};

/// Exported names of the functions above; of those for attention, the three that a version has with all others.
inline constexpr std::array kKnownFunctions = {
    kCreateTensor.name,
    kDestroyTensor.name,
    kSetTensorParam.name,
    kSetTensorParamV2.name,
    kTensorShape.name,
    kTensorType.name,
    kCreateMatmulConfig.name,
    kDestroyMatmulConfig.name,
    kSetMatmulConfigAttribute.name,
    kGemm.name,
    kMultiTensorGemm.name,
    kComputeStreams.name,
    kNonTnFp8Supported.name,
    kLayernormFwd.name,
    kLayernormBwd.name,
    kRmsnormFwd.name,
    kRmsnormBwd.name,
    kRmsnormBwdAdd.name,
    kSoftmaxFwd.name,
    kSoftmaxBwd.name,
    kMaskedSoftmaxFwd.name,
    kMaskedSoftmaxBwd.name,
    kTriangularSoftmaxFwd.name,
    kTriangularSoftmaxBwd.name,
    kAlignedCausalSoftmaxFwd.name,
    kAlignedCausalSoftmaxBwd.name,
    kGelu.name,
    kSilu.name,
    kRelu.name,
    kQgelu.name,
    kSrelu.name,
    kGeglu.name,
    kSwiglu.name,
    kReglu.name,
    kQgeglu.name,
    kSreglu.name,
    kDgelu.name,
    kDsilu.name,
    kDrelu.name,
    kDqgelu.name,
    kDsrelu.name,
    kDgeglu.name,
    kDswiglu.name,
    kDreglu.name,
    kDqgeglu.name,
    kDsreglu.name,
    kClampedSwiglu.name,
    kClampedDswiglu.name,
    kClampedSwigluV2.name,
    kClampedDswigluV2.name,
    kQuantize.name,
    kQuantizeV2.name,
    kCreateQuantizeConfig.name,
    kDestroyQuantizeConfig.name,
    kSetQuantizeConfig.name,
    kDequantize.name,
    kTranspose.name,
    kQuantizeDbias.name,
    kQuantizeDbiasDgelu.name,
    kQuantizeDbiasDsilu.name,
    kQuantizeDbiasDrelu.name,
    kQuantizeDbiasDqgelu.name,
    kQuantizeDbiasDsrelu.name,
    kSwizzleScales.name,
    kMultiTensorScale.name,
    kComputeAmax.name,
    kComputeScale.name,
    kDelayedScaling.name,
    kDelayedScalingReduced.name,
    kRopeFwd.name,
    kRopeBwd.name,
    kDropoutFwd.name,
    kDropoutBwd.name,
    kPermute.name,
    kUnpermute.name,
    kRouterTopk.name,
    kAttentionBackend.name,
    kAttentionFwd.name,
    kAttentionBwd.name,
};

}  // namespace numcheck::kernels::transformer_engine
