// Attention on a simulated device: what both directions compute alike.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/contract/backend.hpp"
#include "kernels/sim/attention_scales.hpp"
#include "kernels/sim/binding.hpp"
#include "model/schedule.hpp"
#include "op/attention_layout.hpp"

namespace numcheck::kernels::sim {

/// Keys of one step of the online softmax.
inline constexpr std::int64_t kKeysOfTile = 64;

/// How the device multiplies, and the fault that is planted in it.
struct AttentionKernel {
  op::AttentionParams p;
  core::Dtype format = core::Dtype::fp32;     ///< of the tensors
  core::Dtype operands = core::Dtype::fp32;   ///< in which matrices are multiplied
  core::Dtype gradients = core::Dtype::fp32;  ///< of the gradients' tensors
  model::Schedule schedule;
  std::string fault;

  AttentionKernel(const Call& call, const SimContext& context);
  [[nodiscard]] bool has(std::string_view name) const noexcept { return fault == name; }
  /// x as it is multiplied.
  [[nodiscard]] float operand(float x) const { return operand(x, operands); }
  [[nodiscard]] static float operand(float x, core::Dtype format);
  /// The format in which gradients of outputs are multiplied.
  [[nodiscard]] core::Dtype gradient_operands() const { return core::is_fp8(operands) ? gradients : operands; }
  /// Sums of products a b of an m x k and a k x n matrix of operands. `first`, `second`: their formats.
  [[nodiscard]] std::vector<float> product(std::span<const float> a, std::span<const float> b, std::int64_t m,
                                           std::int64_t n, std::int64_t k, core::Dtype first, core::Dtype second) const;
  [[nodiscard]] std::vector<float> product(std::span<const float> a, std::span<const float> b, std::int64_t m,
                                           std::int64_t n, std::int64_t k) const {
    return product(a, b, m, n, k, operands, operands);
  }
  [[nodiscard]] float scale() const;
  /// That of the gradients of scores: before they are rounded to FP8, or after they are multiplied.
  [[nodiscard]] float scale_before() const { return core::is_fp8(operands) ? scale() : 1; }
  [[nodiscard]] float scale_after() const { return core::is_fp8(operands) ? 1 : scale(); }
};

/// Why the device cannot multiply in the case's mode; empty if it can.
[[nodiscard]] std::string sim_attention_obstacle(const Call& call, const SimContext& context);

/// Rows of one head, dense: rows x channels, as they are multiplied.
struct HeadMatrix {
  std::int64_t rows = 0;
  std::int64_t channels = 0;
  std::vector<float> at;

  [[nodiscard]] std::span<const float> row(std::int64_t i) const {
    return std::span(at).subspan(static_cast<std::size_t>(i * channels), static_cast<std::size_t>(channels));
  }
  [[nodiscard]] HeadMatrix transposed() const;
  /// Rows [begin, end).
  [[nodiscard]] HeadMatrix rows_of(std::int64_t begin, std::int64_t end) const;
};

/// All tensors of a launch as FP32 numbers.
class AttentionTensors {
 public:
  AttentionTensors(const AttentionKernel& kernel, std::span<const PortMemory> ports);

  /// One head of a tensor in the case's layout: as many positions as the longest sequence has. With layout thd, those
  /// beyond a sequence's own are the next one's, zero at the end of the tensor, and are not stored.
  [[nodiscard]] HeadMatrix head_of(std::span<const float> tensor, op::Side side, std::int64_t batch, std::int64_t head,
                                   std::int64_t channels, core::Dtype operands) const;
  void put_head(const HeadMatrix& from, op::Side side, std::int64_t batch, std::int64_t head,
                std::span<float> tensor) const;

  [[nodiscard]] HeadMatrix queries(std::int64_t batch, std::int64_t head) const;
  [[nodiscard]] HeadMatrix keys(std::int64_t batch, std::int64_t key_head) const;
  [[nodiscard]] HeadMatrix values(std::int64_t batch, std::int64_t key_head) const;
  /// The head of keys and values that a head of queries uses.
  [[nodiscard]] std::int64_t key_head(std::int64_t head) const noexcept;
  [[nodiscard]] std::int64_t query_count(std::int64_t batch) const;
  [[nodiscard]] std::int64_t key_count(std::int64_t batch) const;
  /// What query i of a sequence sees.
  [[nodiscard]] op::KeyRange seen(std::int64_t batch, std::int64_t i) const;
  /// The score of a sum of products; `slope` gets the derivative of the cap.
  [[nodiscard]] float score(std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j, float product,
                            float* slope = nullptr) const;
  /// By what dropout multiplies a weight.
  [[nodiscard]] float kept(std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j) const;
  /// Logarithm of what the denominator has besides the keys; -infinity: nothing.
  [[nodiscard]] float sink(std::int64_t head) const;
  /// Where a product of weights and values is: its first query and its first key.
  struct Place {
    std::int64_t batch = 0, query = 0, key = 0;
  };
  /// sum += weights values: weights are rows x keys, of a format, values keys x channels. A value that is not finite reaches
  /// only the queries that see its key: 0 times NaN would be NaN.
  void add_weighed(const Place& at, std::span<const float> weights, core::Dtype format, const HeadMatrix& values,
                   HeadMatrix& sum) const;

  [[nodiscard]] const AttentionScales& scales() const noexcept { return scales_; }

 private:
  const AttentionKernel& kernel_;
  op::AttentionParams masked_;  ///< whose mask and windows have the fault
  AttentionScales scales_;
  std::vector<float> q_, k_, v_, bias_, offset_, q_lengths_, kv_lengths_, mask_;
};

}  // namespace numcheck::kernels::sim
