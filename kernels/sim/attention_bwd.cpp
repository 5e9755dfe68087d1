#include "op/attention_bwd.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "core/parallel.hpp"
#include "kernels/sim/attention.hpp"
#include "kernels/sim/attention_faults.hpp"
#include "kernels/sim/attention_skips.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/tensor_io.hpp"

namespace numcheck::kernels::sim {
namespace {

/// What a backward launch reads and writes besides what both directions read.
struct Gradients {
  std::vector<float> d_o, o, lse;                   ///< inputs
  std::vector<float> dq, dk, dv, d_bias, d_offset;  ///< outputs, all zero at first
  std::vector<float> largest;                       ///< |gradient| of scaled products, of each head of keys

  Gradients(const op::AttentionParams& p, std::span<const PortMemory> ports)
      : d_o(read_floats(ports, "do")), o(read_floats(ports, "o")), lse(read_floats(ports, "lse")) {
    const auto zeros = [](std::int64_t count) { return std::vector<float>(static_cast<std::size_t>(count)); };
    const std::int64_t keys = op::tokens(p, op::Side::keys) * p.key_heads();
    dq = zeros(op::tokens(p, op::Side::queries) * p.heads * p.d);
    dk = zeros(keys * p.d);
    dv = zeros(keys * p.value_channels());
    d_bias = zeros(p.has_bias_tensor() ? p.heads * p.sq * p.sk : 0);
    d_offset = zeros(p.softmax == "learnable" ? p.heads : 0);
    largest = zeros(p.key_heads());
  }
};

HeadMatrix zero_matrix(std::int64_t rows, std::int64_t channels) {
  return {rows, channels, std::vector<float>(static_cast<std::size_t>(rows * channels))};
}

void scale_by(HeadMatrix& matrix, float factor) {
  std::ranges::for_each(matrix.at, [factor](float& x) { x *= factor; });
}

/// One head of queries of one sequence.
class Head {
 public:
  Head(const AttentionKernel& kernel, const AttentionTensors& tensors, Gradients& gradients, std::int64_t batch,
       std::int64_t index)
      : kernel_(kernel), tensors_(tensors), scales_(tensors.scales()), all_(gradients), batch_(batch), index_(index) {}

  [[nodiscard]] float largest_change() const noexcept { return largest_; }

  /// Adds to the gradients of the keys and values that the head shares.
  void run(const HeadMatrix& k, const HeadMatrix& v, HeadMatrix& dk, HeadMatrix& dv) {
    const op::AttentionParams& p = kernel_.p;
    const HeadMatrix q = tensors_.queries(batch_, index_);
    const HeadMatrix d_o =
        tensors_.head_of(all_.d_o, op::Side::queries, batch_, index_, p.value_channels(), kernel_.gradient_operands());
    weights_ = kernel_.product(q.at, k.transposed().at, p.sq, p.sk, p.d);
    slopes_ = kernel_.product(d_o.at, v.transposed().at, p.sq, p.sk, p.value_channels(), kernel_.gradient_operands(),
                              kernel_.operands);
    for (std::int64_t i = 0; i < p.sq; ++i) {
      differentiate(i);
    }
    add_transposed(without_lost(kernel_, batch_, index_, weights_), kernel_.operands, d_o, kernel_.gradient_operands(),
                   dv);
    add_transposed(without_lost(kernel_, batch_, index_, slopes_), scales_.score_gradients.format, q, kernel_.operands,
                   dk);
    HeadMatrix dq = zero_matrix(p.sq, p.d);
    tensors_.add_weighed({.batch = batch_}, slopes_, scales_.score_gradients.format, k, dq);
    scale_by(dq, kernel_.scale_after() * scales_.score_gradients.inverse * scales_.k *
                     (kernel_.has("dq_not_zeroed") ? 2.0F : 1.0F));
    if (kernel_.has("lse_exponentiated")) {
      exponentiate_statistics(dq);
    }
    zero_half(kernel_, dq);
    tensors_.put_head(dq, op::Side::queries, batch_, index_, all_.dq);
  }

 private:
  /// dq times exp(-lse), and divided by it again: NaN where that overflows.
  void exponentiate_statistics(HeadMatrix& dq) const {
    const op::HeadPlace place = op::statistic_place(kernel_.p, batch_, index_);
    for (std::int64_t i = 0; i < tensors_.query_count(batch_); ++i) {
      const float factor = std::exp(-all_.lse[static_cast<std::size_t>(place.first + i * place.stride)]);
      const auto row =
          std::span(dq.at).subspan(static_cast<std::size_t>(i * dq.channels), static_cast<std::size_t>(dq.channels));
      std::ranges::for_each(row, [factor](float& x) { x = factor <= 1e38F ? x : x * factor / factor; });
    }
  }

  /// D = sum of do o of a query.
  [[nodiscard]] float delta(std::int64_t i) const {
    const op::AttentionParams& p = kernel_.p;
    const std::int64_t width = p.value_channels();
    const op::HeadPlace place = op::head_place(p, op::Side::queries, batch_, index_, width);
    const auto first = static_cast<std::size_t>(place.first + i * place.stride);
    return block_sum(static_cast<std::size_t>(width),
                     [&](std::size_t c) { return all_.d_o[first + c] * all_.o[first + c]; }) *
           (scales_.d_o * scales_.o);
  }

  /// Turns a query's products into weights, and their gradients into those of its scores, as they are multiplied.
  void differentiate(std::int64_t i) {
    const op::AttentionParams& p = kernel_.p;
    const auto row = static_cast<std::size_t>(i * p.sk);
    const bool counts = i < tensors_.query_count(batch_);
    const op::KeyRange seen = counts ? tensors_.seen(batch_, i) : op::KeyRange();
    const op::HeadPlace statistic = op::statistic_place(p, batch_, index_);
    const float lse = counts ? all_.lse[static_cast<std::size_t>(statistic.first + i * statistic.stride)] : 0.0F;
    const float own = counts ? delta(i) : 0.0F;
    const float subtracted = own * (kernel_.has("dropout_not_in_sums") ? static_cast<float>(p.keep_scale()) : 1.0F);
    if (counts && p.softmax == "learnable") {
      const float offset = tensors_.sink(index_);
      const float share = kernel_.has("dropout_in_offset") ? static_cast<float>(1 - p.dropout) : 1.0F;
      all_.d_offset[static_cast<std::size_t>(index_)] -= std::exp(offset - lse) * own * share;
    }
    if (counts && kernel_.has("keys_beyond_in_amax")) {
      largest_ = std::fmax(largest_, std::fabs(kernel_.scale_before() * std::exp(-lse) * subtracted));
    }
    for (std::int64_t j = 0; j < p.sk; ++j) {
      float& weight = weights_[row + static_cast<std::size_t>(j)];
      float& slope = slopes_[row + static_cast<std::size_t>(j)];
      if (j < seen.begin || j >= seen.end) {
        weight = slope = 0;
        continue;
      }
      float cap = 1;
      weight = std::exp(tensors_.score(batch_, index_, i, j, weight, &cap) - lse);
      const float kept = tensors_.kept(batch_, index_, i, j);
      const float dp = slope * (scales_.d_o * scales_.v) * (kernel_.has("dropout_not_in_dp") ? 1.0F : kept);
      const float ds = weight * (dp - (kernel_.has("delta_missing") ? 0.0F : subtracted));
      const float dt = ds * cap;
      add_bias_gradient(i, j, p.bias == "pre_scale" ? dt * kernel_.scale() : ds);
      weight = scales_.weights.operand(weight * kept);
      slope = kernel_.scale_before() * dt;
      largest_ = std::fmax(largest_, std::fabs(slope));
      slope = scales_.score_gradients.operand(slope);
    }
  }

  void add_bias_gradient(std::int64_t i, std::int64_t j, float gradient) {
    const op::AttentionParams& p = kernel_.p;
    if (p.has_bias_tensor()) {
      float& sum = all_.d_bias[static_cast<std::size_t>((index_ * p.sq + i) * p.sk + j)];
      sum = kernel_.has("one_sequence_of_bias") ? gradient : sum + gradient;
    }
  }

  /// to += factors^T rows: a row that is not finite reaches only the keys that its query sees.
  void add_transposed(std::span<const float> factors, core::Dtype first, const HeadMatrix& rows, core::Dtype second,
                      HeadMatrix& to) const {
    const op::AttentionParams& p = kernel_.p;
    const auto finite = [](float x) { return std::isfinite(x); };
    std::vector<float> by_key(factors.size());
    HeadMatrix usable = rows;
    for (std::int64_t i = 0; i < p.sq; ++i) {
      const bool whole = kernel_.has("masked_values_leak") || std::ranges::all_of(rows.row(i), finite);
      for (std::int64_t j = 0; j < p.sk; ++j) {
        by_key[static_cast<std::size_t>(j * p.sq + i)] = factors[static_cast<std::size_t>(i * p.sk + j)];
      }
      if (!whole) {
        std::fill_n(usable.at.begin() + i * rows.channels, rows.channels, 0.0F);
        add_to_seen(i, factors.subspan(static_cast<std::size_t>(i * p.sk), static_cast<std::size_t>(p.sk)), rows, to);
      }
    }
    const std::vector<float> added = kernel_.product(by_key, usable.at, p.sk, rows.channels, p.sq, first, second);
    std::ranges::transform(to.at, added, to.at.begin(), std::plus<>());
  }

  void add_to_seen(std::int64_t i, std::span<const float> factors, const HeadMatrix& rows, HeadMatrix& to) const {
    const bool counts = i < tensors_.query_count(batch_);
    const op::KeyRange seen = counts ? tensors_.seen(batch_, i) : op::KeyRange();
    for (std::int64_t j = seen.begin; j < seen.end; ++j) {
      for (std::int64_t c = 0; c < rows.channels; ++c) {
        to.at[static_cast<std::size_t>(j * rows.channels + c)] +=
            factors[static_cast<std::size_t>(j)] * rows.row(i)[static_cast<std::size_t>(c)];
      }
    }
  }

  const AttentionKernel& kernel_;
  const AttentionTensors& tensors_;
  const AttentionScales& scales_;
  Gradients& all_;
  std::int64_t batch_, index_;
  std::vector<float> weights_, slopes_;
  float largest_ = 0;  ///< |gradient| of a scaled product
};

/// All heads that use one head of keys, sequence after sequence: sums over either are in a fixed order.
void differentiate(const AttentionKernel& kernel, const AttentionTensors& tensors, std::int64_t of_keys,
                   Gradients& gradients) {
  const op::AttentionParams& p = kernel.p;
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    const HeadMatrix k = tensors.keys(batch, of_keys);
    const HeadMatrix v = tensors.values(batch, of_keys);
    HeadMatrix dk = zero_matrix(p.sk, p.d);
    HeadMatrix dv = zero_matrix(p.sk, p.value_channels());
    for (std::int64_t head = 0; head < p.heads; ++head) {
      if (tensors.key_head(head) != of_keys) {
        continue;
      }
      if (kernel.has("one_head_of_group")) {
        dk = zero_matrix(p.sk, p.d);
        dv = zero_matrix(p.sk, p.value_channels());
      }
      Head of_queries(kernel, tensors, gradients, batch, head);
      of_queries.run(k, v, dk, dv);
      float& largest = gradients.largest[static_cast<std::size_t>(of_keys)];
      largest = std::fmax(largest, of_queries.largest_change());
    }
    const AttentionScales& scales = tensors.scales();
    scale_by(dk, kernel.scale_after() * scales.score_gradients.inverse * scales.q);
    scale_by(dv, scales.weights.inverse * scales.d_o);
    tensors.put_head(dk, op::Side::keys, batch, of_keys, gradients.dk);
    tensors.put_head(dv, op::Side::keys, batch, of_keys, gradients.dv);
  }
}

void run(const AttentionKernel& kernel, std::span<const PortMemory> ports) {
  const op::AttentionParams& p = kernel.p;
  const AttentionTensors tensors(kernel, ports);
  Gradients gradients(p, ports);
  core::parallel_for(static_cast<std::size_t>(p.key_heads()), [&](std::size_t of_keys) {
    differentiate(kernel, tensors, static_cast<std::int64_t>(of_keys), gradients);
  });
  write_heads(kernel, tensors, ports, {"dq", op::Side::queries, p.d}, gradients.dq);
  write_heads(kernel, tensors, ports, {"dk", op::Side::keys, p.d}, gradients.dk);
  write_heads(kernel, tensors, ports, {"dv", op::Side::keys, p.value_channels()}, gradients.dv);
  write_amax(ports, "dp", gradients.largest, kernel.fault);
  if (p.has_bias_tensor()) {
    write_floats(ports, "dbias", gradients.d_bias, kernel.fault);
  }
  if (p.softmax == "learnable") {
    write_floats(ports, "dsoftmax_offset", gradients.d_offset, kernel.fault);
  }
}

}  // namespace

const Binding& attention_bwd() {
  static const std::vector<FaultInfo> faults = with_store_faults(attention_bwd_faults());
  static const SimBinding binding{
      {"sim", "attention_bwd"},
      [](const Call& call, const SimContext& context) { return sim_attention_obstacle(call, context); },
      [](const Call& call, const SimContext& context) {
        const AttentionKernel kernel(call, context);
        return std::vector<Algorithm>{
            host_algorithm(call, fmt::format("head by head, products: {}", kernel.schedule.text),
                           [kernel](std::span<const PortMemory> ports) { run(kernel, ports); })};
      },
      [] { return std::span<const FaultInfo>(faults); },
      [](const Call& call, const SimContext&) { return obstacle_of(attention_bwd_faults(), call); }};
  return binding;
}

}  // namespace numcheck::kernels::sim
