// Launchers of attention and of its gradients. Plain C++17: included by nvcc.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "kernels/cuda/tensor.hpp"

namespace numcheck::kernels::cuda {

/// Positions and channels of one kind of heads: channel c of position i is element
/// batch * batch_stride + head * head_stride + i * stride + c; with `starts`, starts[batch] * stride takes the first
/// term's place, and a sequence has only the positions that count.
struct HeadTensor {
  Tensor tensor;
  const int* starts = nullptr;  ///< tokens, in device memory; null: sequences have the same number of positions
  std::int64_t batch_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t stride = 0;
  int positions = 0;
  int channels = 0;
};

enum class ScoreBias { none, pre_scale, post_scale, alibi };

/// What a query's denominator has besides the keys: nothing, 1, or exp(softmax_offset[head]).
enum class Sink { none, one, learnable };

/// The parameters of op::AttentionParams that both directions use, and the tensors that are not heads.
struct AttentionRules {
  int batches = 1;
  int heads = 1;
  int kv_heads = 1;
  int sq = 0;
  int sk = 0;
  float scale = 1;
  float softcap = 0;  ///< 0: none
  bool causal = false;
  bool top_left = false;  ///< the diagonal starts in the top left corner, not at keys - queries
  int window_left = -1;   ///< -1: no limit
  int window_right = -1;
  ScoreBias bias_kind = ScoreBias::none;
  Tensor bias;                    ///< [heads, sq, sk]; null: none
  const float* slopes = nullptr;  ///< of ALiBi, [heads], in device memory
  Sink sink = Sink::none;
  const float* offsets = nullptr;  ///< [heads]; null unless learnable
  const int* q_lengths = nullptr;  ///< [batches]; null: every sequence is whole
  const int* kv_lengths = nullptr;
  Tensor dropout_mask;            ///< [batches * heads, sq, sk], 1 = kept; null: no dropout
  float keep_scale = 1;           ///< 1 / (1 - dropout)
  const int* q_starts = nullptr;  ///< HeadTensor::starts of queries and of keys, [batches], in device memory
  const int* kv_starts = nullptr;
};

struct AttentionForward {
  AttentionRules rules;
  HeadTensor q, k, v;
  HeadTensor o;
  float* lse = nullptr;        ///< [batches * heads, sq], with q_starts [tokens, heads]
  float* max_logit = nullptr;  ///< the same; null: not wanted
};

struct AttentionBackward {
  AttentionRules rules;
  HeadTensor q, k, v;
  HeadTensor gradient, o;  ///< of the output, and the output
  const float* lse = nullptr;
  HeadTensor dq, dk, dv;
  Tensor dbias;                      ///< [heads, sq, sk]; null: not wanted
  float* dsoftmax_offset = nullptr;  ///< [heads]; null: not wanted
  float* dots = nullptr;             ///< [batches * heads, sq], workspace: the D of op::AttentionBwdParams
  float* pairs = nullptr;            ///< [batches * heads, sk, sq], workspace; null: dq computes the scores anew
};

/// The formulas of op::AttentionParams in FP32, without tensor cores and fast math. q k^T is a chain of fused
/// multiply-adds over the channels. Keys come in tiles of 64: a tile's weights are exp(s - m) with the largest score
/// m so far, sums are rescaled when m grows, and o is divided by the sum of weights once. Products of keys that a
/// query does not see are not added, so that NaN in them does not spread. Queries beyond a sequence's length get o =
/// 0, lse = -inf, max_logit = -inf, where there are any. All tensors of heads, the bias and the dropout mask have one
/// format: FP32, BF16 or FP16. cudaErrorNotSupported:
/// formats differ. cudaErrorInvalidValue: more than 2^28 positions.
cudaError_t launch_attention_fwd(const AttentionForward& launch, cudaStream_t stream);

/// The formulas of op::AttentionBwdParams, likewise; every tile recomputes the scores. One kernel for dk and dv, sums over
/// queries and the heads that share a key, one for dq, which is a sum over keys, and one for dbias, a sum over sequences:
/// all in a fixed order and without atomics, so that results are deterministic. With `pairs`, dq takes the derivatives of
/// the scores from dk's kernel, which are the same. Positions beyond a sequence's length get zeros, where there are any.
cudaError_t launch_attention_bwd(const AttentionBackward& launch, cudaStream_t stream);

}  // namespace numcheck::kernels::cuda
