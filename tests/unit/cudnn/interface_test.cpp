// Compares our declarations of cuDNN's C interface with its headers, all at compile time.
#include "kernels/cudnn/interface.hpp"

#include <type_traits>

#include <cudnn.h>
#include <gtest/gtest.h>

namespace numcheck::kernels::cudnn {
namespace {

/// What a parameter is to the caller of a function: enumerations are int, pointers to structures are pointers.
template <class T>
struct AbiOf {
  static constexpr bool kPointsToClass = std::is_pointer_v<T> && std::is_class_v<std::remove_pointer_t<T>>;
  using type = std::conditional_t<std::is_enum_v<T>, int, std::conditional_t<kPointsToClass, void*, T>>;
};
template <>
struct AbiOf<ContextHandle*> {
  using type = void**;
};
template <>
struct AbiOf<cudnnHandle_t*> {
  using type = void**;
};
template <>
struct AbiOf<TensorHandle*> {
  using type = void**;
};
template <>
struct AbiOf<cudnnTensorDescriptor_t*> {
  using type = void**;
};
template <class Result, class... Parameters>
struct AbiOf<Result(Parameters...)> {
  using type = typename AbiOf<Result>::type(typename AbiOf<Parameters>::type...);
};

/// True if the header's function has the signature that we declare.
template <class Stated, class Declared>
constexpr bool declares(Declared*) {
  return std::is_same_v<typename AbiOf<Declared>::type, typename AbiOf<Stated>::type>;
}

static_assert(declares<GetVersion>(&cudnnGetVersion) && declares<GetVersion>(&cudnnGetCudartVersion));
static_assert(declares<GetErrorString>(&cudnnGetErrorString));
static_assert(declares<GetLastErrorString>(&cudnnGetLastErrorString));
static_assert(declares<CreateContext>(&cudnnCreate) && declares<DestroyContext>(&cudnnDestroy));
static_assert(declares<SetStream>(&cudnnSetStream));
static_assert(declares<CreateDescriptor>(&cudnnBackendCreateDescriptor));
static_assert(declares<DestroyDescriptor>(&cudnnBackendDestroyDescriptor));
static_assert(declares<Finalize>(&cudnnBackendFinalize));
static_assert(declares<SetAttribute>(&cudnnBackendSetAttribute));
static_assert(declares<GetAttribute>(&cudnnBackendGetAttribute));
static_assert(declares<Execute>(&cudnnBackendExecute));
static_assert(declares<CreateTensor>(&cudnnCreateTensorDescriptor));
static_assert(declares<DestroyTensor>(&cudnnDestroyTensorDescriptor));
static_assert(declares<SetTensor>(&cudnnSetTensor4dDescriptor));
static_assert(declares<SoftmaxForward>(&cudnnSoftmaxForward));
static_assert(declares<SoftmaxBackward>(&cudnnSoftmaxBackward));

template <class Enum>
constexpr bool same(Enum ours, int theirs) {
  return static_cast<int>(ours) == theirs;
}

static_assert(same(kSuccess, CUDNN_STATUS_SUCCESS));
static_assert(same(kMissingPrerequisite, CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING));
static_assert(same(kDriverFailed, CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER));
static_assert(CUDNN_STATUS_NOT_SUPPORTED == 3000 && CUDNN_STATUS_BAD_PARAM == 2000);

static_assert(same(DataType::fp32, CUDNN_DATA_FLOAT) && same(DataType::fp16, CUDNN_DATA_HALF));
static_assert(same(DataType::bf16, CUDNN_DATA_BFLOAT16) && same(DataType::int32, CUDNN_DATA_INT32));
static_assert(same(DataType::boolean, CUDNN_DATA_BOOLEAN));

static_assert(same(Kind::pointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
static_assert(same(Kind::engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR));
static_assert(same(Kind::engine_config, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
static_assert(same(Kind::heuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
static_assert(same(Kind::execution_plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
static_assert(same(Kind::knob_choice, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR));
static_assert(same(Kind::pointwise_operation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR));
static_assert(same(Kind::operation_graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
static_assert(same(Kind::variant_pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
static_assert(same(Kind::tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
static_assert(same(Kind::norm_forward_operation, CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR));
static_assert(same(Kind::norm_backward_operation, CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR));
static_assert(same(Kind::matmul, CUDNN_BACKEND_MATMUL_DESCRIPTOR));
static_assert(same(Kind::matmul_operation, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR));
static_assert(same(Kind::reduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR));
static_assert(same(Kind::reduction_operation, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR));
static_assert(same(Kind::reshape_operation, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR));
static_assert(same(Kind::rng, CUDNN_BACKEND_RNG_DESCRIPTOR));
static_assert(same(Kind::rng_operation, CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR));

using A = Attribute;
static_assert(same(A::pointwise_mode, CUDNN_ATTR_POINTWISE_MODE));
static_assert(same(A::pointwise_precision, CUDNN_ATTR_POINTWISE_MATH_PREC));
static_assert(same(A::heuristics_mode, CUDNN_ATTR_ENGINEHEUR_MODE));
static_assert(same(A::heuristics_graph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
static_assert(same(A::heuristics_results, CUDNN_ATTR_ENGINEHEUR_RESULTS));
static_assert(same(A::config_engine, CUDNN_ATTR_ENGINECFG_ENGINE));
static_assert(same(A::config_knobs, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES));
static_assert(same(A::plan_handle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE));
static_assert(same(A::plan_config, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
static_assert(same(A::plan_workspace_bytes, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
static_assert(same(A::knob_type, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE));
static_assert(same(A::knob_value, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
static_assert(same(A::pointwise_operation_descriptor, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR));
static_assert(same(A::pointwise_operation_x, CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
static_assert(same(A::pointwise_operation_b, CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
static_assert(same(A::pointwise_operation_y, CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
static_assert(same(A::graph_handle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE));
static_assert(same(A::graph_operations, CUDNN_ATTR_OPERATIONGRAPH_OPS));
static_assert(same(A::tensor_alignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT));
static_assert(same(A::tensor_data_type, CUDNN_ATTR_TENSOR_DATA_TYPE));
static_assert(same(A::tensor_dimensions, CUDNN_ATTR_TENSOR_DIMENSIONS));
static_assert(same(A::tensor_strides, CUDNN_ATTR_TENSOR_STRIDES));
static_assert(same(A::tensor_uid, CUDNN_ATTR_TENSOR_UNIQUE_ID));
static_assert(same(A::tensor_is_virtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL));
static_assert(same(A::tensor_is_by_value, CUDNN_ATTR_TENSOR_IS_BY_VALUE));
static_assert(same(A::tensor_ragged_offset, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC));
static_assert(same(A::pack_uids, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS));
static_assert(same(A::pack_pointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS));
static_assert(same(A::pack_workspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
static_assert(same(A::engine_id, CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
static_assert(same(A::engine_numerical_notes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE));
static_assert(same(A::engine_behavior_notes, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE));
static_assert(same(A::pointwise_axis, CUDNN_ATTR_POINTWISE_AXIS));
static_assert(same(A::pointwise_operation_dx, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC));
static_assert(same(A::pointwise_operation_dy, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC));
static_assert(same(A::pointwise_operation_t, CUDNN_ATTR_OPERATION_POINTWISE_TDESC));
static_assert(same(A::matmul_precision, CUDNN_ATTR_MATMUL_COMP_TYPE));
static_assert(same(A::matmul_operation_a, CUDNN_ATTR_OPERATION_MATMUL_ADESC));
static_assert(same(A::matmul_operation_b, CUDNN_ATTR_OPERATION_MATMUL_BDESC));
static_assert(same(A::matmul_operation_c, CUDNN_ATTR_OPERATION_MATMUL_CDESC));
static_assert(same(A::matmul_operation_descriptor, CUDNN_ATTR_OPERATION_MATMUL_DESC));
static_assert(same(A::matmul_operation_rows, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC));
static_assert(same(A::matmul_operation_columns, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC));
static_assert(same(A::matmul_operation_inner, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC));
static_assert(same(A::reduction_operator, CUDNN_ATTR_REDUCTION_OPERATOR));
static_assert(same(A::reduction_precision, CUDNN_ATTR_REDUCTION_COMP_TYPE));
static_assert(same(A::reduction_operation_x, CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
static_assert(same(A::reduction_operation_y, CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
static_assert(same(A::reduction_operation_descriptor, CUDNN_ATTR_OPERATION_REDUCTION_DESC));
static_assert(same(A::reshape_operation_x, CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
static_assert(same(A::reshape_operation_y, CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
static_assert(same(A::rng_distribution, CUDNN_ATTR_RNG_DISTRIBUTION));
static_assert(same(A::rng_probability, CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY));
static_assert(same(A::rng_operation_y, CUDNN_ATTR_OPERATION_RNG_YDESC));
static_assert(same(A::rng_operation_seed, CUDNN_ATTR_OPERATION_RNG_SEED));
static_assert(same(A::rng_operation_descriptor, CUDNN_ATTR_OPERATION_RNG_DESC));
static_assert(same(A::rng_operation_offset, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC));
static_assert(same(RngDistribution::bernoulli, CUDNN_RNG_DISTRIBUTION_BERNOULLI));
static_assert(same(A::norm_forward_mode, CUDNN_ATTR_OPERATION_NORM_FWD_MODE));
static_assert(same(A::norm_forward_phase, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE));
static_assert(same(A::norm_forward_x, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC));
static_assert(same(A::norm_forward_mean, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC));
static_assert(same(A::norm_forward_inverse_deviation, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC));
static_assert(same(A::norm_forward_scale, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC));
static_assert(same(A::norm_forward_bias, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC));
static_assert(same(A::norm_forward_epsilon, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC));
static_assert(same(A::norm_forward_y, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC));
static_assert(same(A::norm_backward_mode, CUDNN_ATTR_OPERATION_NORM_BWD_MODE));
static_assert(same(A::norm_backward_x, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC));
static_assert(same(A::norm_backward_mean, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC));
static_assert(same(A::norm_backward_inverse_deviation, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC));
static_assert(same(A::norm_backward_dy, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC));
static_assert(same(A::norm_backward_scale, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC));
static_assert(same(A::norm_backward_dscale, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC));
static_assert(same(A::norm_backward_dbias, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC));
static_assert(same(A::norm_backward_dx, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC));

using T = AttributeType;
static_assert(same(T::handle, CUDNN_TYPE_HANDLE) && same(T::data_type, CUDNN_TYPE_DATA_TYPE));
static_assert(same(T::boolean, CUDNN_TYPE_BOOLEAN) && same(T::int64, CUDNN_TYPE_INT64));
static_assert(same(T::void_pointer, CUDNN_TYPE_VOID_PTR) && same(T::heuristics_mode, CUDNN_TYPE_HEUR_MODE));
static_assert(same(T::knob_type, CUDNN_TYPE_KNOB_TYPE) && same(T::numerical_note, CUDNN_TYPE_NUMERICAL_NOTE));
static_assert(same(T::pointwise_mode, CUDNN_TYPE_POINTWISE_MODE));
static_assert(same(T::descriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR));
static_assert(same(T::behavior_note, CUDNN_TYPE_BEHAVIOR_NOTE) && same(T::character, CUDNN_TYPE_CHAR));
static_assert(same(T::norm_mode, CUDNN_TYPE_NORM_MODE) && same(T::norm_phase, CUDNN_TYPE_NORM_FWD_PHASE));

static_assert(same(T::reduction_operator, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE));
static_assert(same(ReduceOperator::add, CUDNN_REDUCE_TENSOR_ADD) && same(ReduceOperator::max, CUDNN_REDUCE_TENSOR_MAX));
static_assert(same(NumericalNote::nondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC));

static_assert(same(PointwiseMode::add, CUDNN_POINTWISE_ADD) && same(PointwiseMode::mul, CUDNN_POINTWISE_MUL));
static_assert(same(PointwiseMode::sub, CUDNN_POINTWISE_SUB) && same(PointwiseMode::div, CUDNN_POINTWISE_DIV));
static_assert(same(PointwiseMode::max, CUDNN_POINTWISE_MAX) && same(PointwiseMode::abs, CUDNN_POINTWISE_ABS));
static_assert(same(PointwiseMode::exp, CUDNN_POINTWISE_EXP) && same(PointwiseMode::log, CUDNN_POINTWISE_LOG));
static_assert(same(PointwiseMode::identity, CUDNN_POINTWISE_IDENTITY));
static_assert(same(PointwiseMode::tanh_forward, CUDNN_POINTWISE_TANH_FWD));
static_assert(same(PointwiseMode::tanh_backward, CUDNN_POINTWISE_TANH_BWD));
static_assert(same(PointwiseMode::cmp_gt, CUDNN_POINTWISE_CMP_GT));
static_assert(same(PointwiseMode::cmp_ge, CUDNN_POINTWISE_CMP_GE));
static_assert(same(PointwiseMode::cmp_lt, CUDNN_POINTWISE_CMP_LT));
static_assert(same(PointwiseMode::logical_and, CUDNN_POINTWISE_LOGICAL_AND));
static_assert(same(PointwiseMode::gen_index, CUDNN_POINTWISE_GEN_INDEX));
static_assert(same(PointwiseMode::binary_select, CUDNN_POINTWISE_BINARY_SELECT));
static_assert(same(HeuristicsMode::a, CUDNN_HEUR_MODE_A) && same(HeuristicsMode::fallback, CUDNN_HEUR_MODE_FALLBACK));
static_assert(same(NormMode::layer, CUDNN_LAYER_NORM) && same(NormMode::rms, CUDNN_RMS_NORM));
static_assert(same(NormPhase::training, CUDNN_NORM_FWD_TRAINING));
static_assert(same(SoftmaxAlgorithm::accurate, CUDNN_SOFTMAX_ACCURATE));
static_assert(same(SoftmaxMode::instance, CUDNN_SOFTMAX_MODE_INSTANCE));
static_assert(same(TensorFormat::nchw, CUDNN_TENSOR_NCHW));

// Version 9.8 introduced devices given by properties.
#if CUDNN_VERSION >= 90800
static_assert(same(Kind::device_properties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR));
static_assert(same(A::heuristics_device, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP));
static_assert(same(A::plan_device, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP));
static_assert(same(A::device_json, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION));
#endif

// Attention as one operation; lengths since 9.15.
#if CUDNN_VERSION >= 91500
static_assert(same(Kind::sdpa_forward_operation, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR));
static_assert(same(A::sdpa_forward_q, CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC));
static_assert(same(A::sdpa_forward_k, CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC));
static_assert(same(A::sdpa_forward_v, CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC));
static_assert(same(A::sdpa_forward_o, CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC));
static_assert(same(A::sdpa_forward_scale, CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC));
static_assert(same(A::sdpa_forward_q_lengths, CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC));
static_assert(same(A::sdpa_forward_kv_lengths, CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC));
#if CUDNN_VERSION < 92100
static_assert(same(A::sdpa_forward_statistics, CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC));
#endif
#endif

TEST(CudnnInterface, is_the_headers) {
  SUCCEED() << "it compiles";
}

}  // namespace
}  // namespace numcheck::kernels::cudnn
