// Compares our declarations of TransformerEngine's C interface with its headers, all at compile time.
#include "kernels/transformer_engine/interface.hpp"

#include <cstddef>
#include <type_traits>

#include <gtest/gtest.h>
#include <transformer_engine/activation.h>
#include <transformer_engine/cast.h>
#include <transformer_engine/dropout.h>
#include <transformer_engine/fused_attn.h>
#include <transformer_engine/fused_rope.h>
#include <transformer_engine/fused_router.h>
#include <transformer_engine/gemm.h>
#include <transformer_engine/multi_stream.h>
#include <transformer_engine/multi_tensor.h>
#include <transformer_engine/normalization.h>
#include <transformer_engine/permutation.h>
#include <transformer_engine/recipe.h>
#include <transformer_engine/softmax.h>
#include <transformer_engine/swizzle.h>
#include <transformer_engine/transformer_engine.h>
#include <transformer_engine/transpose.h>

namespace numcheck::kernels::transformer_engine {
namespace {

/// A structure that is passed by value, by its size.
template <std::size_t bytes>
struct ByValue {};

/// What a parameter is to the caller of a function: enumerations are int, pointers to structures are pointers.
template <class T>
struct AbiOf {
  static constexpr bool kPointsToClass = std::is_pointer_v<T> && std::is_class_v<std::remove_pointer_t<T>>;
  using type = std::conditional_t<
      std::is_enum_v<T>, int,
      std::conditional_t<kPointsToClass, void*, std::conditional_t<std::is_class_v<T>, ByValue<sizeof(T)>, T>>>;
};
template <>
struct AbiOf<void> {
  using type = void;
};
template <class Result, class... Parameters>
struct AbiOf<Result(Parameters...)> {
  using type = typename AbiOf<Result>::type(typename AbiOf<Parameters>::type...);
};

/// True if the header's function has the signature that we declare.
template <class Declared, class Stated>
constexpr bool declares(const Function<Stated>&) {
  return std::is_same_v<typename AbiOf<Declared>::type, typename AbiOf<Stated>::type>;
}

static_assert(sizeof(Shape) == sizeof(NVTEShape) && offsetof(Shape, ndim) == offsetof(NVTEShape, ndim));
static_assert(sizeof(BasicTensor) == sizeof(NVTEBasicTensor));
static_assert(offsetof(BasicTensor, data) == offsetof(NVTEBasicTensor, data_ptr));
static_assert(offsetof(BasicTensor, dtype) == offsetof(NVTEBasicTensor, dtype));
static_assert(offsetof(BasicTensor, shape) == offsetof(NVTEBasicTensor, shape));

static_assert(int{kByte} == kNVTEByte && int{kInt32} == kNVTEInt32 && int{kInt64} == kNVTEInt64);
static_assert(int{kFloat32} == kNVTEFloat32 && int{kFloat16} == kNVTEFloat16 && int{kBfloat16} == kNVTEBFloat16);
static_assert(int{kFloat8E4m3} == kNVTEFloat8E4M3 && int{kFloat8E5m2} == kNVTEFloat8E5M2);
static_assert(int{kFloat8E8m0} == kNVTEFloat8E8M0);
static_assert(int{kRowwiseData} == kNVTERowwiseData && int{kColumnwiseData} == kNVTEColumnwiseData);
static_assert(int{kScale} == kNVTEScale && int{kAmax} == kNVTEAmax);
static_assert(int{kRowwiseScaleInv} == kNVTERowwiseScaleInv && int{kColumnwiseScaleInv} == kNVTEColumnwiseScaleInv);
static_assert(int{kPerTensor} == NVTE_DELAYED_TENSOR_SCALING && int{kMxfp8} == NVTE_MXFP8_1D_SCALING);
static_assert(int{kBlock1d} == NVTE_BLOCK_SCALING_1D && int{kBlock2d} == NVTE_BLOCK_SCALING_2D);
static_assert(int{kQuantizePowerOfTwo} == kNVTEQuantizationConfigForcePow2Scales);
static_assert(int{kQuantizeEpsilon} == kNVTEQuantizationConfigAmaxEpsilon);
static_assert(int{kQuantizeBlockScaleFormat} == kNVTEQuantizationConfigFloat8BlockScaleTensorFormat);
static_assert(int{kQuantizeRngState} == kNVTEQuantizationConfigRNGState);
static_assert(int{kQuantizeNvfp4Square} == kNVTEQuantizationConfigNVFP42DQuantization);
static_assert(int{kQuantizeStochastic} == kNVTEQuantizationConfigStochasticRounding);
static_assert(int{kFloat4E2m1} == kNVTEFloat4E2M1 && int{kNvfp4} == NVTE_NVFP4_1D_SCALING);
static_assert(int{kColumnwiseAmax} == kNVTEColumnwiseAmax);
static_assert(int{kSwizzledScales} == kNVTEWithGEMMSwizzledScales);
static_assert(int{kMatmulBias} == kNVTEMatmulConfigBiasTensor);
static_assert(int{kMatmulGeluEpilogue} == kNVTEMatmulConfigWithGELUEpilogue);
static_assert(int{kMatmulEpilogueAux} == kNVTEMatmulConfigEpilogueAuxTensor);
static_assert(int{kMatmulSplitAccumulator} == kNVTEMatmulConfigUseSplitAccumulator);
static_assert(int{kSbhd} == NVTE_SBHD && int{kBshd} == NVTE_BSHD);

static_assert(declares<decltype(::nvte_create_tensor)>(kCreateTensor));
static_assert(declares<decltype(::nvte_destroy_tensor)>(kDestroyTensor));
static_assert(declares<decltype(::nvte_set_tensor_param)>(kSetTensorParam));
static_assert(declares<decltype(::nvte_tensor_shape)>(kTensorShape));
static_assert(declares<decltype(::nvte_tensor_type)>(kTensorType));
static_assert(declares<decltype(::nvte_create_matmul_config)>(kCreateMatmulConfig));
static_assert(declares<decltype(::nvte_destroy_matmul_config)>(kDestroyMatmulConfig));
static_assert(declares<decltype(::nvte_set_matmul_config_attribute)>(kSetMatmulConfigAttribute));
static_assert(declares<decltype(::nvte_cublas_gemm_v2)>(kGemm));
static_assert(declares<decltype(::nvte_multi_tensor_gemm)>(kMultiTensorGemm));
static_assert(declares<decltype(::nvte_get_num_compute_streams)>(kComputeStreams));
static_assert(declares<decltype(::nvte_is_non_tn_fp8_gemm_supported)>(kNonTnFp8Supported));

static_assert(declares<decltype(::nvte_layernorm_fwd)>(kLayernormFwd));
static_assert(declares<decltype(::nvte_layernorm_bwd)>(kLayernormBwd));
static_assert(declares<decltype(::nvte_rmsnorm_fwd)>(kRmsnormFwd));
static_assert(declares<decltype(::nvte_rmsnorm_bwd)>(kRmsnormBwd));
static_assert(declares<decltype(::nvte_rmsnorm_bwd_add)>(kRmsnormBwdAdd));

static_assert(declares<decltype(::nvte_scaled_softmax_forward)>(kSoftmaxFwd));
static_assert(declares<decltype(::nvte_scaled_softmax_backward)>(kSoftmaxBwd));
static_assert(declares<decltype(::nvte_scaled_masked_softmax_forward)>(kMaskedSoftmaxFwd));
static_assert(declares<decltype(::nvte_scaled_masked_softmax_backward)>(kMaskedSoftmaxBwd));
static_assert(declares<decltype(::nvte_scaled_upper_triang_masked_softmax_forward)>(kTriangularSoftmaxFwd));
static_assert(declares<decltype(::nvte_scaled_upper_triang_masked_softmax_backward)>(kTriangularSoftmaxBwd));
static_assert(declares<decltype(::nvte_scaled_aligned_causal_masked_softmax_forward)>(kAlignedCausalSoftmaxFwd));
static_assert(declares<decltype(::nvte_scaled_aligned_causal_masked_softmax_backward)>(kAlignedCausalSoftmaxBwd));

static_assert(declares<decltype(::nvte_gelu)>(kGelu) && declares<decltype(::nvte_dgelu)>(kDgelu));
static_assert(declares<decltype(::nvte_silu)>(kSilu) && declares<decltype(::nvte_dsilu)>(kDsilu));
static_assert(declares<decltype(::nvte_relu)>(kRelu) && declares<decltype(::nvte_drelu)>(kDrelu));
static_assert(declares<decltype(::nvte_qgelu)>(kQgelu) && declares<decltype(::nvte_dqgelu)>(kDqgelu));
static_assert(declares<decltype(::nvte_srelu)>(kSrelu) && declares<decltype(::nvte_dsrelu)>(kDsrelu));
static_assert(declares<decltype(::nvte_geglu)>(kGeglu) && declares<decltype(::nvte_dgeglu)>(kDgeglu));
static_assert(declares<decltype(::nvte_swiglu)>(kSwiglu) && declares<decltype(::nvte_dswiglu)>(kDswiglu));
static_assert(declares<decltype(::nvte_reglu)>(kReglu) && declares<decltype(::nvte_dreglu)>(kDreglu));
static_assert(declares<decltype(::nvte_qgeglu)>(kQgeglu) && declares<decltype(::nvte_dqgeglu)>(kDqgeglu));
static_assert(declares<decltype(::nvte_sreglu)>(kSreglu) && declares<decltype(::nvte_dsreglu)>(kDsreglu));
static_assert(declares<decltype(::nvte_clamped_swiglu)>(kClampedSwiglu));
static_assert(declares<decltype(::nvte_clamped_dswiglu)>(kClampedDswiglu));

static_assert(declares<decltype(::nvte_quantize)>(kQuantize));
static_assert(declares<decltype(::nvte_dequantize)>(kDequantize));
static_assert(declares<decltype(::nvte_quantize_v2)>(kQuantizeV2));
static_assert(declares<decltype(::nvte_create_quantization_config)>(kCreateQuantizeConfig));
static_assert(declares<decltype(::nvte_destroy_quantization_config)>(kDestroyQuantizeConfig));
static_assert(declares<decltype(::nvte_set_quantization_config_attribute)>(kSetQuantizeConfig));
static_assert(declares<decltype(::nvte_transpose)>(kTranspose));
static_assert(declares<decltype(::nvte_quantize_dbias)>(kQuantizeDbias));
static_assert(declares<decltype(::nvte_quantize_dbias_dgelu)>(kQuantizeDbiasDgelu));
static_assert(declares<decltype(::nvte_quantize_dbias_dsilu)>(kQuantizeDbiasDsilu));
static_assert(declares<decltype(::nvte_quantize_dbias_drelu)>(kQuantizeDbiasDrelu));
static_assert(declares<decltype(::nvte_quantize_dbias_dqgelu)>(kQuantizeDbiasDqgelu));
static_assert(declares<decltype(::nvte_quantize_dbias_dsrelu)>(kQuantizeDbiasDsrelu));

static_assert(declares<decltype(::nvte_swizzle_scaling_factors)>(kSwizzleScales));
static_assert(declares<decltype(::nvte_multi_tensor_compute_scale_and_scale_inv_cuda)>(kMultiTensorScale));
static_assert(declares<decltype(::nvte_compute_amax)>(kComputeAmax));
static_assert(declares<decltype(::nvte_compute_scale_from_amax)>(kComputeScale));
static_assert(declares<decltype(::nvte_delayed_scaling_recipe_amax_and_scale_update)>(kDelayedScaling));
static_assert(
    declares<decltype(::nvte_delayed_scaling_recipe_amax_and_scale_update_after_reduction)>(kDelayedScalingReduced));
static_assert(declares<decltype(::nvte_fused_rope_forward)>(kRopeFwd));
static_assert(declares<decltype(::nvte_dropout_fwd)>(kDropoutFwd));
static_assert(declares<decltype(::nvte_dropout_bwd)>(kDropoutBwd));
static_assert(declares<decltype(::nvte_permute)>(kPermute));
static_assert(declares<decltype(::nvte_unpermute)>(kUnpermute));
static_assert(declares<decltype(::nvte_fused_topk_with_score_function_forward)>(kRouterTopk));

// Differences between versions.
#ifdef TE_HEADERS_FROM_2_10
static_assert(declares<decltype(::nvte_fused_rope_backward)>(kRopeBwd));
#else
static_assert(declares<decltype(::nvte_fused_rope_backward)>(kRopeBwdBefore210));
#endif
#ifdef TE_HEADERS_WITH_nvte_set_tensor_param_v2
static_assert(declares<decltype(::nvte_set_tensor_param_v2)>(kSetTensorParamV2));
#endif
#ifdef TE_HEADERS_WITH_nvte_clamped_swiglu_v2
static_assert(declares<decltype(::nvte_clamped_swiglu_v2)>(kClampedSwigluV2));
static_assert(declares<decltype(::nvte_clamped_dswiglu_v2)>(kClampedDswigluV2));
#endif

TEST(TeInterface, is_that_of_the_headers) {
  // The checks above happen at compile time; a wrong declaration must not pass them.
  EXPECT_FALSE(declares<decltype(::nvte_gelu)>(kDgelu));
  EXPECT_FALSE(declares<decltype(::nvte_rmsnorm_fwd)>(kRmsnormBwd));
}

}  // namespace
}  // namespace numcheck::kernels::transformer_engine
