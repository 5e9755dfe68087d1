// The part of cuDNN's C interface that is called: its constants and signatures, repeated here so that the program
// builds without its headers. A test compares them with the headers where these are installed.
// Source: cuDNN 9.19, cudnn_graph_v9.h and cudnn_ops_v9.h; the constants have not changed since 9.0.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

namespace numcheck::kernels::cudnn {

using ContextHandle = struct Context*;  ///< cudnnHandle_t
using BackendHandle = void*;            ///< cudnnBackendDescriptor_t
using TensorHandle = struct Tensor4d*;  ///< cudnnTensorDescriptor_t
using Stream = CUstream_st*;            ///< cudaStream_t

/// cudnnStatus_t: the thousands are a category (1 set-up, 2 bad parameter, 3 not supported, 4 internal, 5 execution).
using Status = int;
inline constexpr Status kSuccess = 0;
inline constexpr Status kMissingPrerequisite = 3008;  ///< no libcuda or no libnvrtc for run-time compilation
inline constexpr Status kDriverFailed = 5001;

/// cudnnDataType_t.
enum class DataType : int {
  fp32 = 0,
  fp16 = 2,
  int32 = 4,
  bf16 = 9,
  int64 = 10,
  boolean = 11,
  fp8_e4m3 = 12,
  fp8_e5m2 = 13,
};

/// cudnnBackendDescriptorType_t.
enum class Kind : int {
  pointwise = 0,
  engine = 2,
  engine_config = 3,
  heuristics = 4,
  execution_plan = 5,
  knob_choice = 7,
  pointwise_operation = 13,
  operation_graph = 15,
  variant_pack = 16,
  tensor = 17,
  matmul = 18,
  matmul_operation = 19,
  reduction = 21,
  reduction_operation = 22,
  norm_forward_operation = 29,
  norm_backward_operation = 30,
  reshape_operation = 31,
  rng = 32,
  rng_operation = 33,
  device_properties = 38,
  sdpa_forward_operation = 41,  ///< since 9.13.1
};

/// cudnnBackendAttributeName_t.
enum class Attribute : int {
  pointwise_mode = 0,
  pointwise_precision = 1,
  pointwise_axis = 9,
  heuristics_mode = 200,
  heuristics_graph = 201,
  heuristics_results = 202,
  heuristics_device = 204,
  config_engine = 300,
  config_knobs = 302,
  plan_handle = 400,
  plan_config = 401,
  plan_workspace_bytes = 402,
  plan_device = 407,
  knob_type = 600,
  knob_value = 601,
  pointwise_operation_descriptor = 750,
  pointwise_operation_x = 751,
  pointwise_operation_b = 752,
  pointwise_operation_y = 753,
  pointwise_operation_dx = 756,
  pointwise_operation_dy = 757,
  pointwise_operation_t = 758,
  graph_handle = 800,
  graph_operations = 801,
  tensor_alignment = 900,
  tensor_data_type = 901,
  tensor_dimensions = 902,
  tensor_strides = 903,
  tensor_uid = 906,
  tensor_is_virtual = 907,
  tensor_is_by_value = 908,
  tensor_ragged_offset = 913,
  pack_uids = 1000,
  pack_pointers = 1001,
  pack_workspace = 1003,
  engine_id = 1301,
  engine_numerical_notes = 1303,
  engine_behavior_notes = 1305,
  matmul_precision = 1500,
  matmul_operation_a = 1520,
  matmul_operation_b = 1521,
  matmul_operation_c = 1522,
  matmul_operation_descriptor = 1523,
  matmul_operation_rows = 1525,     ///< CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC
  matmul_operation_columns = 1526,  ///< ... N
  matmul_operation_inner = 1527,    ///< ... K
  reduction_operator = 1600,
  reduction_precision = 1601,
  reduction_operation_x = 1610,
  reduction_operation_y = 1611,
  reduction_operation_descriptor = 1612,
  norm_forward_mode = 2000,
  norm_forward_phase = 2001,
  norm_forward_x = 2002,
  norm_forward_mean = 2003,
  norm_forward_inverse_deviation = 2004,
  norm_forward_scale = 2005,
  norm_forward_bias = 2006,
  norm_forward_epsilon = 2007,
  norm_forward_y = 2013,
  norm_backward_mode = 2100,
  norm_backward_x = 2101,
  norm_backward_mean = 2102,
  norm_backward_inverse_deviation = 2103,
  norm_backward_dy = 2104,
  norm_backward_scale = 2105,
  norm_backward_dscale = 2107,
  norm_backward_dbias = 2108,
  norm_backward_dx = 2109,
  reshape_operation_x = 2200,
  reshape_operation_y = 2201,
  rng_distribution = 2300,
  rng_probability = 2305,  ///< CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY
  rng_operation_y = 2310,
  rng_operation_seed = 2311,
  rng_operation_descriptor = 2312,
  rng_operation_offset = 2313,
  device_json = 2702,
  sdpa_forward_q = 2800,
  sdpa_forward_k = 2801,
  sdpa_forward_v = 2802,
  sdpa_forward_o = 2803,
  sdpa_forward_statistics = 2804,
  sdpa_forward_scale = 2805,
  sdpa_forward_q_lengths = 2809,
  sdpa_forward_kv_lengths = 2810,
};

/// cudnnBackendAttributeType_t.
enum class AttributeType : int {
  handle = 0,
  data_type = 1,
  boolean = 2,
  int64 = 3,
  real = 5,
  void_pointer = 6,
  heuristics_mode = 8,
  knob_type = 9,
  numerical_note = 11,
  pointwise_mode = 14,
  descriptor = 15,
  reduction_operator = 18,
  behavior_note = 19,
  character = 24,
  norm_mode = 27,
  norm_phase = 28,
  rng_distribution = 29,
};

/// cudnnPointwiseMode_t.
enum class PointwiseMode : int {
  add = 0,
  mul = 1,
  max = 3,
  div = 6,
  sub = 9,
  abs = 10,
  exp = 13,
  log = 15,
  identity = 21,
  tanh_forward = 101,
  tanh_backward = 201,
  cmp_gt = 302,
  cmp_ge = 303,
  cmp_lt = 304,
  logical_and = 400,
  gen_index = 501,
  binary_select = 601,
};

/// cudnnReduceTensorOp_t.
enum class ReduceOperator : int { add = 0, max = 3, amax = 4 };

/// cudnnRngDistribution_t.
enum class RngDistribution : int { bernoulli = 0 };

/// cudnnBackendHeurMode_t, cudnnBackendNormMode_t, cudnnBackendNormFwdPhase_t.
enum class HeuristicsMode : int { fallback = 2, a = 3 };
enum class NormMode : int { layer = 0, rms = 4 };
enum class NormPhase : int { training = 1 };

/// cudnnBackendNumericalNote_t, cudnnBackendBehaviorNote_t and cudnnBackendKnobType_t are only read; engines.cpp has
/// their names.
enum class NumericalNote : int { nondeterministic = 4 };
enum class BehaviorNote : int {};
enum class KnobType : int {};

/// cudnnSoftmaxAlgorithm_t, cudnnSoftmaxMode_t, cudnnTensorFormat_t.
enum class SoftmaxAlgorithm : int { accurate = 1 };
enum class SoftmaxMode : int { instance = 0 };
enum class TensorFormat : int { nchw = 0 };

/// Signatures, named by what the functions do.
using GetVersion = std::size_t();
using GetErrorString = const char*(Status);
using GetLastErrorString = void(char*, std::size_t);
using CreateContext = Status(ContextHandle*);
using DestroyContext = Status(ContextHandle);
using SetStream = Status(ContextHandle, Stream);
using CreateDescriptor = Status(Kind, BackendHandle*);
using DestroyDescriptor = Status(BackendHandle);
using Finalize = Status(BackendHandle);
using SetAttribute = Status(BackendHandle, Attribute, AttributeType, std::int64_t, const void*);
using GetAttribute = Status(BackendHandle, Attribute, AttributeType, std::int64_t, std::int64_t*, void*);
using Execute = Status(ContextHandle, BackendHandle, BackendHandle);
using CreateTensor = Status(TensorHandle*);
using DestroyTensor = Status(TensorHandle);
using SetTensor = Status(TensorHandle, TensorFormat, DataType, int, int, int, int);
using SoftmaxForward = Status(ContextHandle, SoftmaxAlgorithm, SoftmaxMode, const void*, TensorHandle, const void*,
                              const void*, TensorHandle, void*);
using SoftmaxBackward = Status(ContextHandle, SoftmaxAlgorithm, SoftmaxMode, const void*, TensorHandle, const void*,
                               TensorHandle, const void*, const void*, TensorHandle, void*);

}  // namespace numcheck::kernels::cudnn
