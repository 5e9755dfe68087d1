// Launchers of what unfused attention does between its products. Plain C++17: included by nvcc.
//
// Scores, weights and their gradients are dense [batches, heads, sq, sk] tensors in the format of the inputs. Formulas:
// bindings.hpp. FP32 arithmetic without fast math; each thread adds in order, then a tree whose shape is fixed.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace numcheck::kernels::unfused {

enum class Format { fp32, bf16, fp16 };

enum class Bias { none, pre_scale, post_scale, alibi };

/// What the denominator has besides the keys.
enum class Sink { none, one, learnable };

/// Elements between neighbours of a tensor with channels side by side, in whatever layout.
struct HeadStrides {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t position = 0;
};

/// Which keys a query sees, and how products become scores: the parameters of op::AttentionParams.
struct AttentionRules {
  Format format = Format::fp32;
  std::int64_t batches = 0;
  std::int64_t heads = 0;
  std::int64_t sq = 0;
  std::int64_t sk = 0;
  bool causal = false;
  bool top_left = false;  ///< the diagonal starts in the top left corner, otherwise it ends in the bottom right one
  std::int64_t window_left = -1;
  std::int64_t window_right = -1;
  const std::int32_t* q_lengths = nullptr;  ///< null: all sequences are whole
  const std::int32_t* kv_lengths = nullptr;
  Bias bias = Bias::none;
  const void* bias_tensor = nullptr;  ///< [heads, sq, sk]; null: none
  float scale = 1;                    ///< applied here with Bias::pre_scale, otherwise by the product
  float softcap = 0;
  Sink sink = Sink::none;
  const float* softmax_offset = nullptr;  ///< [heads] with Sink::learnable
  const void* dropout_mask = nullptr;     ///< [batches * heads, sq, sk], 1 = kept; null: no dropout
  float keep_scale = 1;                   ///< 1 / (1 - dropout)
};

/// One number per query: [batches, heads, sq]. Null: not wanted.
struct RowStatistics {
  float* lse = nullptr;
  float* max_logit = nullptr;  ///< the largest score without the sink
};

/// Weights from products, which may be the same memory.
cudaError_t launch_weights(const AttentionRules& rules, const void* products, void* weights,
                           const RowStatistics& statistics, cudaStream_t stream);

/// Weights times mask / (1 - dropout); `dropped` may be `weights`. Precondition: there is a mask.
cudaError_t launch_dropout(const AttentionRules& rules, const void* weights, void* dropped, cudaStream_t stream);

/// Rows of `channels` numbers: the output and its gradient.
struct OutputRows {
  const void* output = nullptr;
  const void* gradient = nullptr;
  HeadStrides strides;
  std::int64_t channels = 0;
};

/// dots [batches, heads, sq]: D of each query; `gradients`: in place from dp, before dropout, to ds; `weights` are those
/// before dropout. Keys that a query does not see get 0, whatever their dp.
cudaError_t launch_score_gradients(const AttentionRules& rules, const OutputRows& rows, const void* weights,
                                   void* gradients, float* dots, cudaStream_t stream);

/// In place from ds to dt: through the cap, then the scale of Bias::pre_scale. `products` as in launch_weights; they
/// are read only if there is a cap.
cudaError_t launch_product_gradients(const AttentionRules& rules, const void* products, void* gradients,
                                     cudaStream_t stream);

/// dbias [heads, sq, sk]: the sum over sequences, in their order.
cudaError_t launch_bias_gradient(const AttentionRules& rules, const void* gradients, void* dbias, cudaStream_t stream);

/// dsoftmax_offset [heads].
cudaError_t launch_offset_gradient(const AttentionRules& rules, const float* lse, const float* dots, float* gradient,
                                   cudaStream_t stream);

/// Gradients of keys or values: dense [batches, shared * group, length, channels], one for each head of the queries,
/// are added over the group, in order.
struct GroupSum {
  Format format = Format::fp32;
  std::int64_t batches = 0;
  std::int64_t shared = 0;
  std::int64_t group = 1;
  std::int64_t length = 0;
  std::int64_t channels = 0;
  const void* parts = nullptr;
  void* sum = nullptr;
  HeadStrides strides;  ///< of `sum`
};
cudaError_t launch_group_sum(const GroupSum& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::unfused
